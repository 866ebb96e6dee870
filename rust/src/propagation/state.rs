//! The shardings of a program during propagation.

use super::notices::readers::Readers;
use super::observe::{Cause, Change, Clock, Observer, Slot};
use super::origins::{self, Arrivals, Recorder, Subject};
use super::plan::edges::Holder;
use super::plan::groups::ShardingGroups;
use super::plan::Plan;
use super::visit::{Run, VisitSpec};
use crate::bitset::BitSet;
use crate::index::{FuncId, OpId, RuleId, ShardingId, ValueId};
use crate::ir::{Program, Tables, ValueDef};
use crate::op_sharding_rule::RuleTable;

/// A program with its plan. Shardings change only here, and the clock counts the changes.
pub struct State<'p> {
    program: &'p mut Program,
    /// The positions of ops, and the specs of their visits.
    pub plan: Plan,
    /// The sharding groups.
    pub groups: ShardingGroups,
    /// The readers of many shardings.
    pub readers: Readers,
    /// The record of origins, if one is kept.
    recorder: Option<Box<Recorder>>,
    observer: Option<&'p mut dyn Observer>,
    /// The cause of the next changes, for observers.
    cause: Cause,
    /// The number of causes so far.
    num_causes: u32,
    clock: Clock,
    /// Values whose shardings have changed and whose ops are not marked as changed for the printer
    /// yet.
    changed: BitSet<ValueId>,
}

/// The parts of the state that are left after propagation.
pub struct Finished {
    /// The plan.
    pub plan: Plan,
    /// The sharding groups.
    pub groups: ShardingGroups,
    /// The number of changes.
    pub clock: Clock,
    /// The record of origins, if one was kept.
    pub recorder: Option<Box<Recorder>>,
}

impl<'p> State<'p> {
    /// The state of `program` before anything propagates.
    pub fn new(
        program: &'p mut Program,
        plan: Plan,
        groups: ShardingGroups,
        recorder: Option<Box<Recorder>>,
        observer: Option<&'p mut dyn Observer>,
    ) -> Self {
        Self {
            changed: BitSet::new(program.num_value_ids()),
            program,
            plan,
            groups,
            readers: Readers::default(),
            recorder,
            observer,
            cause: Cause::UserPriority,
            num_causes: 0,
            clock: Clock::default(),
        }
    }
    /// The program.
    #[inline]
    pub fn program(&self) -> &Program {
        self.program
    }
    /// The clock: how many changes there were so far.
    #[inline]
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// The tables that a visit reads and adds shardings to.
    #[inline]
    pub fn tables(&mut self) -> Tables<'_> {
        self.program.tables()
    }
    /// The table of rules, for adding rules.
    pub fn rules_mut(&mut self) -> &mut RuleTable {
        self.program.rules_mut()
    }
    /// The program, for adding shardings to its tables, with the plan.
    pub fn program_and_plan(&mut self) -> (&mut Program, &Plan) {
        (self.program, &self.plan)
    }

    /// The sharding of `value`, whatever holds it.
    #[inline]
    pub fn sharding(&mut self, value: ValueId) -> ShardingId {
        self.plan.edges.sharding(self.program, value)
    }
    /// The sharding of `slot`.
    #[inline]
    pub fn sharding_at(&self, slot: Slot) -> ShardingId {
        match slot {
            Slot::Value(value) => self.program.sharding(value),
            Slot::FuncResult(func, index) => self.program.func_results(func)[index].sharding,
        }
    }
    /// The value that holds the sharding of `value`, and `sharding` as the holder stores it: the
    /// sharding of an argument of a manual computation has the manual axes too.
    pub fn held(&mut self, value: ValueId, sharding: ShardingId) -> Option<(ValueId, ShardingId)> {
        match self.plan.edges.holder(value) {
            Holder::None => None,
            Holder::ManualArg(op, arg) => {
                Some((arg, self.program.with_manual_axes(op, arg, sharding)))
            }
            Holder::Value(value) => Some((value, sharding)),
        }
    }

    /// Sets the cause of the following changes, for observers.
    #[inline]
    pub fn set_cause(&mut self, cause: Cause) {
        self.cause = cause;
        self.num_causes = self.num_causes.wrapping_add(1);
    }
    /// Sets the sharding that `holder` holds; true if it changed.
    #[inline(always)]
    pub fn set(&mut self, holder: ValueId, sharding: ShardingId) -> bool {
        let old = self.program.assign_sharding(holder, sharding);
        if old == sharding {
            return false;
        }
        self.changed.insert(holder);
        self.readers.value_changed(holder);
        self.pass_time(Slot::Value(holder), old, sharding);
        true
    }
    /// Sets the sharding of a result of a function; true if it changed.
    pub fn set_result(&mut self, func: FuncId, index: usize, sharding: ShardingId) -> bool {
        let old = self.program.func_results(func)[index].sharding;
        if !self.program.set_func_result_sharding(func, index, sharding) {
            return false;
        }
        self.readers.func_result_changed(func, index);
        self.pass_time(Slot::FuncResult(func, index), old, sharding);
        true
    }

    #[inline]
    fn pass_time(&mut self, slot: Slot, old: ShardingId, new: ShardingId) {
        if self.observer.is_some() {
            self.tell(slot, old, new);
        }
        self.clock.tick();
    }
    /// Notifies the observer of a change.
    #[cold]
    fn tell(&mut self, slot: Slot, old: ShardingId, new: ShardingId) {
        if let Some(observer) = &mut self.observer {
            let (cause, visit) = (self.cause, self.num_causes);
            observer.changed(Change { at: self.clock, slot, old, new, cause, visit });
        }
    }

    /// Sets the sharding of `slot` to that of another time of a recorded run. The observer is not
    /// notified, and the clock does not advance.
    #[inline]
    pub fn restore(&mut self, slot: Slot, sharding: ShardingId) {
        match slot {
            Slot::Value(value) => {
                self.program.assign_sharding(value, sharding);
            }
            Slot::FuncResult(func, index) => {
                self.program.set_func_result_sharding(func, index, sharding);
            }
        }
    }
    /// Sets the shardings of all values, as [`State::restore`] does.
    pub fn restore_values(&mut self, shardings: &[ShardingId]) {
        self.program.assign_shardings(shardings);
    }

    /// Whether origins are recorded.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }
    /// Whether origins are recorded, or an observer is notified.
    pub fn is_observed(&self) -> bool {
        self.is_recording() || self.observer.is_some()
    }
    /// Adds a visit to the record of origins, if there is one, before its updates are applied.
    /// `shardings` are those of `tensors`.
    pub fn record_visit(
        &mut self,
        visit: (Subject, VisitSpec, Run),
        tensors: &[ValueId],
        shardings: &[ShardingId],
    ) {
        if let Some(recorder) = &mut self.recorder {
            let tensors = (tensors, shardings);
            origins::record_visit(recorder, self.program, &self.plan.edges, visit, tensors);
        }
    }
    /// Adds the axes that a visit brings to tensors of the op at `position` to the record of
    /// origins, if there is one.
    pub fn record_arrivals(&mut self, position: u32, spec: VisitSpec, arrivals: &Arrivals) {
        if let Some(recorder) = &mut self.recorder {
            let Self { program, plan, .. } = self;
            let visit = (Subject::Op(plan.op(position)), spec);
            let value = |tensor| plan.tensor(position, tensor);
            origins::record_arrivals(recorder, program, &plan.edges, visit, arrivals, value);
        }
    }

    /// Notifies the observer of the start of a greedy run.
    pub fn run_starts(&mut self, priority: i64, run: Run) {
        if let Some(observer) = &mut self.observer {
            observer.run_starts(self.clock, priority, run);
        }
    }
    /// Erases `op`, which is unused.
    pub fn erase(&mut self, op: OpId) {
        self.plan.remove(op);
        self.program.set_op_rule(op, RuleId::NONE);
        self.program.erase_op(op);
        if let Some(observer) = &mut self.observer {
            observer.erased(self.clock, op);
        }
    }
    /// Updates how `op` is visited after the number of uses of its operands has changed.
    pub fn recount_uses(&mut self, op: OpId) {
        self.plan.recount_uses(self.program, op);
    }
    /// Ends propagation on a program that will not be printed.
    pub fn abandon(self) -> Finished {
        let Self { plan, groups, clock, recorder, .. } = self;
        Finished { plan, groups, clock, recorder }
    }
    /// Ends propagation: marks ops with new shardings as changed, for the printer.
    pub fn finish(self) -> Finished {
        for value in self.changed.iter() {
            let owner = match self.program.def(value) {
                ValueDef::Result(op) => op,
                ValueDef::Arg(block) => self.program.block_parent_op(block),
            };
            self.program.mark_attrs_changed(owner);
        }
        let Self { plan, groups, clock, recorder, .. } = self;
        Finished { plan, groups, clock, recorder }
    }
}
