//! Contractions: two flops, a multiplication and an addition, for each pair of elements that are multiplied.

use super::Work;
use crate::rules::SignatureView;
use crate::stablehlo::dims::{ConvDims, DotDims, RaggedDotDims};
use crate::stablehlo::windows::{WindowDim, WindowLists, CONVOLUTION};

/// The sizes of a product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// The number of products.
    pub batch: u128,
    /// Rows of the left matrix.
    pub rows: u128,
    /// Columns of the right matrix.
    pub columns: u128,
    /// The size that is summed over.
    pub depth: u128,
}

impl Product {
    /// The sizes in the order of the fields.
    pub const fn as_array(self) -> [u128; 4] {
        [self.batch, self.rows, self.columns, self.depth]
    }
}

/// The product of sizes, with negative ones as 0; saturates.
pub fn product<'a>(sizes: impl IntoIterator<Item = &'a i64>) -> u128 {
    sizes.into_iter().fold(1, |product: u128, &size| product.saturating_mul(size.max(0) as u128))
}

/// The product of the sizes of `dims` of `shape`.
fn size_of(shape: &[i64], dims: &[usize]) -> Option<u128> {
    let sizes: Option<Vec<&i64>> = dims.iter().map(|&dim| shape.get(dim)).collect();
    Some(product(sizes?))
}

fn multiply_adds(count: u128) -> Work {
    Work::of_flops(count.saturating_mul(2))
}

/// `2 * elements of the result * size of the contracting dims`; without such dims nothing is added.
pub(super) fn dot_general(view: &SignatureView<'_>) -> Option<Work> {
    let dims: DotDims = DotDims::read(view.attribute("dot_dimension_numbers")?)?;
    let depth = size_of(view.operand(0)?, &dims.lhs_contracting)?;
    let elements = product(view.result(0)?);
    let is_sum = depth != 1;
    Some(if is_sum {
        multiply_adds(elements.saturating_mul(depth))
    } else {
        Work::of_flops(elements)
    })
}

/// The sizes of a `dot_general`, as of a product of matrices.
pub(super) fn dot_sizes(view: &SignatureView<'_>) -> Option<Product> {
    let dims: DotDims = DotDims::read(view.attribute("dot_dimension_numbers")?)?;
    let (lhs, rhs) = (view.operand(0)?, view.operand(1)?);
    let (batch, depth) = (size_of(lhs, &dims.lhs_batching)?, size_of(lhs, &dims.lhs_contracting)?);
    let left_over = |shape: &[i64]| product(shape).checked_div(batch.saturating_mul(depth));
    Some(Product { batch, rows: left_over(lhs)?, columns: left_over(rhs)?, depth })
}

/// The sizes of a convolution, as of the product of windows and kernels that it is.
pub(super) fn convolution_sizes(view: &SignatureView<'_>) -> Option<Product> {
    let dims: ConvDims = ConvDims::read(view.attribute("dimension_numbers")?)?;
    let (kernel, result) = (view.operand(1)?, view.result(0)?);
    let features = product([result.get(dims.output_feature)?]);
    let groups = ["batch_group_count", "feature_group_count"];
    let groups = groups.map(|name| u128::try_from(view.int(name).unwrap_or(1)).unwrap_or(1).max(1));
    let batch = groups.into_iter().fold(1, u128::saturating_mul);
    let columns = features.checked_div(batch)?.max(1);
    let outputs = product([kernel.get(dims.kernel_output_feature)?]);
    let rows = product(result).checked_div(features)?;
    let depth = product(kernel).checked_div(outputs)?;
    Some(Product { batch, rows, columns, depth })
}

/// `2 * elements of the result * size of the last dim of the left operand`, which `stablehlo.dot` contracts.
pub(super) fn dot(view: &SignatureView<'_>) -> Option<Work> {
    Some(multiply_adds(product(view.result(0)?).saturating_mul(product(view.operand(0)?.last()))))
}

/// Each row of the left operand is multiplied with the matrix of one group, or, if the ragged dim is contracting, each group with
/// its part of that dim.
pub(super) fn ragged_dot(view: &SignatureView<'_>) -> Option<Work> {
    let dims: RaggedDotDims = RaggedDotDims::read(view.attribute("ragged_dot_dimension_numbers")?)?;
    let contracting = &dims.dot.lhs_contracting;
    let (lhs, groups) = (view.operand(0)?, product(view.operand(2)?.last()).max(1));
    let mut pairs = product(view.result(0)?).saturating_mul(size_of(lhs, contracting)?);
    if dims.lhs_ragged.iter().any(|dim| contracting.contains(dim)) {
        pairs /= groups;
    }
    Some(multiply_adds(pairs))
}

/// What the groups of a ragged product are.
pub(super) enum Groups {
    /// Products of a batch.
    Batch,
    /// Rows of the left operand.
    Rows,
    /// Parts of the contracting dim.
    Contraction,
}

/// The sizes of a ragged product, as of one product of matrices for each group, all of the mean size.
pub(super) fn ragged_sizes(view: &SignatureView<'_>) -> Option<(Product, Groups)> {
    let dims: RaggedDotDims = RaggedDotDims::read(view.attribute("ragged_dot_dimension_numbers")?)?;
    let &[ragged] = &dims.lhs_ragged[..] else { return None };
    let groups = product(view.operand(2)?.last()).max(1);
    let (lhs, rhs, result) = (view.operand(0)?, view.operand(1)?, view.result(0)?);
    let batch = size_of(lhs, &dims.dot.lhs_batching)?;
    let mut depth = size_of(lhs, &dims.dot.lhs_contracting)?;
    let rows = product(lhs).checked_div(batch.saturating_mul(depth))?;
    if dims.dot.lhs_batching.contains(&ragged) {
        let columns = product(rhs).checked_div(batch.saturating_mul(depth))?;
        return Some((Product { batch, rows, columns, depth }, Groups::Batch));
    }
    if dims.dot.lhs_contracting.contains(&ragged) {
        depth = (depth / groups).max(1);
        let columns =
            product(result).checked_div(batch.saturating_mul(groups).saturating_mul(rows))?;
        let batch = batch.saturating_mul(groups);
        return Some((Product { batch, rows, columns, depth }, Groups::Contraction));
    }
    let columns = product(result).checked_div(batch.saturating_mul(rows))?;
    let (batch, rows) = (batch.saturating_mul(groups), (rows / groups).max(1));
    Some((Product { batch, rows, columns, depth }, Groups::Rows))
}

/// One spatial dim of a convolution.
struct Window {
    input: i64,
    kernel: i64,
    output: i64,
    dim: WindowDim,
}

impl Window {
    /// The number of pairs of a kernel element and an input element that are multiplied, without padding and without the holes of a
    /// dilated input. Linear in the size of the kernel.
    fn meetings(&self) -> u128 {
        let (input, output) = (i128::from(self.input), i128::from(self.output));
        let WindowDim { stride, padding: [padding, _], base_dilation, window_dilation, .. } =
            self.dim;
        let (stride, dilation) = (i128::from(stride), i128::from(base_dilation));
        let mut meetings: u128 = 0;
        for place in 0..i128::from(self.kernel) {
            // Output position p reads dilated input position p * stride + offset.
            let offset = place * i128::from(window_dilation) - i128::from(padding);
            let first =
                (-offset).max(0).div_euclid(stride) + i128::from((-offset).max(0) % stride != 0);
            let last = ((input - 1) * dilation - offset).div_euclid(stride).min(output - 1);
            if input < 1 || last < first {
                continue;
            }
            meetings += if dilation == 1 {
                (last - first + 1) as u128
            } else {
                holes_left_out(first, last, stride, offset, dilation)
            };
        }
        meetings
    }
}

/// The number of `p` in `first..=last` for which `dilation` divides `p * stride + offset`.
fn holes_left_out(first: i128, last: i128, stride: i128, offset: i128, dilation: i128) -> u128 {
    // Such p are one apart by dilation / gcd(stride, dilation).
    let (mut a, mut b) = (stride, dilation);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let period = dilation / a;
    let hit = (first..=last.min(first + period - 1))
        .find(|p| (p * stride + offset).rem_euclid(dilation) == 0);
    hit.map_or(0, |hit| ((last - hit) / period + 1) as u128)
}

/// The largest kernel or dilation that is counted exactly: the time is linear in them.
const MAX_EXTENT: i64 = 1 << 12;

/// Two flops for each multiplied pair of kernel and input elements, for each pair of features and each image.
pub(super) fn convolution(view: &SignatureView<'_>) -> Option<Work> {
    let dims: ConvDims = ConvDims::read(view.attribute("dimension_numbers")?)?;
    let (input, kernel, result) = (view.operand(0)?, view.operand(1)?, view.result(0)?);
    let windows = WindowLists::read(|name| view.attribute(name), CONVOLUTION)?;
    let mut pairs: u128 = 1;
    for (index, &dim) in dims.input_spatial.iter().enumerate() {
        let window = Window {
            input: *input.get(dim)?,
            kernel: *kernel.get(*dims.kernel_spatial.get(index)?)?,
            output: *result.get(*dims.output_spatial.get(index)?)?,
            dim: windows.dim(index)?,
        };
        let WindowDim { stride, base_dilation, window_dilation, .. } = window.dim;
        let extents = [window.kernel, stride, base_dilation, window_dilation];
        if extents.iter().any(|extent| !(0..=MAX_EXTENT).contains(extent))
            || extents[1..].contains(&0)
        {
            return None;
        }
        pairs = pairs.saturating_mul(window.meetings());
    }
    let groups = u128::try_from(view.int("batch_group_count").unwrap_or(1)).ok()?.max(1);
    let features =
        product([kernel.get(dims.kernel_input_feature)?, result.get(dims.output_feature)?]);
    let images = product([input.get(dims.input_batch)?]) / groups;
    let work = multiply_adds(pairs.saturating_mul(features).saturating_mul(images));
    // Hosts have no groups of images: all pairs of groups are computed, and the diagonal is kept.
    Some(Work { only_on_hosts: work.flops.saturating_mul(groups - 1), ..work })
}
