//! Ops that apply their region to many elements: reductions, windows, scatters, sorts.

use super::contract::product;
use super::Work;
use crate::rules::SignatureView;
use crate::stablehlo::windows::{WindowLists, SELECTION};

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

/// The region's work times the window's size minus one, for each element of the result.
pub(super) fn reduce_window(view: &SignatureView<'_>, bodies: &[Work]) -> Option<Work> {
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
