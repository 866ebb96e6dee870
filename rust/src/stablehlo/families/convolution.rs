//! Definitions of convolutions, with padding as an attribute or as an operand.

use super::contract::{check_precisions, check_shape, Dims};
use super::window::{num_windows, window_dims, window_lists};
use crate::stablehlo::attribute_kinds::{Kind, COUNT};
use crate::stablehlo::constraint::{self as takes, Alternative, Form};
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, AttributeDefinition, Compares, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::{is_unique, list};
use crate::stablehlo::dims::ConvDims;
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{ensure, Mistake};
use crate::stablehlo::types::{Sizes, Tensor};
use crate::stablehlo::view::OpView;
use crate::stablehlo::windows::{self, WindowLists};

pub const FAMILIES: &[Family] =
    &[stablehlo(&["convolution"], CONVOLUTION), stablehlo(&["dynamic_conv"], DYNAMIC_CONV)];

const CONVOLUTION: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    attributes: &[
        optional("window_strides", Kind::I64Array),
        optional("padding", Kind::I64Elements),
        optional("lhs_dilation", Kind::I64Array),
        optional("rhs_dilation", Kind::I64Array),
        optional("window_reversal", Kind::BoolArray),
        DIMENSION_NUMBERS,
        FEATURE_GROUPS,
        BATCH_GROUPS,
        PRECISIONS,
    ],
    verify: Some(|op| check_shape(op, convolution(op)?)),
    infer: Some(|op| op.shaped(convolution(op)?)),
    compares: Compares::Nothing,
    ..NOTHING
};
const DIMENSION_NUMBERS: AttributeDefinition = required(
    "dimension_numbers",
    Kind::Of("stablehlo", "conv", "Structure of dimension information for conv op"),
);
const FEATURE_GROUPS: AttributeDefinition = required("feature_group_count", COUNT);
const BATCH_GROUPS: AttributeDefinition = required("batch_group_count", COUNT);
const PRECISIONS: AttributeDefinition = optional("precision_config", Kind::Precisions("stablehlo"));
const DYNAMIC_CONV: Definition = Definition {
    operands: &[
        one(takes::TENSOR),
        one(takes::TENSOR),
        one(&[Alternative::Tensor(Form::StaticIntegerMatrix, &[E::INTEGER])]),
    ],
    results: &[one(takes::TENSOR)],
    attributes: &[
        optional("window_strides", Kind::I64Array),
        optional("lhs_dilation", Kind::I64Array),
        optional("rhs_dilation", Kind::I64Array),
        optional("window_reversal", Kind::BoolArray),
        DIMENSION_NUMBERS,
        FEATURE_GROUPS,
        BATCH_GROUPS,
        PRECISIONS,
    ],
    verify: Some(verify_dynamic_conv),
    infer: None,
    looks_around: true,
    ..CONVOLUTION
};

fn dimension_numbers(op: &OpView<'_>) -> Result<ConvDims<i64>, Mistake> {
    let numbers = op.attributes.value("dimension_numbers");
    numbers.and_then(ConvDims::read).ok_or_else(Mistake::silent)
}

/// Checks operands and attributes but for those of the window.
fn check(op: &OpView<'_>) -> Result<ConvDims<i64>, Mistake> {
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let rank = lhs.rank();
    ensure(rank >= 2, || {
        format!("expects convolution arguments to have >= 2 dimensions. Got: '{lhs}' and '{rhs}'.")
    })?;
    ensure(rank == rhs.rank(), || {
        format!(
            "expects convolution arguments to have same number of dimensions. Got: '{lhs}' and \
             '{rhs}'."
        )
    })?;
    ensure(lhs.element == rhs.element, || {
        let (lhs, rhs) = (&lhs.element, &rhs.element);
        format!("expects lhs and rhs to have compatible element type. Got: '{lhs}' and '{rhs}'")
    })?;
    let dims = dimension_numbers(op)?;
    // If an op with these attributes was valid, it had these ranks.
    if !op.has_known_attributes || rank != dims.input_spatial.len() + 2 {
        check_dimension_numbers(&dims, rank)?;
    }
    check_groups(op, &dims)?;
    check_precisions(op)?;
    let expected = dims.input_spatial.len() + 2;
    ensure(rank == expected, || {
        format!("expects convolution arguments to have {expected} dimensions. Got: {rank}")
    })?;
    Ok(dims)
}

fn check_dimension_numbers(dims: &ConvDims<i64>, rank: usize) -> Result<(), Mistake> {
    let lens = [&dims.input_spatial, &dims.kernel_spatial, &dims.output_spatial].map(Vec::len);
    ensure(lens[0] == lens[1] && lens[0] == lens[2], || {
        let [input, kernel, output] = lens;
        format!(
            "expects the same size for input, kernel and output spatial-dimensions, but got {input}, \
             {kernel}, and {output} resp."
        )
    })?;
    let all = |first: i64, second: i64, spatial: &[i64]| -> Vec<i64> {
        [first, second].into_iter().chain(spatial.iter().copied()).collect()
    };
    let sides = [
        (all(dims.input_batch, dims.input_feature, &dims.input_spatial), "input"),
        (
            all(dims.kernel_input_feature, dims.kernel_output_feature, &dims.kernel_spatial),
            "kernel",
        ),
        (all(dims.output_batch, dims.output_feature, &dims.output_spatial), "output"),
    ];
    let is_in_range = |dim: &i64| (0..rank as i64).contains(dim);
    ensure(sides.iter().all(|(dims, _)| dims.iter().all(is_in_range)), || {
        format!("expects input, kernel, and output dimension-numbers to be in-range [0, {rank}).")
    })?;
    for (dims, side) in sides {
        ensure(is_unique(&dims), || {
            let dims = list(&dims);
            format!("expects {side} dimension-numbers to be unique, got {{{dims}}}.")
        })?;
    }
    Ok(())
}

fn check_groups(op: &OpView<'_>, dims: &ConvDims<i64>) -> Result<(), Mistake> {
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let (batches, features) = groups(op);
    ensure(batches <= 1 || features <= 1, || {
        format!(
            "expects batch_group_count and feature_group_count not to be both greater than 1. Got \
             {batches} and {features} resp."
        )
    })?;
    let size = |side: &Tensor, dim: i64| side.shape[dim as usize];
    if let Some(batch) = size(lhs, dims.input_batch) {
        ensure(batch % batches == 0, || {
            format!(
                "expects input batch dimension ({batch}) to be divisible by batch_group_count. Got \
                 batch_group_count = {batches}."
            )
        })?;
    }
    if let Some(inputs) = size(lhs, dims.input_feature) {
        ensure(inputs % features == 0, || {
            format!(
                "expects input feature dimension ({inputs}) to be a multiple of \
                 feature_group_count. Got feature_group_count = {features}."
            )
        })?;
        let kernel = size(rhs, dims.kernel_input_feature);
        ensure(kernel.is_none_or(|kernel| inputs / features == kernel), || {
            let kernel = kernel.unwrap_or(0);
            format!(
                "expects input feature dimension ({inputs}) / feature_group_count = kernel input \
                 feature dimension ({kernel}). Got feature_group_count = {features}."
            )
        })?;
    }
    let Some(outputs) = size(rhs, dims.kernel_output_feature) else { return Ok(()) };
    ensure(outputs % batches == 0, || {
        format!(
            "expects output feature dimension size ({outputs}) to be a multiple of \
             batch_group_count. Got batch_group_count = {batches}."
        )
    })?;
    ensure(outputs % features == 0, || {
        format!(
            "expects kernel output feature dimension ({outputs}) to be divisible by \
             feature_group_count. For feature_group_count = {features}."
        )
    })
}

/// The batch and feature group counts, at least 1 each.
fn groups(op: &OpView<'_>) -> (i64, i64) {
    let count = |name| op.attributes.int(name).unwrap_or(1).max(1);
    (count("batch_group_count"), count("feature_group_count"))
}

/// The dims of the result of a valid convolution with this window.
fn shape(op: &OpView<'_>, dims: &ConvDims<i64>, lists: &WindowLists) -> Result<Dims, Mistake> {
    let (lhs, rhs) = (op.operand(0)?, op.operand(1)?);
    let sizes = |side: &Tensor, dims: &[i64]| -> Sizes {
        dims.iter().map(|&dim| side.shape[dim as usize]).collect()
    };
    let window = window_dims(lists, &sizes(rhs, &dims.kernel_spatial))?;
    let windows = num_windows(&sizes(lhs, &dims.input_spatial), &window);
    let mut result = Sizes::repeat(None, lhs.rank());
    for (&dim, &size) in dims.output_spatial.iter().zip(&windows) {
        result[dim as usize] = size;
    }
    let (batches, _) = groups(op);
    let batch = lhs.shape[dims.input_batch as usize];
    result[dims.output_batch as usize] = batch.map(|batch| batch / batches);
    result[dims.output_feature as usize] = rhs.shape[dims.kernel_output_feature as usize];
    Ok((result, Sizes::new()))
}

fn convolution(op: &OpView<'_>) -> Result<Dims, Mistake> {
    let dims = check(op)?;
    let lists = window_lists(op.attributes, windows::CONVOLUTION)?;
    shape(op, &dims, &lists)
}

fn verify_dynamic_conv(op: &OpView<'_>) -> Result<(), Mistake> {
    let dims = check(op)?;
    let padding = op.operand(2)?;
    let expected = op.operand(0)?.rank() as i64 - 2;
    if let [Some(rows), Some(columns)] = padding.shape[..] {
        ensure(rows == expected && columns == 2, || {
            format!("expects padding to be of shape [{expected}, 2], but got [{rows}, {columns}]")
        })?;
    }
    if let Some(values) = (op.constants)(2) {
        let mut lists = window_lists(op.attributes, windows::CONVOLUTION)?;
        lists.padding = values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        shape(op, &dims, &lists)?;
    }
    Ok(())
}
