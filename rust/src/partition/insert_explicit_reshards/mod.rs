//! `sdy-insert-explicit-reshards`: makes reshards explicit, so that every op can be computed on its
//! shards.
//!
//! In the full version all tensors of an op get the same axes on the same factor, each axis is used
//! once, and ops with sharded reduction factors are followed by an all-reduce. Otherwise this is
//! done only for calls, ragged dots, and concatenates whose operands are not sharded like the
//! result; results of dots may be resharded. Unreduced axes are always reduced where necessary.
//!
//! Source: Shardy's `insert_explicit_reshards`.

mod dot;
mod edges;
mod reductions;
mod reshape;
mod single_device;
pub(super) mod tensors;
mod unreduced;

use super::common_axes::{common_axes, compatible_axes_of};
use crate::axis::AxisRef;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{Id, MeshId, OpId, RuleId, ShardingId, SignatureId, ValueId};
use crate::ir::{InsertPoint, OpKind, OpTraits, Place, Program, SymbolTable};
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::{Projection, TensorFactorShardings};
use crate::shardy::Change;
use reductions::{reduce_results, PartialResults};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
pub use tensors::sharding_or_closed;
use tensors::{op_mesh, tensor_shardings, tensor_sizes};

const RAGGED_DOT: &str = "mhlo.ragged_dot";
/// The number of ops between two reports of progress.
const REPORT_EVERY: usize = 1 << 14;

/// Runs the pass on `functions`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    functions: &[OpId],
    enable_full_version: bool,
    marks_partial_results: bool,
) -> Result<()> {
    context.rules.prepare(program, false)?;
    let reshards_devices = program.shardy().has(Change::SingleDeviceReshards);
    let is_unreduced = |id: ShardingId| !program.shardings()[id].unreduced.is_empty();
    let mut pass = Pass {
        is_full: enable_full_version,
        has_unreduced: program.shardings().ids().any(is_unreduced),
        has_single_device: reshards_devices
            && program.shardings().ids().any(|id| program.is_on_single_device(id)),
        partial: if marks_partial_results {
            PartialResults::Marked
        } else {
            PartialResults::Unmarked
        },
        symbols: SymbolTable::new(program),
        plans: Plans::default(),
        settled: FxHashSet::default(),
    };
    if !pass.is_full && !pass.has_unreduced && !pass.has_single_device {
        return pass.run_on_few(program, context);
    }
    for (done, &func) in functions.iter().enumerate() {
        if done % REPORT_EVERY == 0 {
            context.progress("sdy-insert-explicit-reshards", done, functions.len())?;
        }
        pass.run(program, context, func)?;
    }
    Ok(())
}

/// The state of the pass, for all functions.
struct Pass {
    /// Whether the full version is on.
    is_full: bool,
    /// Whether any sharding in the program has unreduced axes.
    has_unreduced: bool,
    /// Whether any value is on a single device, in versions that treat these specially.
    has_single_device: bool,
    partial: PartialResults,
    symbols: SymbolTable,
    plans: Plans,
    settled: FxHashSet<(SignatureId, RuleId, [ShardingId; 3])>,
}

impl Pass {
    /// Runs the pass if the full version is off and there are no unreduced axes: only a few kinds
    /// of ops are visited.
    fn run_on_few(&mut self, program: &mut Program, context: &mut Context) -> Result<()> {
        let kinds = [OpKind::Call, OpKind::Concatenate, OpKind::DotGeneral, OpKind::Dot];
        let ops = match program.strings().find(RAGGED_DOT) {
            None => program.ops_in_post_order(&kinds),
            Some(name) => {
                let ops = program.post_order(program.module_op());
                let is_one = |op: &OpId| {
                    program.op_name_id(*op) == name || kinds.contains(&program.kind(*op))
                };
                ops.filter(is_one).collect()
            }
        };
        for (done, &op) in ops.iter().enumerate() {
            if done % REPORT_EVERY == REPORT_EVERY - 1 {
                context.progress("sdy-insert-explicit-reshards", done, ops.len())?;
            }
            if is_dot(program, op) {
                self.visit_dot(program, context, op)?;
            } else if is_always_full(program, op) {
                self.visit(program, context, op, true)?;
            }
        }
        Ok(())
    }
    /// Visits a dot, unless an earlier one with equal signature, rule and shardings needed no
    /// reshard.
    fn visit_dot(&mut self, program: &mut Program, context: &Context, op: OpId) -> Result<()> {
        let rule: RuleId = context.rules.rule(program, op);
        if rule.is_none() || program.rules()[rule].is_custom {
            return Ok(());
        }
        let shardings = tensor_shardings(program, op);
        let key = <[ShardingId; 3]>::try_from(shardings.as_slice());
        let key = key.ok().map(|tensors| (program.signature(op), rule, tensors));
        let key = key.filter(|(signature, ..)| signature.is_some());
        if key.is_some_and(|key| self.settled.contains(&key)) {
            return Ok(());
        }
        let num_ops = program.num_op_ids();
        let owned = program.rules()[rule].clone();
        self.visit_partly(program, op, &shardings, &owned)?;
        if program.num_op_ids() == num_ops {
            self.settled.extend(key);
        }
        Ok(())
    }
    fn run(&mut self, program: &mut Program, context: &mut Context, func: OpId) -> Result<()> {
        if self.has_single_device {
            Self::check_function(program, func)?;
        }
        let ops: Vec<OpId> = program.post_order(func).collect();
        for (done, &op) in ops.iter().enumerate() {
            if done % REPORT_EVERY == REPORT_EVERY - 1 {
                context.progress("sdy-insert-explicit-reshards", done, ops.len())?;
            }
            if program.has_traits(op, OpTraits::TERMINATOR) {
                continue;
            }
            let is_full = self.is_full || is_always_full(program, op);
            let may_change = is_full || self.has_unreduced || self.has_single_device;
            if may_change || is_dot(program, op) {
                self.visit(program, context, op, is_full)?;
            }
        }
        if self.is_full || self.has_unreduced {
            edges::reshard_returned(program, func, self.is_full)?;
        }
        Ok(())
    }
    fn visit(
        &mut self,
        program: &mut Program,
        context: &mut Context,
        op: OpId,
        is_full: bool,
    ) -> Result<()> {
        if edges::reshard_edges(program, context, op, is_full)? {
            return Ok(());
        }
        if program.kind(op) == OpKind::Call {
            return edges::reshard_call(program, &self.symbols, op, is_full);
        }
        if unreduced::convert_reshard(program, op)? {
            return Ok(());
        }
        unreduced::reduce_operands(program, op)?;
        if self.has_single_device && single_device::reshard(program, op)? {
            return Ok(());
        }
        let rule: RuleId = context.rules.rule(program, op);
        if rule.is_none() || program.rules()[rule].is_custom {
            return Ok(());
        }
        let shardings = tensor_shardings(program, op);
        if !is_full {
            let rule = program.rules()[rule].clone();
            return self.visit_partly(program, op, &shardings, &rule);
        }
        let mut key = shardings.clone();
        if program.kind(op) == OpKind::Reshape {
            key.push(program.sharding_of(program.operand(op, 0)));
        }
        let key = (program.signature(op), rule, key);
        let known = self.plans.get(&key).filter(|_| key.0.is_some());
        let plan = if let Some(plan) = known {
            plan.clone()
        } else {
            let rule = program.rules()[rule].clone();
            let plan = plan(program, op, &shardings, &rule).map(Rc::new);
            self.plans.insert(key, plan.clone());
            plan
        };
        if let Some(plan) = plan {
            apply(program, op, &plan);
            reduce_results(program, op, &plan.reduced, plan.mesh, self.partial)?;
        }
        Ok(())
    }
    /// Visits an op if the full version is off.
    fn visit_partly(
        &self,
        program: &mut Program,
        op: OpId,
        shardings: &[ShardingId],
        rule: &OpShardingRule,
    ) -> Result<()> {
        let Some(mesh) = op_mesh(program, shardings) else { return Ok(()) };
        let given = shardings.iter().map(|&id| program.shardings().get(id));
        let mut projection = Projection::build(rule, given, program.mesh(mesh), true);
        if is_dot(program, op) {
            dot::reshard_result(program, op, &mut projection, (shardings, mesh), rule);
        }
        if program.num_results(op) == 0 {
            return Ok(());
        }
        let first = program.sharding_of(program.result(op, 0));
        if program.unreduced_axes(first).is_empty() {
            return Ok(());
        }
        let mut reduced: Vec<AxisRef> = Vec::new();
        for &factor in &rule.reduction {
            reduced.extend(compatible_axes_of(&projection, factor).ok_or_else(|| {
                let message =
                    "a result has unreduced axes while operands disagree on a reduced dim";
                Diagnostic::new(Code::InvalidSharding, message).at_op(program, op)
            })?);
        }
        reduce_results(program, op, &reduced, mesh, self.partial)
    }
}

fn is_dot(program: &Program, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Dot | OpKind::DotGeneral)
}

/// Whether all tensors of `op` are resharded even if the full version is off.
fn is_always_full(program: &mut Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::Call => true,
        OpKind::Concatenate => {
            let result = program.sharding_of(program.result(op, 0));
            (0..program.num_operands(op))
                .any(|index| program.sharding_of(program.operand(op, index)) != result)
        }
        OpKind::Other => program.op_name(op) == RAGGED_DOT,
        _ => false,
    }
}

/// The new shardings of an op's tensors.
pub(crate) struct Plan {
    /// The mesh of the new shardings.
    pub mesh: MeshId,
    /// The new sharding of each operand, then each result; `NONE` if it does not change.
    pub shardings: Vec<ShardingId>,
    /// The axes of reduction factors.
    reduced: Vec<AxisRef>,
}

/// Plans by signature, rule and shardings; `None` if there is nothing to reshard.
type Plans = FxHashMap<(SignatureId, RuleId, Vec<ShardingId>), Option<Rc<Plan>>>;

/// Plans the same axes on the same factors for all tensors of `op`; `None` if they are over
/// different meshes or over a single device, or if none has a sharding.
fn plan(
    program: &mut Program,
    op: OpId,
    shardings: &[ShardingId],
    rule: &OpShardingRule,
) -> Option<Plan> {
    let mesh = op_mesh(program, shardings)?;
    let given = shardings.iter().map(|&id| program.shardings().get(id));
    let mut projection = Projection::build(rule, given, program.mesh(mesh), true);
    let mut updates: Vec<bool> =
        projection.tensors.iter().map(TensorFactorShardings::has_overflow).collect();
    let common = if updates.contains(&true) && program.kind(op) == OpKind::Reshape {
        reshape::common_axes(program, op, &mut projection, (shardings, mesh), rule, &mut updates)
    } else {
        let sizes = tensor_sizes(program, op);
        let common = common_axes(&projection, rule, &sizes, program.mesh(mesh));
        for (factor, axes) in common.iter().enumerate() {
            projection.update(Id::from_index(factor), axes, |tensor| updates[tensor] = true);
        }
        common
    };
    let reduced = rule.reduction.iter().flat_map(|factor| &common[factor.index()]);
    let reduced = reduced.copied().collect();
    let shardings = new_shardings(program, &projection, (shardings, mesh), rule, &updates);
    Some(Plan { mesh, shardings, reduced })
}

impl Plan {
    /// The plan of the factor table for tensors in `updates` or over a mesh with another device
    /// order; other tensors do not change.
    pub(crate) fn from_table(
        program: &mut Program,
        projection: &Projection,
        (shardings, mesh): (&[ShardingId], MeshId),
        rule: &OpShardingRule,
        updates: &[bool],
    ) -> Self {
        let shardings = new_shardings(program, projection, (shardings, mesh), rule, updates);
        Self { mesh, shardings, reduced: Vec::new() }
    }
}

/// The shardings of tensors that are in `updates`, or over a mesh with another device order.
fn new_shardings(
    program: &mut Program,
    projection: &Projection,
    (shardings, mesh): (&[ShardingId], MeshId),
    rule: &OpShardingRule,
    updates: &[bool],
) -> Vec<ShardingId> {
    let mut new = Vec::with_capacity(shardings.len());
    for (index, (mapping, &old)) in rule.tensors().zip(shardings).enumerate() {
        if !updates[index] && !has_other_device_order(program, old, mesh) {
            new.push(ShardingId::NONE);
            continue;
        }
        let row = &projection.tensors[index];
        let sharding = row.to_sharding(mapping, &rule.factor_sizes, mesh, program.mesh(mesh));
        new.push(program.intern_sharding(sharding));
    }
    new
}

/// Reshards operands to the shardings of `plan`, and results from them.
pub(crate) fn apply(program: &mut Program, op: OpId, plan: &Plan) {
    let num_operands = program.num_operands(op);
    let (operands, results) = plan.shardings.split_at(num_operands.min(plan.shardings.len()));
    for (slot, &sharding) in program.op_uses(op).zip(operands) {
        if sharding.is_some() {
            let operand = program.used_value(slot);
            let at = InsertPoint { place: Place::Before(op), loc: program.value_loc(operand) };
            let reshard = program.build_unary(OpKind::Reshard, operand, sharding, at);
            program.set_cause(reshard, op);
            program.set_operand(slot, program.result(reshard, 0));
        }
    }
    let place = program.place_after(op);
    for (result, &sharding) in program.op_results(op).zip(results) {
        if sharding.is_some() {
            reshard_result(program, result, sharding, plan.mesh, place);
        }
    }
}

fn has_other_device_order(program: &Program, sharding: ShardingId, mesh: MeshId) -> bool {
    let own = program.mesh_of(sharding);
    !program.is_fully_replicated(sharding)
        && program.mesh(own).device_ids != program.mesh(mesh).device_ids
}

fn reshard_result(
    program: &mut Program,
    result: ValueId,
    new: ShardingId,
    mesh: MeshId,
    place: Place,
) {
    let old = sharding_or_closed(program, result, mesh);
    reshard_uses(program, result, old, place);
    program.set_result_sharding(result, new);
}

/// Replaces all uses of `result` by a reshard of it to `sharding`, at `place`.
fn reshard_uses(program: &mut Program, result: ValueId, sharding: ShardingId, place: Place) {
    let at = InsertPoint { place, loc: program.value_loc(result) };
    let reshard = program.build_unary(OpKind::Reshard, result, sharding, at);
    program.replace_all_uses_except(result, program.result(reshard, 0), reshard);
    if let Some(op) = program.defining_op(result) {
        program.set_cause(reshard, op);
    }
}
