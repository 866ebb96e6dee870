//! Checks of window attributes, the shapes of windowed ops, and the definitions of windowed
//! reductions.

use super::reducer::{accumulators, check_reducer};
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::attributes::{Attribute, Attributes};
use crate::stablehlo::compatible::{of_compatible_shape, same_but_for_precision};
use crate::stablehlo::constraint::{self as takes};
use crate::stablehlo::definition::{
    many, one, optional, required, stablehlo, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::dim_checks::list;
use crate::stablehlo::element::Element;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::types::{Size, Sizes, Tensor, ValueType};
use crate::stablehlo::view::OpView;
use crate::stablehlo::windows::{DilationNames, WindowDim, WindowLists, REDUCTION, SELECTION};

pub const FAMILIES: &[Family] = &[
    stablehlo(&["reduce_window"], REDUCE_WINDOW),
    stablehlo(&["select_and_scatter"], SELECT_AND_SCATTER),
];

const REDUCE_WINDOW: Definition = Definition {
    operands: &[many(takes::TENSOR), many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[
        required("window_dimensions", Kind::I64Array),
        optional("window_strides", Kind::I64Array),
        optional("base_dilations", Kind::I64Array),
        optional("window_dilations", Kind::I64Array),
        optional("padding", Kind::I64Elements),
    ],
    regions: Regions::Named(&["body"]),
    has_implicit_return: true,
    verify: Some(verify_reduce_window),
    infer: Some(reduce_window),
    ..NOTHING
};
const SELECT_AND_SCATTER: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[
        optional("window_dimensions", Kind::I64Array),
        optional("window_strides", Kind::I64Array),
        optional("padding", Kind::I64Elements),
    ],
    regions: Regions::Named(&["select", "scatter"]),
    verify: Some(verify_select_and_scatter),
    infer: Some(select_and_scatter),
    ..NOTHING
};

/// The window attributes of an op, whose dilations have these names.
pub fn window_lists(
    attributes: &Attributes<'_>,
    dilations: DilationNames,
) -> Result<WindowLists, Mistake> {
    if let Some((sizes, _)) = attributes.get("padding").and_then(Attribute::dense_type) {
        ensure(matches!(sizes[..], [_, 2]), || {
            let sizes = list(sizes);
            format!("expects the shape of padding-attribute to be {{N, 2}}, but got {{{sizes}}}.")
        })?;
    }
    WindowLists::read(|name| attributes.value(name), dilations).ok_or_else(Mistake::silent)
}

/// The dims of a window with these sizes and the other attributes in `lists`.
pub fn window_dims(lists: &WindowLists, sizes: &[Size]) -> Result<Vec<WindowDim>, Mistake> {
    let count = sizes.len();
    for (len, what) in [
        (lists.strides.len(), "window-strides"),
        (lists.base_dilations.len(), "base-dilation factors"),
        (lists.window_dilations.len(), "window-dilation factors"),
        (lists.padding.len(), "padding-entries"),
        (lists.reversals.len(), "window-reversal"),
    ] {
        ensure(len == 0 || len == count, || {
            format!(
                "expects {what} to have same dimension-size as size of window dimensions \
                 ({count}), but got: {len}."
            )
        })?;
    }
    sizes.iter().enumerate().map(|(at, &size)| window_dim(lists, at, size)).collect()
}

fn window_dim(lists: &WindowLists, at: usize, size: Size) -> Result<WindowDim, Mistake> {
    let positive = |value: i64, what: &str| {
        ensure(value > 0, || {
            format!(
                "expects window to have positive {what} for {at}-th window dimension, but got \
                 {value}."
            )
        })
    };
    let dim = WindowDim { size, ..lists.dim(at).ok_or_else(Mistake::silent)? };
    size.map_or(Ok(()), |size| positive(size, "value"))?;
    positive(dim.stride, "stride")?;
    positive(dim.base_dilation, "base dilation factor")?;
    positive(dim.window_dilation, "window dilation factor")?;
    Ok(dim)
}

/// The number of windows in each dim of a base.
pub fn num_windows(base: &[Size], window: &[WindowDim]) -> Sizes {
    base.iter().zip(window).map(|(base, dim)| dim.num_windows(*base)).collect()
}

/// The inputs of a windowed reduction, and the window.
fn inputs<'v>(op: &'v OpView<'_>) -> Result<(Vec<&'v Tensor>, Vec<WindowDim>), Mistake> {
    let inputs = op.operands(0..op.operands.len() / 2)?;
    ensure(!inputs.is_empty(), || "requires at least 1 input value".to_owned())?;
    for at in 1..inputs.len() {
        ensure(of_compatible_shape(op.operands[0], op.operands[at]), || {
            format!(
                "expects all inputs to have compatible shapes. Shape at input-index {at} is not \
                 compatible with shape at input-index 0"
            )
        })?;
    }
    let lists = window_lists(op.attributes, REDUCTION)?;
    let sizes = op.attributes.ints("window_dimensions");
    for input in &inputs {
        let (len, rank) = (sizes.len(), input.rank());
        ensure(len == rank, || {
            format!(
                "expects window-dimensions size == input rank, but got window-dimensions size: \
                 {len} and input: '{input}' with rank = {rank}."
            )
        })?;
    }
    let sizes: Sizes = sizes.iter().copied().map(Some).collect();
    Ok((inputs, window_dims(&lists, &sizes)?))
}

fn verify_reduce_window(op: &OpView<'_>) -> Result<(), Mistake> {
    let (inputs, window) = inputs(op)?;
    let init_values = op.operands(inputs.len()..2 * inputs.len())?;
    let dims: Sizes = window.iter().map(|dim| dim.size).collect();
    check_reducer(op.region(0)?, &inputs, &init_values, &dims)
}

fn reduce_window(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (inputs, window) = inputs(op)?;
    let elements = accumulators(op.region(0)?, &inputs);
    let result = |(input, element): (&&Tensor, Element)| {
        let shape = num_windows(&input.shape, &window);
        let bounds = num_windows(input.bounds(), &window);
        input.with_element(element).with_shape(shape, bounds).into()
    };
    Ok(inputs.iter().zip(elements).map(result).collect())
}

fn verify_select_and_scatter(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, source, init_value) = (op.operand(0)?, op.operand(1)?, op.operand(2)?);
    let select = op.region(0)?;
    let count = select.args.len();
    ensure(count == 2, || {
        format!("expects the select-region to take 2 parameters, but takes {count}")
    })?;
    let expected = ValueType::from(Tensor::scalar(operand.element.clone()));
    for (at, arg) in select.args.iter().enumerate() {
        ensure(same_but_for_precision(&expected, arg), || {
            format!(
                "expects the type of select-region's parameter at index {at} to be '{expected}', \
                 but got '{arg}'"
            )
        })?;
    }
    let [returned] = &select.returned[..] else {
        let count = select.returned.len();
        return Err(bare(format!(
            "expects select-region to return single value, but got: {count}"
        )));
    };
    ensure(**returned == Tensor::scalar(Element::BOOL).into(), || {
        format!("expects the return-type of select-region to be tensor<i1>, but got: '{returned}'")
    })?;
    let element = Tensor::scalar(source.element.clone());
    check_reducer(op.region(1)?, &[&element], &[init_value], &[])?;
    let sizes = op.attributes.ints("window_dimensions");
    let (len, rank) = (sizes.len(), operand.rank());
    ensure(len == rank, || {
        format!(
            "expects window-dimensions size == operand rank, but got window-dimensions size: {len} \
             and operand-type: '{operand}' with rank = {rank}."
        )
    })?;
    let lists = window_lists(op.attributes, SELECTION)?;
    let window = window_dims(&lists, &sizes.iter().copied().map(Some).collect::<Vec<_>>())?;
    let shape = num_windows(&operand.shape, &window);
    let expected = ValueType::from(Tensor::new(shape, operand.element.clone()));
    let source = &op.operands[1];
    ensure(same_but_for_precision(&expected, source), || {
        format!("expects source-type to be '{expected}', but got'{source}'")
    })
}

fn select_and_scatter(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let element = accumulators(op.region(1)?, &[operand]).into_iter().next();
    Ok(operand.with_element(element.ok_or_else(Mistake::silent)?).into())
}
