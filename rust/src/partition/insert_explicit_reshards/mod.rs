//! `sdy-insert-explicit-reshards`: makes reshards explicit, so that every op can be computed on its
//! shards.
//!
//! In the full version all tensors of an op get the same axes on the same factor, each axis is used
//! once, and reduction factors that are sharded are followed by an all-reduce. Otherwise only a few ops
//! are treated like that: calls, ragged dots, and concatenates whose operands are not sharded like the
//! result; dots may have their result resharded. Unreduced axes are always treated.
//!
//! Source: Shardy's `insert_explicit_reshards`.

mod dot;
mod edges;
mod reshape;
mod unreduced;

use super::axis_sets::difference;
use super::common_axes::{common_axes, compatible_axes_of, AxesPerFactor};
use crate::axis::{sort_and_merge, AxisRef};
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{Id, MeshId, OpId, RuleId, ShardingId, ValueId};
use crate::ir::{OpKind, OpTraits, Place, Program, SymbolTable, TraitCache};
use crate::projection::Projection;
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;

/// How often a long pass reports.
const REPORT_EVERY: usize = 1 << 14;

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    func: OpId,
    enable_full_version: bool,
) -> Result<()> {
    let has_unreduced =
        program.shardings.ids().any(|id| !program.shardings[id].unreduced.is_empty());
    let symbols = SymbolTable::new(program);
    let mut traits = TraitCache::default();
    let ops: Vec<OpId> = program.post_order(func).collect();
    context.rules.prepare(program, false)?;
    for (done, &op) in ops.iter().enumerate() {
        if done % REPORT_EVERY == 0 {
            context.progress("sdy-insert-explicit-reshards", done, ops.len())?;
        }
        if !traits.has(program, op, OpTraits::TERMINATOR) {
            let is_full = enable_full_version || is_always_full(program, op);
            if is_full || has_unreduced || is_dot(program, op) {
                visit(program, context, &symbols, op, is_full)?;
            }
        }
    }
    if enable_full_version || has_unreduced {
        edges::reshard_returned(program, func, enable_full_version)?;
    }
    Ok(())
}

fn is_dot(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Dot | OpKind::DotGeneral)
}

/// Whether `op` is treated fully even where the full version is off.
fn is_always_full(program: &mut Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::Call => true,
        OpKind::Concatenate => {
            let result = program.sharding_of(program.result(op, 0));
            (0..program.ops[op].num_operands as usize)
                .any(|index| program.sharding_of(program.operand(op, index)) != result)
        }
        OpKind::Other => program.op_name(op) == "mhlo.ragged_dot",
        _ => false,
    }
}

/// The tensors of an op: operands, then results.
pub(crate) struct OpTensors {
    /// Their shardings; those of what is behind propagation barriers.
    pub shardings: Vec<ShardingId>,
    /// How many elements each has; 0 if that is not known.
    pub sizes: Vec<i64>,
    /// The mesh that they are to be sharded over.
    pub mesh: MeshId,
}

/// Which tensors of an op need a reshard.
pub(crate) struct Updates(pub Vec<bool>);

fn visit(
    program: &mut Program,
    context: &mut Context,
    symbols: &SymbolTable,
    op: OpId,
    is_full: bool,
) -> Result<()> {
    if edges::reshard_edges(program, context, op, is_full)? {
        return Ok(());
    }
    if program.kind(op) == OpKind::Call {
        return edges::reshard_call(program, symbols, op, is_full);
    }
    if unreduced::convert_reshard(program, op)? {
        return Ok(());
    }
    unreduced::reduce_operands(program, op)?;
    let rule: RuleId = context.rules.rule(program, op);
    if rule.is_none() || program.rules[rule].is_custom {
        return Ok(());
    }
    let rule = program.rules[rule].clone();
    let Some(tensors) = op_tensors(program, op) else { return Ok(()) };
    let shardings = tensors.shardings.iter().map(|&id| program.shardings.get(id));
    let mut projection = Projection::build(&rule, shardings, program.mesh(tensors.mesh), true);
    let mut common = None;
    if is_full {
        common = Some(reshard_op(program, op, &mut projection, &tensors, &rule));
    } else if is_dot(program, op) {
        dot::reshard_result(program, op, &mut projection, &tensors, &rule);
    }
    reduce_results(program, op, &projection, common.as_ref(), (&rule, tensors.mesh))
}

/// Gives all tensors of `op` the same axes on the same factors; returns these.
fn reshard_op(
    program: &mut Program,
    op: OpId,
    projection: &mut Projection,
    tensors: &OpTensors,
    rule: &OpShardingRule,
) -> AxesPerFactor {
    let overflows =
        projection.tensors.iter().map(crate::projection::TensorFactorShardings::has_overflow);
    let mut updates = Updates(overflows.collect());
    if updates.0.contains(&true) && program.kind(op) == OpKind::Reshape {
        return reshape::reshard(program, op, projection, tensors, rule);
    }
    let common = common_axes(projection, rule, &tensors.sizes, program.mesh(tensors.mesh));
    for (factor, axes) in common.iter().enumerate() {
        for (tensor, update) in projection.tensors.iter_mut().zip(&mut updates.0) {
            *update |= tensor.update(Id::from_index(factor), axes, &[]);
        }
    }
    insert(program, op, projection, tensors, rule, &updates);
    common
}

/// Reshards operands to, and results from, what the factor table says, where `updates` says so or the
/// tensor is over a mesh with another order of devices.
pub(crate) fn insert(
    program: &mut Program,
    op: OpId,
    projection: &Projection,
    tensors: &OpTensors,
    rule: &OpShardingRule,
    updates: &Updates,
) {
    let after = program.point_after(op);
    for (index, &old) in tensors.shardings.iter().enumerate() {
        if !updates.0[index] && !has_other_device_order(program, old, tensors.mesh) {
            continue;
        }
        let is_operand = index < projection.num_operands;
        let mapping = if is_operand {
            &rule.operands[index]
        } else {
            &rule.results[index - projection.num_operands]
        };
        let row = &projection.tensors[index];
        let mesh = program.mesh(tensors.mesh);
        let new = row.to_sharding(mapping, &rule.factor_sizes, tensors.mesh, mesh);
        let new = program.shardings.intern(new);
        if is_operand {
            reshard_operand(program, op, index, new);
        } else {
            let result = program.result(op, index - projection.num_operands);
            reshard_result(program, result, new, tensors.mesh, after);
        }
    }
}

fn has_other_device_order(program: &Program, sharding: ShardingId, mesh: MeshId) -> bool {
    let own = program.mesh_of(sharding);
    !program.is_fully_replicated(sharding)
        && program.mesh(own).device_ids != program.mesh(mesh).device_ids
}

fn reshard_operand(program: &mut Program, op: OpId, index: usize, sharding: ShardingId) {
    let Some(slot) = program.op_uses(op).nth(index) else { return };
    let operand = program.used_value(slot);
    let at = (Place::Before(op), operand);
    let reshard = program.create_sdy_op("sdy.reshard", operand, sharding, None, at);
    program.set_operand(slot, reshard);
}

fn reshard_result(
    program: &mut Program,
    result: ValueId,
    new: ShardingId,
    mesh: MeshId,
    place: Place,
) {
    let old = sharding_or_closed(program, result, mesh);
    let reshard = program.create_sdy_op("sdy.reshard", result, old, None, (place, result));
    if let Some(user) = program.defining_op(reshard) {
        program.replace_all_uses_except(result, reshard, user);
    }
    program.set_result_sharding(result, new);
}

/// The sharding of `value`, or a closed one without axes.
fn sharding_or_closed(program: &mut Program, value: ValueId, mesh: MeshId) -> ShardingId {
    let ty = program.values[value].ty;
    match program.sharding_of(value).get() {
        Some(sharding) => sharding,
        None => program.replicated(mesh, ty, true),
    }
}

/// Sums the results of `op` over the axes of its reduction factors that are not unreduced in them.
fn reduce_results(
    program: &mut Program,
    op: OpId,
    projection: &Projection,
    common: Option<&AxesPerFactor>,
    (rule, mesh): (&OpShardingRule, MeshId),
) -> Result<()> {
    if program.ops[op].num_results == 0 {
        return Ok(());
    }
    let first = program.sharding_of(program.result(op, 0));
    let unreduced = program.unreduced_axes(first).to_vec();
    let mut axes: Vec<AxisRef> = Vec::new();
    if let Some(common) = common {
        axes.extend(rule.reduction.iter().flat_map(|factor| &common[factor.index()]));
    } else if !unreduced.is_empty() {
        for &factor in &rule.reduction {
            let compatible = compatible_axes_of(projection, factor).ok_or_else(|| {
                let message =
                    "a result has unreduced axes while operands disagree on a reduced dim";
                Diagnostic::new(Code::InvalidSharding, message).at(program.ops[op].span)
            })?;
            axes.extend(compatible);
        }
    }
    let mut axes = difference(&axes, &unreduced, program.mesh(mesh));
    if axes.is_empty() {
        return Ok(());
    }
    sort_and_merge(&mut axes, program.mesh(mesh));
    let place = program.point_after(op);
    for index in 0..program.ops[op].num_results as usize {
        let result = program.result(op, index);
        let sharding = sharding_or_closed(program, result, mesh);
        let reduced = program.create_all_reduce(result, axes.clone(), sharding, place);
        if let Some(user) = program.defining_op(reduced) {
            program.replace_all_uses_except(result, reduced, user);
        }
    }
    Ok(())
}

/// The tensors of `op`; `None` if they are over different meshes, or over a single device, or none has
/// a sharding.
fn op_tensors(program: &mut Program, op: OpId) -> Option<OpTensors> {
    let operands = program.op_operands(op).iter().map(|slot| slot.value);
    let values: Vec<ValueId> = operands.chain(program.op_results(op)).collect();
    let mut shardings = Vec::with_capacity(values.len());
    let mut sizes = Vec::with_capacity(values.len());
    for value in values {
        let shape = program.value_type(value).static_shape();
        sizes.push(shape.map_or(0, |shape| shape.iter().fold(1, |n: i64, &m| n.wrapping_mul(m))));
        let behind = behind_barriers(program, value);
        shardings.push(program.sharding_of(behind));
    }
    let common = common_mesh(program, &shardings)?;
    if program.mesh(common).is_maximal() {
        return None;
    }
    let mesh = most_common_mesh(program, &shardings).unwrap_or(common);
    Some(OpTensors { shardings, sizes, mesh })
}

/// What `value` is, seen through propagation barriers.
fn behind_barriers(program: &Program, mut value: ValueId) -> ValueId {
    while let Some(def) = program.defining_op(value) {
        if program.kind(def) != OpKind::PropagationBarrier {
            break;
        }
        value = program.operand(def, 0);
    }
    value
}

/// The mesh that all `shardings` are over but for the order of devices, preferably one with the default
/// order; empty meshes fit any.
pub(crate) fn common_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let mut common: Option<MeshId> = None;
    for &sharding in shardings {
        let Some(mesh) = program.mesh_of(sharding).get() else { continue };
        let is_empty = |mesh: MeshId| {
            let mesh = program.mesh(mesh);
            mesh.axes.is_empty() && mesh.device_ids.is_empty()
        };
        match common {
            Some(known) if !is_empty(known) => {
                if is_empty(mesh) {
                    continue;
                }
                let (known, other) = (program.mesh(known), program.mesh(mesh));
                if known.axes != other.axes || known.is_maximal() != other.is_maximal() {
                    return None;
                }
                if other.device_ids.is_empty() {
                    common = Some(mesh);
                }
            }
            _ => common = Some(mesh),
        }
    }
    common
}

/// The mesh that most of `shardings` that shard something are over; the first to get so far.
fn most_common_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let mut counts: FxHashMap<MeshId, usize> = FxHashMap::default();
    let mut best = (0, None);
    for &sharding in shardings {
        if !program.is_fully_replicated(sharding) {
            let mesh = program.mesh_of(sharding);
            let count = counts.entry(mesh).or_default();
            *count += 1;
            if *count > best.0 {
                best = (*count, Some(mesh));
            }
        }
    }
    best.1
}
