//! Infers the types of padded tensors from shardings, operands and attributes.

use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{OpInfo, OpKind, OpTraits, Program, Type};
use crate::mlir::{op_attribute, op_attributes};
use crate::projection::gcd;
use crate::stablehlo::dims::DotDims;
use crate::stablehlo::windows::{DilationNames, WindowLists, REDUCTION};

/// The sizes of the dims of a tensor; `None` for a dynamic dim.
pub type Shape = Vec<Option<i64>>;

/// `ty` with each dim rounded up to a multiple of its number of shards; `ty` itself if a dim is
/// dynamic or would be too large.
pub fn padded_type(program: &mut Program, ty: TypeId, sharding: ShardingId) -> TypeId {
    padded_for_all(program, ty, &[sharding])
}

/// `ty` with each dim rounded up to a multiple of its number of shards in each of `shardings`; `ty`
/// itself if a dim is dynamic or would be too large.
pub fn padded_for_all(program: &mut Program, ty: TypeId, shardings: &[ShardingId]) -> TypeId {
    let Some(shape) = program.types()[ty].static_shape() else { return ty };
    let mut units = vec![1_i64; shape.len()];
    for &sharding in shardings {
        let Some(sharding) = program.shardings().get(sharding) else { continue };
        let mesh = program.mesh(sharding.mesh);
        for (unit, dim) in units.iter_mut().zip(&sharding.dims) {
            let shards = crate::axis::total_size(&dim.axes, mesh).max(1);
            let Some(common) = unit.checked_mul(shards / gcd(*unit, shards)) else { return ty };
            *unit = common;
        }
    }
    let mut padded = shape.clone();
    for (size, unit) in padded.iter_mut().zip(units) {
        let rest = size.rem_euclid(unit);
        if rest != 0 {
            let Some(whole) = size.checked_add(unit - rest) else { return ty };
            *size = whole;
        }
    }
    if padded == shape {
        return ty;
    }
    program.tensor_type(&padded, ty)
}

fn shape_of(program: &Program, ty: TypeId) -> Option<&Shape> {
    match &program.types()[ty] {
        Type::RankedTensor { shape, .. } => Some(shape),
        _ => None,
    }
}

pub(super) fn ints(program: &Program, op: OpId, name: &str) -> Option<Vec<i64>> {
    op_attribute(program, op, name)?.as_ints()
}

/// How the result shapes of a padded op are inferred.
#[derive(Clone, Copy, Debug)]
pub enum ShapeRule {
    /// From the shardings of the results, since the operands do not determine them.
    FromShardings,
    /// Result `i` has the shape of operand `i`.
    Operands,
    /// All results have the shape of this operand.
    Operand(usize),
    /// All results have the shape of the operands that are not scalars.
    Elementwise,
    /// From operands and attributes.
    Attributes(fn(&Program, OpId, &[&Shape]) -> Option<Vec<Shape>>),
    /// By the function that pads the op.
    Own,
    /// They are fixed, since the elements are an attribute of the op.
    Fixed,
}

impl ShapeRule {
    /// The rule for ops called `name`; `None` if they are not padded.
    pub fn of(name: &str) -> Option<Self> {
        let rule = match OpKind::from_name(name) {
            OpKind::BroadcastInDim | OpKind::CustomCall | OpKind::Iota | OpKind::Reshape => {
                Self::FromShardings
            }
            OpKind::Case
            | OpKind::Convolution
            | OpKind::Gather
            | OpKind::If
            | OpKind::Scatter
            | OpKind::While => Self::Own,
            OpKind::Constant => Self::Fixed,
            OpKind::AllGather
            | OpKind::AllReduce
            | OpKind::AllSlice
            | OpKind::CollectivePermute
            | OpKind::OptimizationBarrier
            | OpKind::ReplicatedToUnreduced
            | OpKind::ShardedToUnreduced
            | OpKind::Sort => Self::Operands,
            OpKind::Transpose => Self::Attributes(transpose),
            OpKind::Concatenate => Self::Attributes(concatenate),
            OpKind::Pad => Self::Attributes(pad),
            OpKind::Slice => Self::Attributes(slice),
            OpKind::DynamicSlice => Self::Attributes(dynamic_slice),
            OpKind::DynamicUpdateSlice | OpKind::SelectAndScatter => Self::Operand(0),
            OpKind::ReduceWindow => Self::Attributes(reduce_window),
            OpKind::Dot | OpKind::DotGeneral => Self::Attributes(dot),
            OpKind::Reduce => Self::Attributes(reduce),
            _ => return Self::of_other(name),
        };
        Some(rule)
    }
    fn of_other(name: &str) -> Option<Self> {
        match name {
            "stablehlo.bitcast_convert" | "stablehlo.convert" => Some(Self::FromShardings),
            "stablehlo.map" => Some(Self::Elementwise),
            "stablehlo.batch_norm_inference" => Some(Self::Attributes(batch_norm_inference)),
            "stablehlo.reverse" | "stablehlo.cholesky" | "stablehlo.cross-replica-sum" => {
                Some(Self::Operand(0))
            }
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

/// The result types of `op` with these operands, with each dim a multiple of its number of shards;
/// `None` if there are none, or if `op` would be invalid with these types.
pub fn padded_results(
    program: &mut Program,
    op: OpId,
    operands: &[ValueId],
) -> Option<Vec<TypeId>> {
    let rule = ShapeRule::of(program.op_name(op))?;
    let shapes = infer(program, op, rule, operands)?;
    let results: Vec<ValueId> = program.op_results(op).collect();
    let mut types = Vec::with_capacity(results.len());
    for (index, result) in results.into_iter().enumerate() {
        let sharding = program.sharding_of(result);
        let mut ty = padded_type(program, program.type_of(result), sharding);
        if let Some(shape) = shapes.get(index) {
            ty = program.ranked_type(shape, ty);
            if padded_type(program, ty, sharding) != ty {
                return None;
            }
        }
        types.push(ty);
    }
    let first = operands.first().map(|&operand| program.type_of(operand));
    fits(program, op, first, types.first().copied()).then_some(types)
}

/// The result shapes of `op`, which has this rule, with these operands: empty if they follow from
/// the shardings, `None` if the operands do not fit together or are not tensors.
fn infer(program: &Program, op: OpId, rule: ShapeRule, operands: &[ValueId]) -> Option<Vec<Shape>> {
    if matches!(rule, ShapeRule::FromShardings) {
        return Some(Vec::new());
    }
    let shape = |&operand: &ValueId| shape_of(program, program.type_of(operand));
    let shapes = operands.iter().map(shape).collect::<Option<Vec<&Shape>>>()?;
    match rule {
        ShapeRule::Operands => Some(shapes.into_iter().cloned().collect()),
        ShapeRule::Operand(index) => alike(&shapes, index),
        ShapeRule::Elementwise => elementwise(&shapes),
        ShapeRule::Attributes(shapes_of) => shapes_of(program, op, &shapes),
        ShapeRule::Fixed | ShapeRule::FromShardings | ShapeRule::Own => None,
    }
}

/// The shape of one operand, for all results.
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

/// The windows of `op`, whose dilations have these names.
pub fn windows(program: &Program, op: OpId, dilations: DilationNames) -> Option<WindowLists> {
    let attributes = op_attributes(program, op);
    let find = |name: &str| attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
    WindowLists::read(find, dilations)
}

fn batch_norm_inference(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let (first, features) = shapes.split_first()?;
    let dim = usize::try_from(op_attribute(program, op, "feature_index")?.as_int()?).ok()?;
    let fits = |shape: &&Shape| shape[..] == first[dim..=dim];
    (dim < first.len() && features.iter().all(fits)).then(|| vec![(*first).clone()])
}

fn reduce_window(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let windows = windows(program, op, REDUCTION)?;
    let inputs = &shapes[..shapes.len() / 2];
    let first = inputs.first()?;
    let size = |(dim, &size): (usize, &Option<i64>)| windows.dim(dim)?.num_windows(size).map(Some);
    let result = first.iter().enumerate().map(size).collect::<Option<Shape>>()?;
    inputs.iter().all(|shape| shape == first).then(|| vec![result; inputs.len()])
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

/// The dims of `op`, a `stablehlo.dot_general` or a `stablehlo.dot`, which contracts the last dim of its left operand and
/// the first of its right one.
pub fn dot_dims(program: &Program, op: OpId) -> Option<DotDims> {
    if program.kind(op) == OpKind::Dot {
        let lhs_rank = program.value_type(program.operand(op, 0)).rank()?;
        let lhs_contracting = [lhs_rank.checked_sub(1)?].into_iter().collect();
        let rhs_contracting = [0].into_iter().collect();
        return Some(DotDims { lhs_contracting, rhs_contracting, ..DotDims::default() });
    }
    DotDims::read(&op_attribute(program, op, "dot_dimension_numbers")?)
}

fn dot(program: &Program, op: OpId, shapes: &[&Shape]) -> Option<Vec<Shape>> {
    let [lhs, rhs] = shapes else { return None };
    let dims = dot_dims(program, op)?;
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

/// Whether the types of the first operand and result of `op` fit together, for ops that [`infer`]
/// does not check.
fn fits(
    program: &Program,
    op: OpId,
    operand_type: Option<TypeId>,
    result_type: Option<TypeId>,
) -> bool {
    let shape = |ty: Option<TypeId>| shape_of(program, ty?);
    let bits = |ty: Option<TypeId>| match &program.types()[ty?] {
        Type::RankedTensor { element, .. } => element.bits,
        _ => None,
    };
    let shapes = (shape(result_type), shape(operand_type));
    let (Some(result), Some(operand)) = shapes else { return true };
    match program.kind(op) {
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
        // If element sizes differ, the parts of the wider elements are an additional dim, which
        // must not be padded.
        OpKind::BitcastConvert => {
            let (Some(from), Some(to)) = (bits(operand_type), bits(result_type)) else {
                return false;
            };
            let (longer, shorter) = if from > to { (result, operand) } else { (operand, result) };
            let mut expected = shorter.clone();
            if from != to {
                expected.push(Some(i64::from(from.max(to) / from.min(to).max(1))));
            }
            *longer == expected
        }
        _ => true,
    }
}
