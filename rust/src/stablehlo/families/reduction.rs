//! Definitions of reductions of whole dims, and of `map`.

use super::reducer::check_reducer;
use crate::inline_list::InlineList;
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::compatible::of_compatible_shape;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    many, one, required, stablehlo, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::dim_checks::list;
use crate::stablehlo::element::Element;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{Size, Sizes, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[stablehlo(&["reduce"], REDUCE), stablehlo(&["map"], MAP)];

const REDUCE: Definition = Definition {
    operands: &[many(takes::TENSOR), many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[required("dimensions", Kind::I64Array)],
    regions: Regions::Named(&["body"]),
    has_implicit_return: true,
    verify: Some(verify_reduce),
    infer: Some(reduce),
    ..NOTHING
};
const MAP: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("dimensions", Kind::I64Array)],
    regions: Regions::Named(&["computation"]),
    has_implicit_return: true,
    traits: &[Trait::SameShape],
    infer: Some(map),
    ..NOTHING
};

/// The sizes and bounds of dims.
type Dims = InlineList<(Size, Size), 4>;

/// The number of inputs of a reduction, and the sizes and bounds of the dims that are kept.
fn inputs(op: &OpView<'_>) -> Result<(usize, Dims), Mistake> {
    let count = op.operands.len() / 2;
    if count == 0 {
        return Err(Mistake::silent());
    }
    let first = op.operand(0)?;
    for at in 1..count {
        op.operand(at)?;
    }
    for at in 1..count {
        ensure(of_compatible_shape(op.operands[0], op.operands[at]), || {
            format!(
                "expects all inputs to have compatible shapes. Shape at input-index {at} is not \
                 compatible with shape at input-index 0"
            )
        })?;
    }
    let mut is_reduced = InlineList::<bool, 8>::repeat(false, first.rank());
    for &dim in op.attributes.ints("dimensions") {
        let place = usize::try_from(dim).ok().and_then(|dim| is_reduced.get_mut(dim));
        let rank = first.rank();
        let Some(place) = place else {
            return Err(bare(format!(
                "Out-of-bounds dimension {dim}, expected to be in range [0, {rank})"
            )));
        };
        ensure(!*place, || format!("Duplicate reduction dimension: {dim}"))?;
        *place = true;
    }
    let mut kept = Dims::new();
    for (dim, (&size, is_reduced)) in first.shape.iter().zip(&is_reduced).enumerate() {
        if !is_reduced {
            kept.push((size, first.bound(dim)));
        }
    }
    Ok((count, kept))
}

fn verify_reduce(op: &OpView<'_>) -> Result<(), Mistake> {
    let (count, kept) = inputs(op)?;
    let mut allowed = Sizes::new();
    for (size, _) in &kept {
        allowed.push(*size);
    }
    if count == 1 {
        return check_reducer(op.region(0)?, &[op.operand(0)?], &[op.operand(1)?], &allowed);
    }
    let (inputs, init_values) = (op.operands(0..count)?, op.operands(count..2 * count)?);
    check_reducer(op.region(0)?, &inputs, &init_values, &allowed)
}

fn reduce(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (count, kept) = inputs(op)?;
    let region = op.region(0)?;
    let (mut shape, mut bounds) = (Sizes::new(), Sizes::new());
    for (size, bound) in &kept {
        shape.push(*size);
        bounds.push(*bound);
    }
    let result = |element: &Element| {
        let like = Tensor::new(Sizes::new(), element.clone());
        ValueType::Tensor(like.with_shape(shape.clone(), bounds.clone()))
    };
    if region.num_blocks == 0 {
        return Ok(op.operands(0..count)?.iter().map(|input| result(&input.element)).collect());
    }
    Ok(region.returned.iter().filter_map(|ty| ty.element()).map(result).collect())
}

fn map(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let region = op.region(0)?;
    let (operands, args) = (op.operands.len(), region.args.len());
    ensure(operands == args, || {
        format!(
            "expects number of operands to match the arity of map computation, but got: {operands} \
             and {args}"
        )
    })?;
    for (at, arg) in region.args.iter().enumerate() {
        let tensor = arg.tensor().ok_or_else(Mistake::silent)?;
        ensure(tensor.rank() == 0, || {
            format!(
                "computation arguments must be 0-rank tensor, but got: arg #{at} of type '{arg}'"
            )
        })?;
        let operand = &op.operand(at)?.element;
        ensure(*operand == tensor.element, || {
            let arg = &tensor.element;
            format!(
                "element type of operands and computation arguments must match, but got: \
                 '{operand}' and '{arg}'"
            )
        })?;
    }
    let count = region.returned.len();
    let [returned] = &region.returned[..] else {
        return Err(bare(format!("computation must return single output, but got: {count}")));
    };
    let output = returned.tensor().ok_or_else(Mistake::silent)?;
    ensure(output.rank() == 0, || {
        format!("computation must return 0-rank tensor, but got: '{returned}'")
    })?;
    let dims = op.attributes.ints("dimensions");
    ensure(dims.iter().copied().eq(0..dims.len() as i64), || {
        let dims = list(dims);
        format!("requires monotonically increasing dimension numbers, but got: {dims}")
    })?;
    for operand in op.all_operands()? {
        let (rank, count) = (operand.rank(), dims.len());
        ensure(rank == count, || {
            format!(
                "applied to a subset of dimensions currently not supported: operand dimensions = \
                 {rank}, requested map dimensions size = {count}"
            )
        })?;
    }
    let shape = op.all_operands()?.last().map(|operand| operand.shape.clone()).unwrap_or_default();
    Ok(Tensor::new(shape, output.element.clone()).into())
}
