//! The greedy run: visits ops until none is left that could do something.

use super::edges::{Edges, Place};
use super::groups::Groups;
use super::memo::{Memo, Outcome};
use super::notify::Notifier;
use super::origins::{Recorder, Subject};
use super::plan::{Plan, Visit};
use super::queue::{Queue, RunMask};
use super::visit::{Subset, Tables, VisitKind};
use super::wide::Wide;
use super::{Options, Stats};
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{Id, OpId, ShardingId, ValueId};
use crate::ir::Program;

/// Visits between two reports of progress.
const REPORT_EVERY: usize = 1 << 12;

/// Visits after which a greedy run is taken to go round in circles: so many, and so many for each op.
/// Runs that end make a few visits an op; even when each axis reaches a value that all ops use one
/// by one, these are as many as there are axes.
const MAX_VISITS: (usize, usize) = (1_000_000, 1_000);

/// A program while it propagates.
pub(super) struct Engine<'p> {
    pub program: &'p mut Program,
    pub plan: Plan,
    pub queue: Queue,
    pub memo: Memo,
    pub groups: Groups,
    pub wide: Wide,
    /// By sharding: whether some dim has axes.
    has_axes: Vec<bool>,
    /// Shardings of the tensors of the op in hand.
    pub shardings: Vec<ShardingId>,
    is_conservative: bool,
    pub stats: Stats,
    /// Where shardings come from, if that is wanted.
    pub recorder: Option<Box<Recorder>>,
}

impl<'p> Engine<'p> {
    pub fn new(
        program: &'p mut Program,
        plan: Plan,
        memo: Memo,
        groups: Groups,
        options: &Options,
    ) -> Self {
        let mut queue = Queue::new(plan.order.len(), memo.runs().len());
        for &position in &plan.unused {
            queue.touch(position);
        }
        let mut engine = Self {
            queue,
            program,
            plan,
            memo,
            groups,
            wide: Wide::default(),
            has_axes: Vec::new(),
            shardings: Vec::new(),
            is_conservative: options.conservative,
            stats: Stats::default(),
            recorder: None,
        };
        engine.touch_sharded();
        engine
    }

    /// Marks who reads a sharding that has axes: no other visit can do anything at first.
    fn touch_sharded(&mut self) {
        self.look_for_axes();
        for value in self.program.values.ids() {
            let sharding = self.program.sharding(value);
            if self.has_axes(sharding) {
                self.notify(value, OpId::NONE, false);
            }
        }
    }

    /// Looks at the shardings that are new.
    #[inline]
    pub fn look_for_axes(&mut self) {
        let table = &self.program.shardings;
        for index in self.has_axes.len()..table.len() {
            let dims = &table[ShardingId::from_index(index)].dims;
            self.has_axes.push(dims.iter().any(|dim| !dim.axes.is_empty()));
        }
    }

    /// Whether `sharding`, which [`Engine::look_for_axes`] has seen, has axes in some dim.
    #[inline]
    pub fn has_axes(&self, sharding: ShardingId) -> bool {
        sharding.is_some() && self.has_axes[sharding.index()]
    }

    /// Runs greedily: each op once, then those that are queued again, until none is left.
    pub fn run(&mut self, run: usize, context: &mut Context<'_>, pass: &str) -> Result<()> {
        self.queue.restart();
        let (most, most_for_each) = MAX_VISITS;
        let last = self.stats.visits + most + most_for_each * self.plan.order.len();
        while let Some(position) = self.queue.pop(1 << run) {
            self.stats.visits += 1;
            if self.stats.visits % REPORT_EVERY == 0 {
                // How many there will be is not known; this comes near the end only.
                let expected = self.stats.visits + self.plan.order.len();
                context.progress(pass, self.stats.visits, expected)?;
            }
            if self.stats.visits > last {
                return Err(self.no_convergence(position));
            }
            self.visit(position, run);
        }
        Ok(())
    }

    #[cold]
    fn no_convergence(&self, position: u32) -> Error {
        let op = self.plan.order[position as usize];
        let message = "propagation goes round in circles, through this op among others";
        let hint = "where a manual computation leaves out manual axes in its in_shardings or \
                    out_shardings, run sdy-manual-axes-cleanup first";
        Diagnostic::new(Code::NoConvergence, message).at_op(self.program, op).with_hint(hint).into()
    }

    fn visit(&mut self, position: u32, run: usize) {
        let op = self.plan.order[position as usize];
        if !self.plan.unused.is_empty() && self.erase_if_dead(op) {
            return;
        }
        let visit = self.plan.visits[position as usize];
        if visit.is_wide() {
            return self.visit_wide(position, op, run);
        }
        if !visit.is_some() || !self.gather(visit, op) {
            return self.queue.settle(position, RunMask::MAX);
        }
        let kind = self.kind(position, op);
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        match self.memo.outcome(&mut tables, kind, Subset::ALL, &self.shardings, run) {
            Outcome::Nothing(runs) => self.queue.settle(position, runs),
            Outcome::Updates(updates) => {
                self.record(op, kind, run);
                for update in updates {
                    let (index, sharding) = self.memo.update(update);
                    self.apply(op, index as usize, sharding);
                }
                self.confirm(position, op, run);
            }
        }
    }

    /// After a visit of `op` that changed something: mostly the next one would do nothing, and it is
    /// cheaper to find that out while everything is at hand.
    fn confirm(&mut self, position: u32, op: OpId, run: usize) {
        if !self.gather(self.plan.visits[position as usize], op) {
            return;
        }
        let kind = self.kind(position, op);
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let outcome = self.memo.outcome(&mut tables, kind, Subset::ALL, &self.shardings, run);
        if let Outcome::Nothing(runs) = outcome {
            self.queue.settle(position, runs);
        }
    }

    /// Records, if that is wanted, a visit of `op` that changes something, before it does.
    #[inline]
    pub fn record(&mut self, op: OpId, kind: VisitKind, run: usize) {
        if self.recorder.is_some() {
            let tensors = self.tensors(op);
            let shardings = std::mem::take(&mut self.shardings);
            self.record_visit(Subject::Op(op), kind, run, &tensors, &shardings);
            self.shardings = shardings;
        }
    }

    /// The operands, or the sources of an edge, and the results of `op`.
    pub fn tensors(&self, op: OpId) -> Vec<ValueId> {
        let is_edge = self.plan.visits[self.plan.positions[op] as usize].is_edge();
        let operands = self.program.op_operands(op).iter().map(|slot| slot.value);
        let mut tensors: Vec<ValueId> =
            if is_edge { self.plan.edges.sources(op).to_vec() } else { operands.collect() };
        tensors.extend(self.program.op_results(op));
        tensors
    }

    pub fn kind(&self, position: u32, op: OpId) -> VisitKind {
        let visit = self.plan.visits[position as usize];
        VisitKind {
            rule: self.plan.rules[position as usize],
            class: visit.class(),
            has_single_uses: visit.depends_on_uses() && self.has_single_uses(op),
            is_elementwise: visit.is_elementwise(),
            is_conservative: self.is_conservative && visit.has_own_rule(),
        }
    }

    /// Whether each operand that is not a scalar has `op` as its only use.
    fn has_single_uses(&self, op: OpId) -> bool {
        self.program.op_operands(op).iter().all(|slot| {
            self.program.has_one_use(slot.value) || self.program.value_type(slot.value).is_scalar()
        })
    }

    /// Collects the shardings of the tensors of `op`; false if none has axes, so that there is
    /// nothing to propagate.
    fn gather(&mut self, visit: Visit, op: OpId) -> bool {
        self.shardings.clear();
        let edges = &self.plan.edges;
        if visit.is_edge() {
            for &source in edges.sources(op) {
                self.shardings.push(sharding(self.program, edges, source));
            }
            self.shardings.push(edge_sharding(self.program, edges, op));
        } else {
            for slot in self.program.op_uses(op) {
                let operand = self.program.operands[slot].value;
                self.shardings.push(sharding(self.program, edges, operand));
            }
            for result in self.program.op_results(op) {
                self.shardings.push(sharding(self.program, edges, result));
            }
        }
        self.look_for_axes();
        self.shardings.iter().any(|&id| self.has_axes(id))
    }

    /// The tensor at `index` of `op`'s operands, or the sources of an edge, and results; and whether it
    /// is the target of an edge.
    #[inline]
    pub fn tensor(&self, op: OpId, index: usize) -> (ValueId, bool) {
        let is_edge = self.plan.visits[self.plan.positions[op] as usize].is_edge();
        let sources = if is_edge { self.plan.edges.sources(op) } else { &[] };
        let num_operands =
            if is_edge { sources.len() } else { self.program.ops[op].num_operands as usize };
        match index.checked_sub(num_operands) {
            None if is_edge => (sources[index], false),
            None => (self.program.operand(op, index), false),
            Some(index) => (self.program.result(op, index), is_edge),
        }
    }

    /// Gives the tensor at `index` of `op`'s operands and results its new sharding.
    pub fn apply(&mut self, op: OpId, index: usize, sharding: ShardingId) {
        self.stats.updates += 1;
        let (value, is_target) = self.tensor(op, index);
        let own = match self.plan.edges.manual_end(op) {
            Some(end) if is_target => {
                if end.is_arg {
                    self.program.inside_manual(end.op, sharding)
                } else {
                    self.program.with_manual_axes(end.op, end.owner, sharding)
                }
            }
            _ => sharding,
        };
        self.update(value, own, sharding, op, true);
    }

    /// Gives `value` the sharding `own`, and the others in its group `sharding`, on behalf of
    /// `current`; tells those who depend on it.
    pub fn update(
        &mut self,
        value: ValueId,
        own: ShardingId,
        sharding: ShardingId,
        current: OpId,
        is_queueing: bool,
    ) {
        let Some(place) = self.set(value, own) else { return };
        self.notify(place, current, is_queueing);
        let Some(group) = self.groups.group_of(place) else { return };
        for index in 0..self.groups.members(group).len() {
            let member = self.groups.members(group)[index];
            if member == place {
                continue;
            }
            let kept = self.set(member, sharding);
            self.notify(member, current, is_queueing);
            if let Some(kept) = kept.filter(|&kept| kept != member) {
                self.notify(kept, current, false);
            }
        }
    }

    /// Marks, and queues if wanted, who depends on `value`.
    pub fn notify(&mut self, value: ValueId, current: OpId, is_queueing: bool) {
        let mut notifier = Notifier {
            program: self.program,
            plan: &self.plan,
            queue: &mut self.queue,
            current,
            is_queueing,
        };
        notifier.value_changed(value);
    }

    /// Sets the sharding of `value` where it is kept, and says where that is; does not notify.
    pub fn set(&mut self, value: ValueId, sharding: ShardingId) -> Option<ValueId> {
        let (kept, sharding) = match self.plan.edges.place(value) {
            Place::Nowhere => return None,
            Place::ManualArg(op, arg) => (arg, self.program.with_manual_axes(op, arg, sharding)),
            Place::Value(value) => (value, sharding),
        };
        if self.program.sharding(kept).is_none() {
            self.open_siblings(kept, sharding);
        }
        self.set_kept(kept, sharding);
        Some(kept)
    }

    /// Sets the sharding that is kept on `value`.
    #[inline]
    fn set_kept(&mut self, value: ValueId, sharding: ShardingId) {
        if self.program.set_sharding(value, sharding) {
            self.stats.changes += 1;
            self.wide.value_changed(value);
        }
    }

    /// An op has shardings for all of its results or for none: the first one opens the others.
    fn open_siblings(&mut self, value: ValueId, sharding: ShardingId) {
        let siblings = self.program.siblings(value);
        if siblings.len() < 2 {
            return;
        }
        let mesh = self.program.mesh_of(sharding);
        for other in siblings.map(ValueId::from_index) {
            if other != value && self.program.sharding(other).is_none() {
                let ty = self.program.values[other].ty;
                let open = self.program.replicated(mesh, ty, false);
                self.set_kept(other, open);
                self.notify(other, OpId::NONE, false);
            }
        }
    }
}

/// The sharding of `value`, wherever it is kept.
#[inline]
pub(super) fn sharding(program: &mut Program, edges: &Edges, value: ValueId) -> ShardingId {
    match edges.place(value) {
        Place::Value(value) => program.sharding(value),
        Place::Nowhere => ShardingId::NONE,
        Place::ManualArg(op, arg) => {
            let outer = program.sharding(arg);
            program.inside_manual(op, outer)
        }
    }
}

/// The sharding of the targets of edge `op`, as it compares with that of the sources.
fn edge_sharding(program: &mut Program, edges: &Edges, op: OpId) -> ShardingId {
    let sharding = program.sharding(program.result(op, 0));
    match edges.manual_end(op) {
        Some(end) if end.is_arg => program.with_manual_axes(end.op, end.owner, sharding),
        Some(end) => program.inside_manual(end.op, sharding),
        None => sharding,
    }
}
