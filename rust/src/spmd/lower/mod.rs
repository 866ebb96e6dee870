//! Lowering: each op of the program becomes ops with local shapes.
//!
//! The program is converted in place, op by op in program order. [`LocalValue`] has the local value of each value of the source
//! program. An op that can be computed on shards keeps its place and gets local operands and types; collectives before it reshard
//! its operands, collectives after it reduce its partial results. Along dims on which an op cannot be computed on shards its
//! operands are gathered, and devices slice the results. [`super::strategy`] lists the strategies to compute an op, and chooses
//! one.

pub(super) mod choice;
mod constants;
mod control_flow;
mod convert_global_to_local;
mod custom_calls;
mod emission;
mod gather_scatter;
mod identity;
mod lowering_kind;
mod masks;
mod op_with_rule;
mod options;
mod reduction;
mod reshape;
mod resharding;
mod sharding_rule_lowering;
mod unsupported_ops;
mod windows;

use super::collectives::{last_channel, Collectives};
use super::custom_calls::ShardRules;
use super::devices::Devices;
use super::digits::Digit;
use super::emit::Emitter;
use super::op_copies::Made;
use super::outcome::{Outcome, OutcomeKind};
use super::placement::{PlacementId, Placements};
use super::reducer::Reducer;
use super::reshard::{Plan, PlanCache, PlanKey};
use super::reshard_steps::{Step, Steps};
use super::Partitioned;
use crate::bitset::BitSet;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, FuncId, IdVec, OpId, ShardingId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{OpKind, Program};
use crate::spmd::lower::choice::decision_cache::Decisions;
use crate::spmd::lower::choice::shared_decision_cache::SharedDecisions;
use crate::spmd::lower::constants::argument_free_table::WholeValues;
use crate::spmd::lower::constants::broadcast_table::Broadcasts;
pub(super) use crate::spmd::lower::emission::local_value::{LocalValue, Shard};
use crate::spmd::lower::emission::repeated_op_table::Alike;
use crate::spmd::lower::reduction::sharded_sum_table::KnownSums;
use crate::spmd::lower::resharding::device_orders::orders;
use crate::spmd::lower::resharding::plan_table::{PlanOf, Planned};
use crate::spmd::lower::windows::shared_windows::Taken;
pub use lowering_kind::LoweringKind;
use op_with_rule::Tensors;
pub(super) use options::How;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Borrow;
use std::rc::Rc;
use std::sync::Arc;

/// A task of the lowering.
enum Task {
    /// Lower this op and those after it in its block.
    Ops(OpId),
    /// Complete this op, whose regions are lowered.
    Finish(OpId),
    /// From here on, terminators reshard their operands to these placements.
    BeginReturns(Vec<PlacementId>),
    /// End the last [`Task::BeginReturns`].
    EndReturns,
}

/// Visits between two reports of progress.
const REPORT_EVERY: usize = 1 << 14;

/// A program while it is lowered.
pub(super) struct Lowering<'p, 'c, 'r> {
    pub emit: Emitter<'p>,
    pub collectives: Collectives,
    pub placements: Placements,
    pub context: &'c mut Context<'r>,
    decisions: Decisions,
    alike: Alike,
    /// The decisions shared with other programs, and the number of the options and devices of this one.
    shared: SharedDecisions,
    setting: usize,
    /// The users' partition rules of custom calls.
    pub shard_rules: ShardRules,
    how: How,
    held: Vec<Option<LocalValue>>,
    /// The tensors of the current op, and its resharded operands; fields to reuse their memory.
    tensors: Tensors,
    operands: Vec<LocalValue>,
    /// Whether the source program has an `sdy.all_reduce` or `sdy.reduce_scatter`.
    has_reductions: bool,
    /// The reshards so far, with their blocks.
    resharded: FxHashMap<(Shard, PlacementId, u32), (BlockId, LocalValue)>,
    sums: KnownSums,
    plans: FxHashMap<PlanOf, Planned>,
    /// The ops that take windows, if they can be copied.
    taken: FxHashMap<Taken, Made>,
    known_plans: FxHashMap<PlanKey, Arc<Plan>>,
    /// The rank of each sharding, and its placement.
    by_sharding: IdVec<ShardingId, (usize, PlacementId)>,
    /// A cache of [`Lowering::local_type`].
    local_types: FxHashMap<(TypeId, PlacementId), TypeId>,
    /// The values that are broadcasts, with their operands.
    broadcasts: Broadcasts,
    unvarying: WholeValues,
    /// The dims of broadcasts, by their signatures.
    broadcast_dims: FxHashMap<SignatureId, Rc<[i64]>>,
    /// Slices that are skipped because concatenations fetch from their operands: the operands and starts.
    slices: FxHashMap<ValueId, (ValueId, i64)>,
    /// Names of ops whose lowering is determined by their sharding rules alone.
    known_names: FxHashSet<StrId>,
    /// The name of `stablehlo.reverse`.
    reverse: StrId,
    /// Functions by name.
    functions: FxHashMap<StrId, FuncId>,
    tasks: Vec<Task>,
    /// The placements to which terminators of the open regions reshard their operands.
    returns: Vec<Vec<PlacementId>>,
    /// For the results of successive reshards: the placement of the last one, and its result.
    ahead: FxHashMap<ValueId, (PlacementId, ValueId)>,
    /// Ops that have become dead.
    dead: Vec<OpId>,
    /// Values whose shardings Shardy's pass drops.
    unsharded: Vec<ValueId>,
    /// Ops whose operands or results have other types than before.
    retyped: Vec<OpId>,
    /// For each manual computation around the current op the digits of devices that are not manual.
    free_digits: Vec<Vec<Digit>>,
    pub outcomes: Vec<Outcome>,
    /// The steps of reshards that emitted collectives.
    steps: Vec<Step>,
    /// The result of [`Lowering::sends_from_single_devices`].
    sends_from_single: bool,
}

/// Lowers `program`, with the users' rules for its custom calls. With [`How::global_to_local`] each collective of `sdy` becomes the
/// corresponding one of `StableHLO`, and shardings are kept. Known reshard plans are taken from `known`, new ones are added to it.
pub(super) fn lower(
    program: &mut Program,
    context: &mut Context<'_>,
    shard_rules: ShardRules,
    how: How,
    known: &mut PlanCache,
) -> Result<Partitioned> {
    context.rules.prepare(program, false)?;
    let mut devices = Devices::of(how.purpose()).with_replicas(how.has_replicas());
    let orders = orders(program, &mut devices)?;
    let collectives = Collectives::after(last_channel(program, program.op_ids()));
    let (num_ops, num_values) = (program.num_op_ids(), program.num_value_ids());
    let reverse = program.intern("stablehlo.reverse");
    let mut shared = std::mem::take(&mut known.decisions);
    let setting = shared.setting(how, &devices);
    let has_reductions = program.has_any(&[OpKind::AllReduce, OpKind::ReduceScatter]);
    let mut held = Vec::with_capacity(num_values + num_values / 4 * 3);
    held.resize(num_values, None);
    let mut lowering = Lowering {
        emit: Emitter::new(program, devices),
        collectives,
        placements: std::mem::take(&mut known.placements),
        context,
        decisions: Decisions::default(),
        alike: Alike::default(),
        shared,
        setting,
        shard_rules,
        how,
        held,
        tensors: Tensors::default(),
        operands: Vec::new(),
        has_reductions,
        resharded: FxHashMap::default(),
        sums: KnownSums::default(),
        plans: FxHashMap::default(),
        taken: FxHashMap::default(),
        known_plans: std::mem::take(&mut known.plans),
        by_sharding: IdVec::new(),
        local_types: FxHashMap::default(),
        broadcasts: Broadcasts::default(),
        unvarying: WholeValues::default(),
        broadcast_dims: FxHashMap::default(),
        slices: FxHashMap::default(),
        known_names: FxHashSet::default(),
        reverse,
        functions: FxHashMap::default(),
        tasks: Vec::new(),
        returns: Vec::new(),
        ahead: FxHashMap::default(),
        dead: Vec::new(),
        unsharded: Vec::new(),
        retyped: Vec::new(),
        free_digits: Vec::new(),
        outcomes: Vec::with_capacity(num_ops),
        steps: Vec::new(),
        sends_from_single: false,
    };
    lowering.sends_from_single = lowering.sends_from_single_devices();
    lowering.number_placements(&orders);
    let functions = lowering.emit.program.functions_in_order();
    let name = |&func: &FuncId| (lowering.emit.program.func_name(func), func);
    lowering.functions = functions.iter().map(name).collect();
    let free = lowering.digits_free_in_callees();
    for func in functions {
        lowering.lower_function(func, free.get(&func))?;
    }
    known.placements = lowering.placements.clone();
    known.plans = std::mem::take(&mut lowering.known_plans);
    known.decisions = std::mem::take(&mut lowering.shared);
    Ok(lowering.finish())
}

impl Lowering<'_, '_, '_> {
    /// The shape of a tensor of type `ty`; none for other types.
    pub fn shape_of(&self, ty: TypeId) -> Option<Vec<i64>> {
        self.emit.program.types()[ty].static_shape()
    }
    /// The local type of a value of type `ty` with the placement `placement`.
    pub fn local_type(&mut self, ty: TypeId, placement: PlacementId) -> TypeId {
        if let Some(&known) = self.local_types.get(&(ty, placement)) {
            return known;
        }
        let local = match self.shape_of(ty) {
            Some(shape) if !self.placements[placement].is_replicated() => {
                let shape = self.placements[placement].local_shape(&shape);
                self.emit.like(&shape, ty)
            }
            _ => ty,
        };
        self.local_types.insert((ty, placement), local);
        local
    }
    /// Sets the operands of `op`.
    pub fn set_operands(
        &mut self,
        op: OpId,
        operands: impl IntoIterator<Item = impl Borrow<ValueId>>,
    ) {
        let slots = self.emit.program.op_uses(op);
        for (slot, value) in slots.zip(operands) {
            let value = *value.borrow();
            if self.emit.program.used_value(slot) != value {
                self.emit.program.set_operand(slot, value);
            }
        }
        self.retyped.push(op);
    }
    /// Records how `op` is computed.
    pub fn note(&mut self, op: OpId, kind: OutcomeKind, reason: Arc<str>) {
        self.outcomes.push(Outcome { op, kind, reason });
    }
    /// Runs all tasks; nested regions are tasks, so that depth takes no stack.
    fn run(&mut self) -> Result<()> {
        let mut done = 0;
        let total = self.emit.program.num_op_ids();
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Ops(op) => {
                    let mut next = op.get();
                    while let Some(op) = next {
                        next = self.emit.program.next_op(op).get();
                        let tasks = self.tasks.len();
                        done += 1;
                        if done % REPORT_EVERY == 0 {
                            self.context.progress("partition", done, total)?;
                        }
                        self.emit.go_before(op);
                        self.lower_and_note(op)?;
                        if self.sends_from_single {
                            self.broadcast_results(op);
                        }
                        if self.tasks.len() > tasks {
                            // Regions first, then the ops after this one.
                            self.tasks.insert(tasks, Task::Ops(next.unwrap_or_default()));
                            break;
                        }
                    }
                }
                Task::Finish(op) => self.finish_regions(op),
                Task::BeginReturns(placements) => self.returns.push(placements),
                Task::EndReturns => {
                    self.returns.pop();
                }
            }
        }
        Ok(())
    }

    fn lower_op(&mut self, op: OpId) -> Result<()> {
        match LoweringKind::of(self.emit.program.kind(op)) {
            LoweringKind::Return => self.lower_return(op),
            LoweringKind::Call => return self.lower_call(op),
            LoweringKind::Branches => self.lower_control(op),
            LoweringKind::Barrier => self.lower_barrier(op),
            LoweringKind::Manual => self.lower_manual(op),
            LoweringKind::Reshard => {
                let options = self.how.global_to_local(self.emit.program.kind(op));
                let options = options.filter(|_| !self.emit.devices.are_unlisted());
                if !options.is_some_and(|options| self.lower_global_to_local(op, options)) {
                    self.lower_reshard(op);
                }
            }
            LoweringKind::Drop => self.dead.push(op),
            LoweringKind::Constant => self.lower_constant(op),
            LoweringKind::Iota => {
                if !self.lower_as_shardy(op) {
                    self.lower_iota(op);
                }
            }
            LoweringKind::NotExported if self.lower_named(op) => {}
            LoweringKind::NotExported => {
                let hint = "run sdy-export-pipeline first";
                return Err(self.refusal(op, "it is not exported", hint));
            }
            LoweringKind::OpWithRule if self.is_sharding_call(op) => {
                self.lower_reshard(op);
            }
            LoweringKind::OpWithRule => return self.lower_by_rule(op),
        }
        Ok(())
    }

    /// Erases meshes, shardings and other ops and attributes of `sdy`.
    fn finish(mut self) -> Partitioned {
        self.cut_sums();
        for op in std::mem::take(&mut self.dead).into_iter().rev() {
            self.emit.program.erase_op(op);
        }
        self.drop_copies();
        let mut retyped = BitSet::new(self.emit.program.num_op_ids());
        let alike = std::mem::take(&mut self.alike);
        let firsts = alike.firsts(self.emit.program);
        for &op in self.retyped.iter().chain(&firsts).filter(|op| op.is_some()) {
            retyped.insert(op);
        }
        let retyped = retyped.iter().filter(|&op| !self.emit.program.is_erased(op));
        let retyped: Vec<OpId> = retyped.collect();
        self.emit.program.update_types_of(&retyped);
        alike.sign(&firsts, self.emit.program);
        let count = self.emit.devices.count();
        if self.how.global_to_local.is_some() {
            for value in self.unsharded {
                self.emit.program.set_sharding(value, ShardingId::NONE);
            }
            return Partitioned {
                num_devices: count,
                outcomes: self.outcomes,
                steps: Steps::default(),
            };
        }
        let program = &mut *self.emit.program;
        program.ops_of(&[OpKind::Mesh]).into_iter().for_each(|op| program.erase_op(op));
        // Those in the bodies of reductions, comparators and maps, which are not lowered.
        let constants = program.ops_of(&[OpKind::SdyConstant]);
        program.rename_ops(&constants, "stablehlo.constant");
        let module = program.module_op();
        program.set_attr(module, "mhlo.num_partitions", &format!("{count} : i32"));
        program.set_attr(module, "mhlo.num_replicas", "1 : i32");
        program.drop_shardings();
        program.drop_all_rules();
        let steps = Steps::new(self.steps, self.placements, self.emit.devices);
        Partitioned { num_devices: count, outcomes: self.outcomes, steps }
    }
}
