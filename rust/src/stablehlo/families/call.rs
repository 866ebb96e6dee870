//! Definitions of custom calls, composites and tuples.

use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::{Kind, Least};
use crate::stablehlo::compatible::of_compatible_shape;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    many, one, optional, required, stablehlo, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::dim_checks::list;
use crate::stablehlo::mistake::{bare, ensure, of_op, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::types::ValueType;
use crate::stablehlo::view::OpView;
use std::borrow::Cow;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["custom_call"], CUSTOM_CALL),
    stablehlo(&["composite"], COMPOSITE),
    stablehlo(&["tuple"], TUPLE),
    stablehlo(&["get_tuple_element"], GET_TUPLE_ELEMENT),
];

const CUSTOM_CALL: Definition = Definition {
    operands: &[many(takes::IN_CUSTOM_CALL)],
    results: &[many(takes::IN_CUSTOM_CALL)],
    attributes: &[
        required("call_target_name", Kind::Str),
        optional("has_side_effect", Kind::Bool),
        optional("backend_config", Kind::StrOrDict),
        optional("api_version", Kind::ApiVersion),
        optional("called_computations", Kind::Symbols),
        optional("operand_layouts", Kind::Layouts),
        optional("result_layouts", Kind::Layouts),
        optional("output_operand_aliases", Kind::Aliases),
    ],
    verify: Some(verify_custom_call),
    ..NOTHING
};
const COMPOSITE: Definition = Definition {
    operands: &[many(takes::IN_COMPOSITE)],
    results: &[many(takes::IN_COMPOSITE)],
    attributes: &[
        required("name", Kind::Str),
        optional("composite_attributes", Kind::Dict),
        required("decomposition", Kind::Symbol),
        optional("version", Kind::Int(32, Least::Any)),
    ],
    regions: Regions::Any,
    looks_around: true,
    ..NOTHING
};
const TUPLE: Definition = Definition {
    operands: &[many(takes::IN_TUPLE)],
    results: &[one(takes::TUPLE)],
    infer: Some(tuple),
    ..NOTHING
};
const GET_TUPLE_ELEMENT: Definition = Definition {
    operands: &[one(takes::TUPLE)],
    results: &[one(takes::IN_TUPLE)],
    attributes: &[required("index", Kind::Int(32, Least::NonNegative))],
    infer: Some(get_tuple_element),
    ..NOTHING
};

#[allow(clippy::unnecessary_wraps)] // It is an `Infer`.
fn tuple(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(ValueType::Tuple(op.operands.iter().map(|&ty| ty.clone()).collect()).into())
}

fn get_tuple_element(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let Some(ValueType::Tuple(elements)) = op.operands.first().map(|ty| &**ty) else {
        return Err(Mistake::silent());
    };
    let index = op.attributes.int("index").unwrap_or(0);
    let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
    let size = elements.len();
    match element {
        Some(element) => Ok(element.clone().into()),
        None => Err(bare(format!("index {index} is out of bounds of operand with size {size}"))),
    }
}

fn verify_custom_call(op: &OpView<'_>) -> Result<(), Mistake> {
    check_layouts(op)?;
    let aliases = op.attributes.value("output_operand_aliases").and_then(AttrValue::items);
    let aliases: Vec<Alias> = aliases.unwrap_or_default().iter().filter_map(Alias::read).collect();
    aliases.iter().try_for_each(|alias| alias.check(op))?;
    check_backend_config(op)?;
    match op.attributes.word("call_target_name") {
        Some("CreateBuffer") => check_create_buffer(op),
        Some(name @ ("Pin" | "Unpin")) => check_pin(op, name),
        _ => check_buffers(op, &aliases),
    }
}

fn layouts<'v>(op: &'v OpView<'_>, name: &str) -> Option<&'v [AttrValue<'v>]> {
    op.attributes.value(name).and_then(AttrValue::items)
}

fn check_layouts(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operands, results) = (layouts(op, "operand_layouts"), layouts(op, "result_layouts"));
    let (operands, results) = match (operands, results) {
        (None, None) => return Ok(()),
        (Some(operands), Some(results)) => (operands, results),
        _ => {
            let message = "Layout attributes should be specified for either both operands and \
                           results or none.";
            return Err(of_op(message));
        }
    };
    check_layouts_of(op.operands, operands, "operand")?;
    match op.results[..] {
        [ValueType::Tuple(elements)] => {
            let elements: Vec<&ValueType> = elements.iter().collect();
            check_layouts_of(&elements, results, "result")
        }
        _ => check_layouts_of(op.results, results, "result"),
    }
}

fn check_layouts_of(
    types: &[&ValueType],
    layouts: &[AttrValue<'_>],
    what: &str,
) -> Result<(), Mistake> {
    let (has, given) = (types.len(), layouts.len());
    if has != given {
        return Err(of_op(format!(
            "Number of {what}s must match the number of {what} layouts, {has} != {given}"
        )));
    }
    for (index, (ty, layout)) in types.iter().zip(layouts).enumerate() {
        let AttrValue::Dense { ty: layout_type, .. } = layout else { continue };
        let size = layout_type.trim().strip_prefix("tensor<").and_then(|ty| ty.split('x').next());
        let size: usize = size.and_then(|size| size.parse().ok()).unwrap_or(0);
        let order = layout.as_ints().unwrap_or_default();
        let printed = || {
            let list = list(&order);
            let list = if size == 1 { list } else { format!("[{list}]") };
            format!("dense<{}> : {layout_type}", if size == 0 { String::new() } else { list })
        };
        if matches!(ty, ValueType::Tuple(_)) {
            let message = "Tuple types are not fully supported with layout constraints yet";
            return Err(of_op(message));
        }
        if ty.element().is_none() {
            if size == 0 {
                continue;
            }
            return Err(of_op(format!(
                "Only tensor types can have non-empty layout: {what} #{index} of type '{ty}' has \
                 layout {}",
                printed()
            )));
        }
        let Some(shape) = ty.shape() else { continue };
        let rank = shape.len();
        let mut sorted = if order.len() == 1 { vec![order[0]; size] } else { order.clone() };
        sorted.sort_unstable();
        if rank != size || !sorted.iter().copied().eq(0..rank as i64) {
            return Err(of_op(format!(
                "incorrect layout {} for type '{ty}', layout must be a permutation of [0, {rank})",
                printed()
            )));
        }
    }
    Ok(())
}

/// An output-operand alias: a part of the results that shares a buffer with a part of an operand.
struct Alias {
    output: Vec<i64>,
    operand: i64,
    operand_part: Vec<i64>,
}

impl Alias {
    fn read(value: &AttrValue<'_>) -> Option<Self> {
        Some(Self {
            output: value.int_list_field("output_tuple_indices")?,
            operand: value.field("operand_index")?.as_int()?,
            operand_part: value.int_list_field("operand_tuple_indices")?,
        })
    }
    fn check(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        let (count, index) = (op.operands.len(), self.operand);
        let operand = usize::try_from(index).ok().and_then(|index| op.operands.get(index));
        let Some(operand) = operand else {
            return Err(of_op(format!(
                "expects operandIndex in the output_operand_alias attribute to be in range [0, \
                 {count}); got: {index}."
            )));
        };
        let out_of_bounds = |what: &str| {
            of_op(format!(
                "{what}_tuple_indices in the output_operand_alias attribute out of bounds"
            ))
        };
        let from = part(operand, &self.operand_part).ok_or_else(|| out_of_bounds("operand"))?;
        let output = whole_output(op);
        let to = part(&output, &self.output).ok_or_else(|| out_of_bounds("output"))?;
        if from == to {
            return Ok(());
        }
        Err(of_op(format!(
            "shapes mismatch in the output_operand_alias attribute: operand part has type '{from}' \
             and output part has type '{to}'"
        )))
    }
}

/// The type of the whole output: a tuple unless there is one result.
fn whole_output<'a>(op: &OpView<'a>) -> Cow<'a, ValueType> {
    match op.results[..] {
        [only] => Cow::Borrowed(only),
        ref all => Cow::Owned(ValueType::Tuple(all.iter().map(|&ty| ty.clone()).collect())),
    }
}

/// The element at the path `indices` of nested tuples.
fn part<'t>(whole: &'t ValueType, indices: &[i64]) -> Option<&'t ValueType> {
    indices.iter().try_fold(whole, |part, &index| {
        let ValueType::Tuple(elements) = part else { return None };
        elements.get(usize::try_from(index).ok()?)
    })
}

fn check_backend_config(op: &OpView<'_>) -> Result<(), Mistake> {
    const VERSIONS: [&str; 5] = [
        "API_VERSION_UNSPECIFIED",
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ];
    let Some(config) = op.attributes.value("backend_config") else { return Ok(()) };
    let version = op.attributes.int("api_version").unwrap_or(1);
    let (is_right, kind) = match version {
        4 => (matches!(config, AttrValue::Dict(_)), "dictionary"),
        _ => (matches!(config, AttrValue::Str(_)), "string"),
    };
    if is_right {
        return Ok(());
    }
    let version = usize::try_from(version).ok().and_then(|version| VERSIONS.get(version));
    let version = version.copied().unwrap_or_default();
    Err(of_op(format!("backend_config for api_version {version} must be a {kind} attribute.")))
}

fn check_create_buffer(op: &OpView<'_>) -> Result<(), Mistake> {
    let says = match op.results[..] {
        _ if !op.operands.is_empty() => "shouldn't have any inputs",
        [ValueType::Buffer(..)] => return Ok(()),
        [_] => "should have a memref result",
        _ => "should have one result",
    };
    Err(of_op(format!("CreateBuffer custom_call {says}")))
}

/// Checks that `Pin` converts a tensor to a buffer, and `Unpin` a buffer to a tensor.
fn check_pin(op: &OpView<'_>, name: &str) -> Result<(), Mistake> {
    let is_pin = name == "Pin";
    let (from, to) = if is_pin { ("tensor", "memref") } else { ("memref", "tensor") };
    let fits = |ty: &ValueType, kind: &str| match kind {
        "tensor" => ty.is_tensor(),
        _ => matches!(ty, ValueType::Buffer(..)),
    };
    let says = match (op.operands, op.results) {
        ([input], _) if !fits(input, from) => format!("should have a {from} input"),
        ([_], [output]) if !fits(output, to) => format!("should have a {to} output"),
        ([input], [output]) => {
            if of_compatible_shape(input, output) && input.element() == output.element() {
                return Ok(());
            }
            "should have compatible input and output types".to_owned()
        }
        ([_], _) => "should have one output".to_owned(),
        _ => "should have one input".to_owned(),
    };
    Err(of_op(format!("{name} custom_call {says}")))
}

/// Checks that each buffer among the results is an alias of an operand.
fn check_buffers(op: &OpView<'_>, aliases: &[Alias]) -> Result<(), Mistake> {
    let mut path = Vec::new();
    check_buffers_in(&whole_output(op), aliases, &mut path)
}

fn check_buffers_in(ty: &ValueType, aliases: &[Alias], path: &mut Vec<i64>) -> Result<(), Mistake> {
    match ty {
        ValueType::Tuple(elements) => {
            for (index, element) in elements.iter().enumerate() {
                path.push(index as i64);
                check_buffers_in(element, aliases, path)?;
                path.pop();
            }
            Ok(())
        }
        ValueType::Buffer(..) => ensure(aliases.iter().any(|alias| alias.output == *path), || {
            let path = list(path);
            format!("buffer output [{path}] is not used in output_operand_alias")
        })
        .map_err(|mistake| of_op(mistake.text)),
        _ => Ok(()),
    }
}
