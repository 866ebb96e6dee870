//! Definition of scans: a function is applied to the slices along a dim, and to values carried from
//! one slice to the next.

use crate::stablehlo::attribute_kinds::{Kind, INDEX};
use crate::stablehlo::compatible::compatible;
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    chlo, many, optional, required, Compares, Definition, Family, Regions, NOTHING,
};
use crate::stablehlo::mistake::{bare, ensure, of_op, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::types::{Size, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[chlo(&["scan"], SCAN)];

const ANY: Constraint = &[Alternative::Tensor(Form::Any, takes::ALL_PER_AXIS)];
const SCAN: Definition = Definition {
    operands: &[many(ANY)],
    results: &[many(ANY)],
    attributes: &[
        required("dimension", INDEX),
        optional("scan_dim_size", INDEX),
        optional("is_reverse", Kind::Bool),
        optional("is_associative", Kind::Bool),
        optional("operandSegmentSizes", Kind::I32Array),
        optional("resultSegmentSizes", Kind::I32Array),
    ],
    regions: Regions::Named(&["body"]),
    verify: Some(verify),
    infer: Some(infer),
    compares: Compares::Shapes,
    ..NOTHING
};

/// The numbers of inputs and of carried values.
fn segments(op: &OpView<'_>) -> (usize, usize) {
    let sizes = op.attributes.ints("operandSegmentSizes");
    let carried = sizes.get(1).map_or(0, |&carried| usize::try_from(carried).unwrap_or(0));
    (op.operands.len().saturating_sub(carried), carried)
}

fn dim(op: &OpView<'_>) -> usize {
    op.attributes.int("dimension").and_then(|dim| usize::try_from(dim).ok()).unwrap_or(0)
}

fn without_dim(tensor: &Tensor, dim: usize) -> Tensor {
    let mut shape = tensor.shape.to_vec();
    shape.remove(dim);
    Tensor::new(shape.into(), tensor.element.clone())
}

/// Checks that the segment sizes of the generic form add up to the numbers of operands and results.
fn check_segments(op: &OpView<'_>) -> Result<(), Mistake> {
    let is_generic = op.attributes.get("dimension").is_some_and(|dim| dim.text.is_some());
    let lists = [
        ("operand", op.operands.len(), "operandSegmentSizes"),
        ("result", op.results.len(), "resultSegmentSizes"),
    ];
    for (what, count, name) in lists.into_iter().filter(|_| is_generic) {
        let sizes = op.attributes.ints(name);
        if sizes.iter().any(|&size| size < 0) {
            return Err(of_op(format!("'{name}' attribute cannot have negative elements")));
        }
        let total = sizes.iter().fold(0_i64, |total, &size| total.wrapping_add(size));
        if total != count as i64 {
            return Err(of_op(format!(
                "{what} count ({count}) does not match with the total size ({total}) specified in \
                 attribute '{name}'"
            )));
        }
        if sizes.len() > 2 {
            return Err(of_op(format!(
                "'{name}' attribute for specifying {what} segments must have 2 elements, but got {}",
                sizes.len()
            )));
        }
    }
    Ok(())
}

fn verify(op: &OpView<'_>) -> Result<(), Mistake> {
    check_segments(op)?;
    let ((inputs, carried), dim) = (segments(op), dim(op));
    if inputs == 0 && op.results.len() <= carried {
        return Err(of_op("at least one of inputs or outputs must be present"));
    }
    let mut size: Size = op.attributes.int("scan_dim_size");
    for at in 0..inputs {
        let Some(input) = op.operands[at].tensor() else {
            return Err(of_op(format!("operand {at} is not ranked")));
        };
        let Some(&own) = input.shape.get(dim) else {
            return Err(of_op(format!("scan dimension of operand {at} is out of bounds")));
        };
        if own.is_some() && size.is_some() && own != size {
            return Err(of_op(format!("invalid scan dimension size of operand {at}")));
        }
        size = own.or(size);
    }
    let body = op.region(0)?;
    let (operands, args) = (op.operands.len(), body.args.len());
    if operands != args {
        let message = format!("expects {operands} arguments in the body, but got {args}");
        return Err(of_op(message));
    }
    for (at, (operand, arg)) in op.operands.iter().zip(&body.args).enumerate() {
        let Some(operand) = operand.tensor() else {
            return Err(of_op(format!("operand {at} is not ranked")));
        };
        let expected = if at < inputs { without_dim(operand, dim) } else { operand.clone() };
        if !compatible(&expected.into(), arg) {
            return Err(of_op(format!("operand and body argument {at} are incompatible")));
        }
    }
    Ok(())
}

fn infer(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let ((inputs, carried), dim, body) = (segments(op), dim(op), op.region(0)?);
    ensure(body.num_blocks != 0, || "ScanOp region is empty".to_owned())?;
    ensure(body.returned.len() >= carried, || {
        format!("ScanOp body must return at least {carried} values (carries)")
    })?;
    let outputs = body.returned.len() - carried;
    let known = op.attributes.int("scan_dim_size");
    let sizes = (0..inputs).map(|at| op.operand(at).ok()?.shape.get(dim).copied().flatten());
    let size = known.or_else(|| sizes.flatten().next());
    let result = |(at, ty): (usize, &&ValueType)| {
        let Some(tensor) = ty.tensor() else {
            return Err(bare(format!("terminator operand {at} is not ranked")));
        };
        let mut shape = tensor.shape.to_vec();
        if at < outputs {
            let place = dim.min(shape.len());
            shape.insert(place, size);
        }
        Ok(Tensor::new(shape.into(), tensor.element.clone()).into())
    };
    body.returned.iter().enumerate().map(result).collect()
}
