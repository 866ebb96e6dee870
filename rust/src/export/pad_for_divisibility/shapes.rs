//! Derives the result shapes of padded ops from their operands.

use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{OpId, ValueId};
use crate::ir::{OpInfo, OpKind, OpTraits, Program, Type};
use crate::mlir::op_attribute;
use crate::stablehlo::dims::DotDims;

/// The sizes of the dims of a tensor, where they are known.
pub type Shape = Vec<Option<i64>>;

/// The error that `op` cannot be padded.
pub fn refusal(program: &Program, op: OpId, why: &str) -> Error {
    let message = format!("{} {why}, so it cannot be padded", program.op_name(op));
    Diagnostic::new(Code::InvalidOp, message).at_op(program, op).into()
}

fn shape(program: &Program, value: ValueId) -> Option<&Shape> {
    match &program.types()[program.type_of(value)] {
        Type::RankedTensor { shape, .. } => Some(shape),
        _ => None,
    }
}

fn ints(program: &Program, op: OpId, name: &str) -> Option<Vec<i64>> {
    op_attribute(program, op, name)?.as_ints()
}

/// How the result shapes of a padded op are derived.
#[derive(Clone, Copy, Debug)]
pub enum ShapeRule {
    /// From the shardings of the results, since the operands do not determine them.
    FromShardings,
    /// Result `i` has the shape of operand `i`.
    Operands,
    /// All results have the shape of this operand.
    Operand(usize),
    /// All results have the shape of the operands that are no scalars.
    Elementwise,
    /// From operands and attributes.
    Attributes(fn(&Program, OpId, &[&Shape]) -> Option<Vec<Shape>>),
    /// They cannot change: the elements are an attribute of the op.
    Fixed,
}

impl ShapeRule {
    /// The rule for ops called `name`; `None` if they are not padded.
    pub fn of(name: &str) -> Option<Self> {
        let rule = match OpKind::from_name(name) {
            OpKind::Iota | OpKind::BroadcastInDim | OpKind::CustomCall | OpKind::Reshape => {
                Self::FromShardings
            }
            OpKind::Constant => Self::Fixed,
            OpKind::AllGather | OpKind::AllSlice | OpKind::OptimizationBarrier => Self::Operands,
            OpKind::Transpose => Self::Attributes(transpose),
            OpKind::Concatenate => Self::Attributes(concatenate),
            OpKind::Pad => Self::Attributes(pad),
            OpKind::Slice => Self::Attributes(slice),
            OpKind::DynamicSlice => Self::Attributes(dynamic_slice),
            OpKind::DynamicUpdateSlice => Self::Operand(0),
            OpKind::DotGeneral => Self::Attributes(dot),
            OpKind::Reduce => Self::Attributes(reduce),
            _ => return Self::of_other(name),
        };
        Some(rule)
    }
    fn of_other(name: &str) -> Option<Self> {
        match name {
            "stablehlo.convert" => Some(Self::FromShardings),
            "stablehlo.reverse" | "stablehlo.cholesky" => Some(Self::Operand(0)),
            "stablehlo.triangular_solve" => Some(Self::Operand(1)),
            "stablehlo.fft" => Some(Self::Attributes(fft)),
            _ => {
                let info = OpInfo::by_name(name)?;
                let is_padded = name.starts_with("stablehlo.");
                let is_elementwise = is_padded && info.traits.has(OpTraits::ELEMENTWISE);
                is_elementwise.then_some(Self::Elementwise)
            }
        }
    }
}

/// The result shapes of `op` with these operands; `None` if they do not follow from the operands.
pub fn infer(program: &Program, op: OpId, operands: &[ValueId]) -> Result<Option<Vec<Shape>>> {
    let rule = ShapeRule::of(program.op_name(op));
    if matches!(rule, Some(ShapeRule::FromShardings)) {
        return Ok(None);
    }
    let shapes: Option<Vec<&Shape>> =
        operands.iter().map(|&operand| shape(program, operand)).collect();
    let Some(shapes) = shapes else {
        return Err(refusal(program, op, "has operands that are no tensors"));
    };
    let inferred = match rule {
        Some(ShapeRule::Fixed) => return Err(refusal(program, op, "holds its elements")),
        Some(ShapeRule::Operands) => Some(shapes.into_iter().cloned().collect()),
        Some(ShapeRule::Operand(index)) => alike(&shapes, index),
        Some(ShapeRule::Elementwise) => elementwise(&shapes),
        Some(ShapeRule::Attributes(shapes_of)) => shapes_of(program, op, &shapes),
        Some(ShapeRule::FromShardings) | None => None,
    };
    let unknown = || refusal(program, op, "has shapes that are not known here");
    inferred.map(Some).ok_or_else(unknown)
}

/// The shape of one operand.
fn alike(shapes: &[&Shape], operand: usize) -> Option<Vec<Shape>> {
    shapes.get(operand).map(|&shape| vec![shape.clone()])
}

/// The common shape of all operands, except scalars, which a few ops accept.
fn elementwise(shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let first = shapes.iter().find(|shape| !shape.is_empty()).or(shapes.first())?;
    let fits = shapes.iter().all(|shape| shape.is_empty() || shape == first);
    fits.then(|| vec![(*first).clone()])
}

fn transpose(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let dims = ints(program, op, "permutation")?;
    let first = shapes.first()?;
    let size = |&dim: &i64| first.get(usize::try_from(dim).ok()?).copied();
    Some(vec![dims.iter().map(size).collect::<Option<_>>()?])
}

fn concatenate(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let dim = usize::try_from(op_attribute(program, op, "dimension")?.as_int()?).ok()?;
    let mut result = (*shapes.first()?).clone();
    let total: Option<i64> = shapes.iter().map(|shape| shape.get(dim).copied().flatten()).sum();
    *result.get_mut(dim)? = Some(total?);
    let fits = |shape: &&Shape| {
        shape.len() == result.len()
            && shape.iter().zip(&result).enumerate().all(|(at, (a, b))| at == dim || a == b)
    };
    shapes.iter().all(fits).then_some(vec![result])
}

fn pad(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let list = |name| ints(program, op, name);
    let (low, high) = (list("edge_padding_low")?, list("edge_padding_high")?);
    let interior = list("interior_padding")?;
    let size = |(dim, size): (usize, &Option<i64>)| {
        let size = (*size)?;
        Some(Some(size + low.get(dim)? + high.get(dim)? + (size - 1).max(0) * interior.get(dim)?))
    };
    Some(vec![shapes.first()?.iter().enumerate().map(size).collect::<Option<_>>()?])
}

fn dynamic_slice(program: &Program, op: OpId, _: &[&Shape]) -> Option<Vec<Shape>> {
    Some(vec![ints(program, op, "slice_sizes")?.into_iter().map(Some).collect()])
}

fn slice(program: &Program, op: OpId, _: &[&Shape]) -> Option<Vec<Shape>> {
    let list = |name| ints(program, op, name);
    let (starts, limits) = (list("start_indices")?, list("limit_indices")?);
    let strides = list("strides")?;
    let size = |((start, limit), stride): ((i64, i64), i64)| {
        (stride > 0).then(|| Some((limit - start + stride - 1) / stride))
    };
    Some(vec![starts.into_iter().zip(limits).zip(strides).map(size).collect::<Option<_>>()?])
}

fn fft(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let mut shape = (*shapes.first()?).clone();
    let length = *ints(program, op, "fft_length")?.last()?;
    let last = shape.last_mut()?;
    match op_attribute(program, op, "fft_type")?.as_str()? {
        "RFFT" => *last = Some(length / 2 + 1),
        "IRFFT" => *last = Some(length),
        _ => {}
    }
    Some(vec![shape])
}

fn dot(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let dims = DotDims::read(&op_attribute(program, op, "dot_dimension_numbers")?)?;
    let [lhs, rhs] = shapes else { return None };
    let (lhs_batch, rhs_batch) = (dims.lhs_batching, dims.rhs_batching);
    let (lhs_contracted, rhs_contracted) = (dims.lhs_contracting, dims.rhs_contracting);
    let pairs = lhs_batch.iter().zip(&rhs_batch).chain(lhs_contracted.iter().zip(&rhs_contracted));
    let mut pairs = pairs.map(|(&l, &r)| Some(lhs.get(l)? == rhs.get(r)?));
    if !pairs.all(|is_same| is_same == Some(true)) {
        return None;
    }
    let free = |shape: &Shape, batch: &[usize], contracted: &[usize]| -> Shape {
        let is_free = |dim: &usize| !batch.contains(dim) && !contracted.contains(dim);
        (0..shape.len()).filter(is_free).map(|dim| shape[dim]).collect()
    };
    let mut result: Shape = lhs_batch.iter().map(|&dim| lhs[dim]).collect();
    result.extend(free(lhs, &lhs_batch, &lhs_contracted));
    result.extend(free(rhs, &rhs_batch, &rhs_contracted));
    Some(vec![result])
}

fn reduce(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let dims = ints(program, op, "dimensions")?;
    let inputs = &shapes[..shapes.len() / 2];
    let first = inputs.first()?;
    let kept: Shape = (0..first.len())
        .filter(|&dim| !dims.contains(&(dim as i64)))
        .map(|dim| first[dim])
        .collect();
    inputs.iter().all(|shape| shape == first).then(|| vec![kept; inputs.len()])
}

/// Refuses `op` if its types do not match, for ops that [`infer`] does not check.
pub fn check(program: &Program, op: OpId) -> Result<()> {
    let result = program.op_results(op).next().and_then(|result| shape(program, result));
    let operand = program.operands(op).next().and_then(|value| shape(program, value));
    let (Some(result), Some(operand)) = (result, operand) else { return Ok(()) };
    let fits = match program.kind(op) {
        OpKind::BroadcastInDim => {
            let dims = ints(program, op, "broadcast_dimensions").unwrap_or_default();
            dims.iter().zip(operand).all(|(&dim, size)| {
                let target = usize::try_from(dim).ok().and_then(|dim| result.get(dim));
                *size == Some(1) || target == Some(size)
            })
        }
        OpKind::Reshape => {
            let count = |shape: &Shape| shape.iter().copied().product::<Option<i64>>();
            count(operand) == count(result)
        }
        _ if program.op_name(op) == "stablehlo.convert" => operand == result,
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(refusal(program, op, "has an operand and a result that are not padded alike"))
    }
}
