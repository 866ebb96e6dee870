//! Ops that apply their region to many elements: reductions, windows, scatters, sorts.

use super::Work;
use crate::rules::SignatureView;
use crate::stablehlo::windows::{WindowLists, SELECTION};
use crate::work::ops::contract::product;

/// The logarithm to base 2, rounded up.
fn log2_ceil(count: u128) -> u128 {
    u128::from(count.max(1).next_power_of_two().trailing_zeros())
}

fn elements(shape: Option<&[i64]>) -> Option<u128> {
    Some(product(shape?))
}

/// The region's work times the number of input elements minus that of result elements.
pub(super) fn reduce(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    let count = elements(view.operand(0))?.saturating_sub(elements(view.result(0))?);
    Some(bodies.first()?.times(count))
}

fn window_size(view: &SignatureView<'_>) -> Option<u128> {
    Some(product(&WindowLists::read(|name| view.attribute(name), SELECTION)?.sizes))
}

/// The longest dim that XLA scans at once.
const SCANNED_AT_ONCE: u128 = 16;

/// The number of combinations in a scan of `count` elements. If that is more than [`SCANNED_AT_ONCE`], parts of that length are
/// scanned, then their totals, which are added to the parts.
fn scan(count: u128) -> u128 {
    if count <= SCANNED_AT_ONCE {
        return count * count.saturating_sub(1);
    }
    let parts = count.div_ceil(SCANNED_AT_ONCE);
    let padded = parts * SCANNED_AT_ONCE;
    let totals = match parts {
        ..=SCANNED_AT_ONCE => (parts + 1) * (parts - 1),
        _ => scan(parts),
    };
    padded * (SCANNED_AT_ONCE - 1) + totals + padded
}

/// The dim along which a windowed reduction is a scan, as a cumulative sum: over all elements up to its own, or from it on.
fn scanned_dim(view: &SignatureView<'_>) -> Option<usize> {
    let windows = WindowLists::read(|name| view.attribute(name), SELECTION)?;
    let shape = view.operand(0)?;
    let mut dims =
        (0..shape.len()).filter(|&dim| windows.dim(dim).is_some_and(|it| it.size != Some(1)));
    let (dim, None) = (dims.next()?, dims.next()) else { return None };
    let (window, len) = (windows.dim(dim)?, shape[dim]);
    let is_plain = window.stride == 1 && window.base_dilation == 1 && window.window_dilation == 1;
    let is_scan =
        window.size == Some(len) && [[len - 1, 0], [0, len - 1]].contains(&window.padding);
    (is_plain && is_scan).then_some(dim)
}

/// The region's work times the window's size minus one, for each element of the result; a scan is done in parts.
pub(super) fn reduce_window(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    if let Some(dim) = scanned_dim(view) {
        let shape = view.operand(0)?;
        let len = product([&shape[dim]]);
        let lines = product(shape).checked_div(len)?;
        return Some(bodies.first()?.times(scan(len).saturating_mul(lines)));
    }
    let others = window_size(view)?.saturating_sub(1);
    Some(bodies.first()?.times(others.saturating_mul(elements(view.result(0))?)))
}

/// The work of `select` times the window's size minus one, and that of `scatter`, for each element of the source.
pub(super) fn select_and_scatter(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    let (&select, &scatter) = (bodies.first()?, bodies.get(1)?);
    let windows = elements(view.operand(1))?;
    let choices = window_size(view)?.saturating_sub(1).saturating_mul(windows);
    Some(select.times(choices).plus(scatter.times(windows)))
}

/// The region's work for each element of the updates.
pub(super) fn scatter(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    let first_update = (view.num_operands() / 2) + 1;
    Some(bodies.first()?.times(elements(view.operand(first_update))?))
}

/// The region's work, on slices, for each index of the scanned dim.
pub(super) fn scan_of_slices(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    let carried = *view.dims("operandSegmentSizes")?.get(1)?;
    let scanned = if view.num_operands() > carried { view.operand(0)? } else { view.result(0)? };
    let length = product([scanned.get(view.dim("dimension")?)?]);
    Some(bodies.first()?.times(length))
}

/// The region's work for each element of the result.
pub(super) fn map(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
    Some(bodies.first()?.times(elements(view.result(0))?))
}

/// `n log2(n)` comparisons of all `n` elements of the first operand.
pub(super) fn sort(view: &SignatureView<'_>) -> Option<Work> {
    let count = elements(view.operand(0))?;
    Some(Work::of_flops(count.saturating_mul(log2_ceil(count))))
}

/// A heap of the `k` largest: `n log2(k)` comparisons.
pub(super) fn top_k(view: &SignatureView<'_>) -> Option<Work> {
    let kept = *view.result(0)?.last()?;
    Some(Work::of_flops(
        elements(view.operand(0))?.saturating_mul(log2_ceil(product([&kept])).max(1)),
    ))
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn long_scans_are_done_in_parts() {
        assert_eq!(scan(16), 16 * 15);
        // Three parts, four totals of windows of three, and the totals added to the parts.
        assert_eq!(scan(40), 48 * 15 + 4 * 2 + 48);
        // Seventeen parts, whose totals are scanned in parts, too.
        assert_eq!(scan(272), 272 * 15 + scan(17) + 272);
    }
}
