//! Ops that change unreduced axes, over which values are still to be reduced.
//!
//! A reshard from unreduced to replicated is an all-reduce. A reshard from replicated or sharded to
//! unreduced becomes an op without communication.

use crate::axis::{prefix_status, sort_and_merge, AxisRef, PrefixStatus};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{Id, OpId, ShardingId, UseId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program};
use crate::partition::axis_sets::difference;
use crate::sharding::{ReductionOp, TensorSharding};

/// Fails unless two shardings have the same mesh.
fn check_same_mesh(program: &Program, source: ShardingId, target: ShardingId) -> Result<()> {
    let mesh = |sharding| program.mesh(program.mesh_of(sharding));
    if mesh(source) == mesh(target) {
        return Ok(());
    }
    let message = "a value with unreduced axes is used with a sharding over another mesh";
    Err(Diagnostic::new(Code::InvalidSharding, message).into())
}

/// Inserts an all-reduce of the value of `slot`, sharded as `source`, over its unreduced axes that
/// are not unreduced in `target`; returns the sharding after it.
pub fn reduce_for_use(
    program: &mut Program,
    slot: UseId,
    source: ShardingId,
    target: ShardingId,
    place: Place,
) -> Result<ShardingId> {
    let unreduced = program.unreduced_axes(source).to_vec();
    if unreduced.is_empty() {
        return Ok(source);
    }
    if target.is_some() {
        check_same_mesh(program, source, target)?;
    }
    let mesh = program.mesh(program.mesh_of(source));
    let reduced = difference(&unreduced, program.unreduced_axes(target), mesh);
    if reduced.is_empty() {
        return Ok(source);
    }
    let left = difference(&unreduced, &reduced, mesh);
    let sharding = TensorSharding { unreduced: left, ..program.shardings()[source].clone() };
    let sharding = program.intern_sharding(sharding);
    let input = program.used_value(slot);
    let result = program.create_all_reduce(input, reduced, sharding, place);
    program.set_operand(slot, result);
    Ok(sharding)
}

/// Inserts all-reduces of the operands of `op` over axes that are unreduced in them and not in its
/// results.
pub fn reduce_operands(program: &mut Program, op: OpId) -> Result<()> {
    let results: Vec<_> = program.op_results(op).collect();
    let slots: Vec<UseId> = program.op_uses(op).collect();
    let Some((&first, others)) = results.split_first() else {
        for slot in slots {
            let sharding = program.sharding_of(program.used_value(slot));
            if !program.unreduced_axes(sharding).is_empty() {
                return Err(mismatch(
                    program,
                    op,
                    "has operands with unreduced axes, and no results",
                ));
            }
        }
        return Ok(());
    };
    let target = program.sharding_of(first);
    for &other in others {
        let other = program.sharding_of(other);
        if program.unreduced_axes(other) != program.unreduced_axes(target) {
            return Err(mismatch(program, op, "has results with different unreduced axes"));
        }
    }
    for slot in slots {
        let source = program.sharding_of(program.used_value(slot));
        if source.is_some() {
            reduce_for_use(program, slot, source, target, Place::Before(op))?;
        }
    }
    Ok(())
}

fn mismatch(program: &Program, op: OpId, what: &str) -> crate::error::Error {
    let message = format!("'{}' {what}", program.op_name(op));
    Diagnostic::new(Code::InvalidSharding, message).at_op(program, op).into()
}

/// Replaces a reshard that adds unreduced axes by the ops that do so; returns whether it did.
pub fn convert_reshard(program: &mut Program, op: OpId) -> Result<bool> {
    if program.kind(op) != OpKind::Reshard {
        return Ok(false);
    }
    let Some(slot) = program.op_uses(op).next() else { return Ok(false) };
    let result = program.result(op, 0);
    let target = program.sharding(result);
    let num_ops = program.num_op_ids();
    if add_unreduced_axes(program, slot, target, Place::Before(op))?.is_none() {
        return Ok(false);
    }
    let converted = program.used_value(slot);
    for made in num_ops..program.num_op_ids() {
        program.set_cause(OpId::from_index(made), op);
    }
    program.replace_all_uses(result, converted);
    program.erase_op(op);
    Ok(true)
}

/// The steps from a sharding to one with more unreduced axes.
struct Plan {
    /// The sharding after axes have been moved between dims, as far as a reshard is needed.
    dims: TensorSharding,
    needs_reshard: bool,
    /// For each dim the axes that change from sharding it to unreduced.
    from_sharded: Vec<Vec<AxisRef>>,
    /// Axes that change from replicated to unreduced.
    from_replicated: Vec<AxisRef>,
}

/// Adds the unreduced axes of `target` to the value of `slot`, after a reshard if one is needed;
/// returns the sharding after it, or `None` if there are none to add.
pub fn add_unreduced_axes(
    program: &mut Program,
    slot: UseId,
    target: ShardingId,
    place: Place,
) -> Result<Option<ShardingId>> {
    let input = program.used_value(slot);
    let source = program.sharding_of(input);
    if source.is_none() || program.unreduced_axes(target).is_empty() {
        return Ok(None);
    }
    check_same_mesh(program, source, target)?;
    let Some(plan) = plan(program, source, target)? else { return Ok(None) };
    let at = InsertPoint { place, loc: program.value_loc(input) };
    let mut value = input;
    let mut last = source;
    if plan.needs_reshard {
        let dims = plan.dims.dims.clone();
        let moved = TensorSharding { dims, ..program.shardings()[source].clone() };
        last = program.intern_sharding(moved);
        value = program.create_sdy_op(OpKind::Reshard, value, last, None, at);
    }
    if !plan.from_replicated.is_empty() {
        let mut unreduced = program.unreduced_axes(source).to_vec();
        unreduced.extend(&plan.from_replicated);
        sort_and_merge(&mut unreduced, program.mesh(program.mesh_of(source)));
        let relabelled = TensorSharding {
            mesh: program.mesh_of(source),
            unreduced,
            replicated: program.shardings()[target].replicated.clone(),
            ..plan.dims
        };
        last = program.intern_sharding(relabelled);
        let payload = Some(Payload::Axes(plan.from_replicated, ReductionOp::Sum));
        let kind = OpKind::ReplicatedToUnreduced;
        value = program.create_sdy_op(kind, value, last, payload, at);
    }
    if plan.from_sharded.iter().any(|axes| !axes.is_empty()) {
        let payload = Some(Payload::axes_per_dim(plan.from_sharded));
        last = target;
        let kind = OpKind::ShardedToUnreduced;
        value = program.create_sdy_op(kind, value, last, payload, at);
    }
    if value == input {
        return Ok(None);
    }
    program.set_operand(slot, value);
    Ok(Some(last))
}

/// Plans the ops for the unreduced axes of `target`; `None` if `source` has all of them.
fn plan(program: &Program, source: ShardingId, target: ShardingId) -> Result<Option<Plan>> {
    let (from, to) = (&program.shardings()[source], &program.shardings()[target]);
    let mesh = program.mesh(from.mesh);
    let added = difference(&to.unreduced, &from.unreduced, mesh);
    if added.is_empty() {
        return Ok(None);
    }
    if !difference(&from.unreduced, &to.unreduced, mesh).is_empty() {
        let message = "a reshard both adds and removes unreduced axes";
        return Err(Diagnostic::new(Code::InvalidSharding, message).into());
    }
    let mut dims = to.clone();
    let mut needs_reshard = false;
    let mut from_sharded = Vec::with_capacity(dims.dims.len());
    for (before, after) in from.dims.iter().zip(&mut dims.dims) {
        let mut freed = Vec::new();
        match prefix_status(&after.axes, &before.axes) {
            PrefixStatus::Equal => {}
            PrefixStatus::NotAPrefix => needs_reshard = true,
            PrefixStatus::StrictPrefix => {
                freed = axes_beyond(&before.axes, &after.axes, mesh);
                if difference(&freed, &added, mesh).is_empty() {
                    after.clone_from(before);
                } else {
                    freed.clear();
                    needs_reshard = true;
                }
            }
        }
        from_sharded.push(freed);
    }
    let sharded: Vec<AxisRef> = from_sharded.iter().flatten().copied().collect();
    let from_replicated = difference(&added, &sharded, mesh);
    Ok(Some(Plan { dims, needs_reshard, from_sharded, from_replicated }))
}

/// The axes of `axes` after `prefix`, which may end with a sub-axis of one.
fn axes_beyond(axes: &[AxisRef], prefix: &[AxisRef], mesh: &crate::mesh::Mesh) -> Vec<AxisRef> {
    let mut beyond = Vec::new();
    if let Some((&last, &counterpart)) = prefix.last().zip(axes.get(prefix.len().wrapping_sub(1))) {
        if last != counterpart {
            beyond.extend(counterpart.suffix_without_overlap(last, mesh));
        }
    }
    beyond.extend(&axes[prefix.len()..]);
    beyond
}
