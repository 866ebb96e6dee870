//! Checks reducer regions, which combine two values.

use crate::stablehlo::compatible::{
    compatible_shapes, compatible_sizes, is_promotable, same_but_for_precision,
    same_but_for_unknown_sizes,
};
use crate::stablehlo::element::Element;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::types::{Size, Tensor, ValueType};
use crate::stablehlo::view::RegionView;

/// The element types of the values that `region` returns; those of `inputs` if there is no region.
pub fn accumulators(region: &RegionView<'_>, inputs: &[&Tensor]) -> Vec<Element> {
    if region.num_blocks == 0 {
        return inputs.iter().map(|input| input.element.clone()).collect();
    }
    region.returned.iter().filter_map(|ty| ty.element().cloned()).collect()
}

/// Checks that `region` is a reducer for elements of `inputs` with the initial values
/// `init_values`. Its values may have dims of the sizes `allowed`, in this order.
pub fn check_reducer(
    region: &RegionView<'_>,
    inputs: &[&Tensor],
    init_values: &[&Tensor],
    allowed: &[Size],
) -> Result<(), Mistake> {
    let count = inputs.len();
    let (needs, takes) = (count * 2, region.args.len());
    ensure(takes == needs, || {
        format!("Reduction-region must take {needs} parameters, but takes {takes} parameter(s)")
    })?;
    ensure(!region.returned.is_empty(), || {
        "The reduction-region expected to return some value(s)".to_owned()
    })?;
    let returns = region.returned.len();
    ensure(returns == count, || {
        format!(
            "Reduction-region here must produce {count} tensors, but produces {returns} instead"
        )
    })?;
    if let Some(other) = region.returned.iter().find(|ty| ty.element().is_none()) {
        return Err(bare(format!(
            "Reduction-region here must produce tensor-typed result(s), but produces '{other}' \
             instead"
        )));
    }
    for (at, (input, init_value)) in inputs.iter().zip(init_values).enumerate() {
        check_one(region, (at, count), input, init_value, allowed)?;
    }
    Ok(())
}

fn check_one(
    region: &RegionView<'_>,
    (at, count): (usize, usize),
    input: &Tensor,
    init_value: &Tensor,
    allowed: &[Size],
) -> Result<(), Mistake> {
    let result = &region.returned[at];
    for index in [at, count + at] {
        let arg = &region.args[index];
        // Only the second of the two arguments may have another precision.
        let is_same = if index == at { same_but_for_unknown_sizes } else { same_but_for_precision };
        ensure(is_same(result, arg), || {
            format!(
                "The type of reduction-region's parameter at index {index} is different than the \
                 corresponding result type: '{arg}' vs '{result}'"
            )
        })?;
    }
    let init = || ValueType::from(init_value.clone());
    let fits = result.shape().is_none_or(|shape| compatible_shapes(&init_value.shape, shape));
    ensure(fits, || {
        let init = init();
        format!(
            "The shape of reduction-region's result type at index {at} differs from the op's \
             corresponding init-value type: '{result}' vs '{init}'"
        )
    })?;
    let promotable =
        |from: &Element, to: &ValueType| to.element().is_some_and(|to| is_promotable(from, to));
    ensure(promotable(&init_value.element, result), || {
        let init = init();
        format!(
            "The element-type of reduction-region's result type at index {at} is expected to be \
             promotable from the op's corresponding init-value element-type: '{result}' vs '{init}'"
        )
    })?;
    let (index, arg) = (count + at, &region.args[count + at]);
    ensure(promotable(&input.element, arg), || {
        let (from, to) = (&input.element, arg.element().map(ToString::to_string));
        let to = to.unwrap_or_default();
        format!(
            "The element-type of reduction-region's argument at index {index} is expected to be \
             promotable from '{from}', but got '{to}'"
        )
    })?;
    let most = allowed.len();
    let Some(shape) = arg.shape() else {
        return Err(bare(format!(
            "The rank of reduction-region's argument at index {index} is expected to be <= {most}, \
             and is not known"
        )));
    };
    let rank = shape.len();
    ensure(rank <= most, || {
        format!(
            "The rank of reduction-region's argument at index {index} is expected to be <= {most}, \
             got {rank}"
        )
    })?;
    let mut left = shape;
    for &size in allowed {
        if let Some((first, rest)) = left.split_first() {
            if compatible_sizes(size, *first) {
                left = rest;
            }
        }
    }
    ensure(left.is_empty(), || {
        format!(
            "The shape of reduction-region's argument at index {index} is not compatible with that \
             of reduce-op's input-parameter at index {at}"
        )
    })
}
