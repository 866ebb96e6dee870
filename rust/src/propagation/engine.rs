//! The greedy run: visits ops until none is left that could do something.

use super::current::CurrentShardings;
use super::memo::{Memo, MemoId, Outcome, SpecClassId, UpdateListId};
use super::notices::readers::Readers;
use super::notices::{list, Notice};
use super::origins::{Recorder, Subject};
use super::plan::edges::{Edges, Holder};
use super::plan::groups::ShardingGroups;
use super::plan::{OpRow, Plan, WIDE};
use super::schedule::func_results::FuncResults;
use super::schedule::queue::{Queue, RunMask, NOBODY};
use super::visit::{Subset, Tables};
use super::wide::Wide;
use super::Stats;
use crate::bitset::BitSet;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{Id, ShardingId, ValueId};
use crate::ir::{Program, ValueDef};

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
    pub groups: ShardingGroups,
    pub wide: Wide,
    pub readers: Readers,
    /// Results of the main function.
    pub results: FuncResults,
    /// The op in hand.
    pub current: CurrentShardings,
    pub stats: Stats,
    /// Where shardings come from, if that is wanted.
    pub recorder: Option<Box<Recorder>>,
    /// Whether there is neither a group nor a recorder to look after.
    is_simple: bool,
    /// Who hears of the change at hand.
    notices: Vec<Notice>,
    /// Values whose shardings may have changed without a mark on their ops.
    changed: BitSet<ValueId>,
}

impl<'p> Engine<'p> {
    pub fn new(
        program: &'p mut Program,
        plan: Plan,
        memo: Memo,
        groups: ShardingGroups,
        results: FuncResults,
        recorder: Option<Box<Recorder>>,
    ) -> Self {
        let mut queue = Queue::new(plan.order().len(), memo.runs().len());
        for &position in &plan.unused {
            queue.mark(position);
        }
        let mut engine = Self {
            queue,
            changed: BitSet::new(program.values.len()),
            program,
            plan,
            memo,
            wide: Wide::default(),
            readers: Readers::default(),
            results,
            current: CurrentShardings::default(),
            stats: Stats::default(),
            notices: Vec::new(),
            is_simple: recorder.is_none() && groups.is_empty(),
            recorder,
            groups,
        };
        engine.mark_sharded();
        engine
    }

    /// Marks who reads a sharding that has axes: no other visit can do anything at first.
    fn mark_sharded(&mut self) {
        let table = &self.program.shardings;
        let has_axes = |id| table[id].dims.iter().any(|dim| !dim.axes.is_empty());
        let has_axes: Vec<bool> = table.ids().map(has_axes).collect();
        for value in self.program.values.ids() {
            let sharding = self.program.sharding(value);
            if sharding.is_some() && has_axes[sharding.index()] {
                self.notify(value, NOBODY, false);
            }
        }
    }

    /// Ends propagation: the printer is told which ops have new shardings.
    pub fn finish(self) -> (Plan, Stats, Option<Box<Recorder>>) {
        for value in self.changed.iter() {
            let owner = match self.program.values[value].def() {
                ValueDef::Result(op) => op,
                ValueDef::Arg(block) => self.program.block_parent_op(block),
            };
            self.program.mark_attrs_changed(owner);
        }
        let mut stats = self.stats;
        stats.memo_hits = self.memo.hits;
        stats.memo_entries = self.memo.len();
        self.memo.leave();
        (self.plan, stats, self.recorder)
    }

    /// Runs greedily: each op once, then those that are queued again, until none is left.
    pub fn run(&mut self, run: usize, context: &mut Context<'_>, pass: &str) -> Result<()> {
        self.queue.restart();
        let (most, most_for_each) = MAX_VISITS;
        let last = self.stats.visits + most + most_for_each * self.plan.order().len();
        while let Some(position) = self.queue.pop(1 << run) {
            self.stats.visits += 1;
            if self.stats.visits % REPORT_EVERY == 0 {
                // How many there will be is not known; this comes near the end only.
                let expected = self.stats.visits + self.plan.order().len();
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
        let op = self.plan.op(position);
        let message = "propagation goes round in circles, through this op among others";
        let hint = "where a manual computation leaves out manual axes in its in_shardings or \
                    out_shardings, run sdy-manual-axes-cleanup first";
        Diagnostic::new(Code::NoConvergence, message).at_op(self.program, op).with_hint(hint).into()
    }

    fn visit(&mut self, position: u32, run: usize) {
        if !self.plan.unused.is_empty() && self.erase_if_dead(position) {
            return;
        }
        let OpRow { visit, tensors } = self.plan.row(position);
        let Some(spec) = visit.spec() else {
            return self.queue.unmark(position, RunMask::MAX);
        };
        if tensors.len() > WIDE {
            return self.visit_wide(position, run);
        }
        self.load(position);
        let (memo, rules) = (&mut self.memo, &self.program.rules);
        let class = self.plan.specs.class(spec, |spec| memo.class(rules, spec));
        let entry = memo.entry(class, Subset::ALL, self.current.shardings());
        match self.outcome(entry, run) {
            Outcome::Nothing(runs) => self.queue.unmark(position, runs),
            Outcome::Updates(change) => self.change(position, class, change, run),
        }
    }

    /// Makes the changes of the visit of the op in hand.
    #[inline(always)]
    fn change(&mut self, position: u32, class: SpecClassId, change: UpdateListId, run: usize) {
        let visit = self.plan.visit(position);
        let mut is_as_expected = false;
        if visit.is_plain() && self.is_simple {
            is_as_expected = visit.is_distinct();
            for update in self.memo.updates(change) {
                let (index, sharding) = self.memo.update(update);
                is_as_expected &= self.apply(position, index as usize, sharding);
            }
        } else {
            if self.recorder.is_some() {
                let old = self.current.shardings().to_vec();
                self.record(position, run, &old);
            }
            for update in self.memo.updates(change) {
                let (index, sharding) = self.memo.update(update);
                self.apply_elsewhere(position, index as usize, sharding);
            }
        }
        let next = if is_as_expected { self.memo.next(change) } else { MemoId::NONE };
        let runs = self.memo.nothing(next, run);
        if runs != 0 {
            return self.queue.unmark(position, runs);
        }
        let next = self.predict_next(position, class, run);
        if is_as_expected {
            self.memo.set_next(change, next);
        }
    }

    /// After a visit that changed something: mostly the next one would do nothing, and it is cheaper
    /// to find that out while everything is at hand. Returns what the next one is.
    #[inline(never)]
    fn predict_next(&mut self, position: u32, class: SpecClassId, run: usize) -> MemoId {
        self.load(position);
        let entry = self.memo.entry(class, Subset::ALL, self.current.shardings());
        if let Outcome::Nothing(runs) = self.outcome(entry, run) {
            self.queue.unmark(position, runs);
        }
        entry
    }

    /// What the visit of the op in hand, which is `entry`, changes.
    #[inline(always)]
    fn outcome(&mut self, entry: MemoId, run: usize) -> Outcome {
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        self.memo.outcome(&mut tables, entry, Subset::ALL, self.current.shardings(), run)
    }

    /// Records, if that is wanted, a visit that changes something, before it does.
    pub fn record(&mut self, position: u32, run: usize, old: &[ShardingId]) {
        let Some(spec) = self.plan.spec(position) else { return };
        let tensors = self.plan.row(position).tensors.to_vec();
        self.record_visit(Subject::Op(self.plan.op(position)), spec, run, &tensors, old);
    }

    /// Gives the tensor at `index` of the op at `position`, which is plain, its new sharding; false if
    /// that may have changed other tensors too.
    #[inline]
    fn apply(&mut self, position: u32, index: usize, sharding: ShardingId) -> bool {
        self.stats.updates += 1;
        let value = self.plan.tensor(position, index);
        let old = self.program.value_shardings[value];
        let opens_others = old.is_none() && self.plan.has_siblings.contains(value);
        if opens_others {
            self.open_siblings(value, sharding);
        }
        if old != sharding {
            self.program.value_shardings[value] = sharding;
            self.stats.changes += 1;
            self.changed.insert(value);
            self.readers.value_changed(value);
        }
        self.notify(value, position, true);
        !opens_others
    }

    /// Gives the tensor at `index` of the op in hand, which stands at `position`, its new sharding,
    /// wherever it is kept.
    fn apply_elsewhere(&mut self, position: u32, index: usize, sharding: ShardingId) {
        let own = match self.plan.edges.manual_end(self.plan.op(position)) {
            Some(end) if index + 1 == self.plan.row(position).tensors.len() => {
                if end.is_arg {
                    self.program.inside_manual(end.op, sharding)
                } else {
                    self.program.with_manual_axes(end.op, end.owner, sharding)
                }
            }
            _ => sharding,
        };
        self.stats.updates += 1;
        self.update(self.plan.tensor(position, index), own, sharding, position, true);
    }

    /// Gives `value` the sharding `own`, and the others in its group `sharding`, on behalf of
    /// `current`; tells those who depend on it.
    pub fn update(
        &mut self,
        value: ValueId,
        own: ShardingId,
        sharding: ShardingId,
        current: u32,
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
    #[inline]
    pub fn notify(&mut self, value: ValueId, current: u32, is_queueing: bool) {
        let mut notices = std::mem::take(&mut self.notices);
        list(self.plan.dependency_graph(self.program), value, &mut notices);
        self.queue.notify(&notices, current, is_queueing);
        self.notices = notices;
    }

    /// Sets the sharding of `value` where it is kept, and says where that is; does not notify.
    pub fn set(&mut self, value: ValueId, sharding: ShardingId) -> Option<ValueId> {
        let (kept, sharding) = match self.plan.edges.holder(value) {
            Holder::None => return None,
            Holder::ManualArg(op, arg) => (arg, self.program.with_manual_axes(op, arg, sharding)),
            Holder::Value(value) => (value, sharding),
        };
        self.set_kept(kept, sharding);
        Some(kept)
    }

    /// Sets the sharding that `kept` keeps, as it is written.
    pub fn set_kept(&mut self, kept: ValueId, sharding: ShardingId) {
        if self.program.sharding(kept).is_none() {
            self.open_siblings(kept, sharding);
        }
        self.replace_sharding(kept, sharding);
    }

    fn replace_sharding(&mut self, kept: ValueId, sharding: ShardingId) {
        if self.program.set_sharding(kept, sharding) {
            self.stats.changes += 1;
            self.readers.value_changed(kept);
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
                self.replace_sharding(other, open);
                self.notify(other, NOBODY, false);
            }
        }
    }
}

/// The sharding of `value`, wherever it is kept.
#[inline]
pub(super) fn sharding(program: &mut Program, edges: &Edges, value: ValueId) -> ShardingId {
    match edges.holder(value) {
        Holder::Value(value) => program.sharding(value),
        Holder::None => ShardingId::NONE,
        Holder::ManualArg(op, arg) => {
            let outer = program.sharding(arg);
            program.inside_manual(op, outer)
        }
    }
}
