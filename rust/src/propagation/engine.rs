//! Greedy runs: visits ops until no visit changes a sharding.

use super::current::CurrentShardings;
use super::memo::{Memo, MemoId, Outcome, SpecClassId, UpdateListId};
use super::observe::Cause;
use super::observe::Observer;
use super::origins::Subject;
use super::plan::groups::ShardingGroups;
use super::plan::specs::OpVisit;
use super::plan::{OpRow, Plan, WIDE};
use super::schedule::func_results::FuncResults;
use super::schedule::{BudgetStatus, Network, Queue, UserPriorities};
use super::state::{Finished, State};
use super::visit::{RunMask, Subset};
use super::wide::WideOps;
use super::Stats;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{FuncId, ValueId};
use crate::ir::Program;

/// A program while it propagates.
pub(super) struct Engine<'p> {
    network: Network<'p>,
    memo: Memo,
    wide: WideOps,
    func_results: FuncResults,
    /// The shardings of the tensors of the current op.
    current: CurrentShardings,
    /// Whether there are no sharding groups, no record of origins and no observer.
    is_simple: bool,
    greedy_runs: usize,
}

/// The state of an engine that outlives a run: the next run on the program reuses it.
#[derive(Clone)]
pub(super) struct EngineParts {
    plan: Plan,
    groups: ShardingGroups,
    queue: Queue,
    memo: Memo,
    func_results: FuncResults,
}

impl EngineParts {
    /// Clears the memo, see [`Memo::forget`].
    pub fn forget(&mut self, most: usize) {
        self.memo.forget(most);
    }
}

impl<'p> Engine<'p> {
    /// An engine for the program of `state`; the results of the function `main` propagate too.
    pub fn new(mut state: State<'p>, main: FuncId, mut memo: Memo) -> Self {
        Self {
            is_simple: !state.is_observed() && state.groups.is_empty(),
            func_results: FuncResults::new(state.program_and_plan().0, main, &mut memo),
            network: Network::new(state, memo.runs().len()),
            memo,
            wide: WideOps::default(),
            current: CurrentShardings::default(),
            greedy_runs: 0,
        }
    }
    /// An engine with the parts of an earlier one that has ended a run on `program`. No op is
    /// marked. `observer` is told of changes, but not of their causes.
    pub fn again(
        program: &'p mut Program,
        parts: EngineParts,
        observer: &'p mut dyn Observer,
    ) -> Self {
        let EngineParts { plan, groups, mut queue, memo, func_results } = parts;
        queue.clear();
        let state = State::new(program, plan, groups, None, Some(observer));
        Self {
            is_simple: state.groups.is_empty(),
            func_results,
            network: Network::with_queue(state, queue),
            memo,
            wide: WideOps::default(),
            current: CurrentShardings::default(),
            greedy_runs: 0,
        }
    }
    /// An engine with the parts of an earlier one that has ended a run on `program`, for a new run
    /// from the shardings that `restore` sets. `observer` is told of changes, but not of their
    /// causes.
    pub fn anew(
        program: &'p mut Program,
        parts: EngineParts,
        observer: &'p mut dyn Observer,
        restore: impl FnOnce(&mut State<'p>),
    ) -> Self {
        let EngineParts { plan, groups, memo, func_results, .. } = parts;
        let mut state = State::new(program, plan, groups, None, Some(observer));
        restore(&mut state);
        Self {
            is_simple: state.groups.is_empty(),
            func_results,
            network: Network::new(state, memo.runs().len()),
            memo,
            wide: WideOps::default(),
            current: CurrentShardings::default(),
            greedy_runs: 0,
        }
    }
    /// The parts to keep for the next run.
    pub fn into_parts(self) -> EngineParts {
        let Self { network: Network { state, queue, .. }, memo, func_results, .. } = self;
        let Finished { plan, groups, .. } = state.abandon();
        EngineParts { plan, groups, queue, memo, func_results }
    }
    /// The shardings.
    pub fn state(&mut self) -> &mut State<'p> {
        &mut self.network.state
    }
    /// The number of kinds of greedy runs.
    pub fn num_runs(&self) -> usize {
        self.memo.runs().len()
    }
    /// The number of entries in the memo.
    pub fn num_remembered(&self) -> usize {
        self.memo.len()
    }
    /// The kinds of greedy runs in which a visit of the op at `position` may change something.
    pub fn marks(&self, position: u32) -> RunMask {
        self.network.queue.marks(position)
    }
    /// Marks the op at `position` in all kinds of greedy runs: a visit of it may change something.
    pub fn mark(&mut self, position: u32) {
        self.network.queue.mark(position);
    }
    /// Starts a greedy run in which all ops before `position` were taken from the queue.
    pub fn restart_at(&mut self, position: u32) {
        self.network.queue.restart_at(position);
    }
    /// Takes the next op that is marked for `run` from the queue.
    pub fn next_marked(&mut self, run: usize) -> Option<u32> {
        self.network.queue.pop(1 << run)
    }
    /// Visits the op at `position`, which was just taken from the queue, and the ops that are
    /// queued again because of that, until none is left; appends the latter to `taken`. If
    /// `visits_all`, unmarked ops are visited too, which changes nothing if marks are complete.
    /// Returns the number of visits.
    pub fn turn(
        &mut self,
        position: u32,
        run: usize,
        visits_all: bool,
        taken: &mut Vec<u32>,
    ) -> usize {
        self.network.queue.stand_at(position);
        self.visit(position, run);
        let mut visits = 1;
        while let Some(next) = self.network.queue.pop_stacked() {
            taken.push(next);
            if visits_all || self.network.queue.marks(next) & (1 << run) != 0 {
                self.visit(next, run);
                visits += 1;
            }
        }
        visits
    }
    /// Propagates between result `index` of the main function and the value that is returned as it.
    pub fn visit_func_result(&mut self, index: usize, run: usize) {
        self.func_results.visit_at(&mut self.network, &mut self.memo, index, run);
    }
    /// The values that the main function returns, in order.
    pub fn returned_values(&self) -> Vec<ValueId> {
        self.func_results.values(self.network.state.program())
    }
    /// Closes all dims with a user priority other than 0.
    pub fn initialise_priorities(&mut self) -> UserPriorities {
        UserPriorities::initialise(&mut self.network)
    }
    /// Restores the dims of `priority`, which take part from now on.
    pub fn start_priority(&mut self, priorities: &UserPriorities, priority: i64) {
        priorities.start(&mut self.network, priority);
    }
    /// Ends propagation.
    pub fn finish(self) -> (Finished, Stats) {
        let Self { network: Network { state, budget, updates, .. }, memo, greedy_runs, .. } = self;
        let (memo_hits, memo_entries) = (memo.hits, memo.len());
        memo.leave();
        let visits = budget.visits();
        let finished = state.finish();
        let changes = finished.clock.num_changes();
        let stats = Stats { visits, memo_hits, memo_entries, updates, changes, greedy_runs };
        (finished, stats)
    }

    /// Makes the greedy runs of one user priority.
    pub fn run_all(&mut self, priority: i64, context: &mut Context<'_>, pass: &str) -> Result<()> {
        for run in 0..self.memo.runs().len() {
            self.network.state.run_starts(priority, self.memo.run(run));
            self.func_results.propagate(&mut self.network, &mut self.memo, run);
            self.run(run, context, pass)?;
            self.greedy_runs += 1;
            self.network.state.plan.unused.clear();
            self.func_results.propagate(&mut self.network, &mut self.memo, run);
        }
        Ok(())
    }

    /// A greedy run: visits each marked op in the order of the queue, until the queue is empty.
    fn run(&mut self, run: usize, context: &mut Context<'_>, pass: &str) -> Result<()> {
        let num_ops = self.network.state.plan.order().len();
        self.network.queue.restart();
        self.network.budget.start_run(num_ops);
        while let Some(position) = self.network.queue.pop(1 << run) {
            match self.network.budget.spend() {
                BudgetStatus::Within => {}
                BudgetStatus::ReportDue => {
                    // The number of visits is not known in advance; this approaches the end of the
                    // range.
                    let visits = self.network.budget.visits();
                    context.progress(pass, visits, visits + num_ops)?;
                }
                BudgetStatus::Exceeded => return Err(self.no_convergence(position)),
            }
            self.visit(position, run);
        }
        Ok(())
    }

    #[cold]
    fn no_convergence(&self, position: u32) -> Error {
        let state = &self.network.state;
        let op = state.plan.op(position);
        let message = "propagation does not converge: visits of this op, among others, do not end";
        let hint = "where a manual computation leaves out manual axes in its in_shardings or \
                    out_shardings, run sdy-manual-axes-cleanup first";
        let diagnostic = Diagnostic::new(Code::NoConvergence, message);
        diagnostic.at_op(state.program(), op).with_hint(hint).into()
    }

    /// Visits the op at `position`.
    fn visit(&mut self, position: u32, run: usize) {
        let plan = &self.network.state.plan;
        if !plan.unused.is_empty() && self.network.erase_if_dead(position) {
            return;
        }
        let plan = &self.network.state.plan;
        let OpRow { visit, tensors } = plan.row(position);
        let Some(spec) = visit.spec() else {
            return self.network.queue.unmark(position, RunMask::MAX);
        };
        if tensors.len() > WIDE {
            return self.visit_wide(position, run);
        }
        self.current.load(&mut self.network.state, position);
        let State { plan, .. } = &self.network.state;
        let rules = self.network.state.program().rules();
        let class = self.memo.class_of(rules, spec, || plan.specs.get(spec));
        let entry = self.memo.entry(class, Subset::ALL, self.current.as_slice());
        match self.outcome(entry, run) {
            Outcome::Nothing(runs) => self.network.queue.unmark(position, runs),
            Outcome::Updates(list) => self.update((position, visit), class, list, run),
        }
    }

    /// Applies the updates of `list` to the tensors of the op at `position`, whose shardings are
    /// the current ones.
    #[inline(always)]
    fn update(
        &mut self,
        (position, visit): (u32, OpVisit),
        class: SpecClassId,
        list: UpdateListId,
        run: usize,
    ) {
        let mut is_as_expected = false;
        if visit.is_plain() && self.is_simple {
            is_as_expected = visit.is_distinct();
            for update in self.memo.updates(list) {
                let (index, sharding) = self.memo.update(update);
                is_as_expected &= self.network.update_plain(position, index as usize, sharding);
            }
        } else {
            self.network.state.set_cause(Cause::Visit(self.network.state.plan.op(position)));
            self.record(position, run);
            for update in self.memo.updates(list) {
                let (index, sharding) = self.memo.update(update);
                self.network.update_tensor(position, index as usize, sharding);
            }
        }
        let next = if is_as_expected { self.memo.next(list) } else { MemoId::NONE };
        let runs = self.memo.nothing(next, run);
        if runs != 0 {
            return self.network.queue.unmark(position, runs);
        }
        let next = self.look_again(position, class, run);
        if is_as_expected {
            self.memo.set_next(list, next);
        }
    }

    /// Looks up the next visit of an op right after a visit that changed something. In most cases
    /// it changes nothing, and the op's row is in the processor's cache now. Returns its memo
    /// entry.
    #[inline(never)]
    fn look_again(&mut self, position: u32, class: SpecClassId, run: usize) -> MemoId {
        self.current.load(&mut self.network.state, position);
        let entry = self.memo.entry(class, Subset::ALL, self.current.as_slice());
        if let Outcome::Nothing(runs) = self.outcome(entry, run) {
            self.network.queue.unmark(position, runs);
        }
        entry
    }

    /// The outcome of the visit of memo entry `entry`, whose shardings are the current ones.
    #[inline(always)]
    fn outcome(&mut self, entry: MemoId, run: usize) -> Outcome {
        self.memo.remembered(entry, run).unwrap_or_else(|| self.new_outcome(entry, run))
    }

    #[cold]
    fn new_outcome(&mut self, entry: MemoId, run: usize) -> Outcome {
        let mut tables = self.network.state.tables();
        self.memo.outcome(&mut tables, entry, Subset::ALL, self.current.as_slice(), run)
    }

    /// Adds a visit to the record of origins, if there is one, before its updates are applied.
    fn record(&mut self, position: u32, run: usize) {
        let state = &mut self.network.state;
        let Some(spec) = state.plan.spec(position).filter(|_| state.is_recording()) else { return };
        let visit = (Subject::Op(state.plan.op(position)), spec, self.memo.run(run));
        let tensors = state.plan.row(position).tensors.to_vec();
        state.record_visit(visit, &tensors, self.current.as_slice());
    }

    /// Visits the op at `position`, which has many tensors.
    fn visit_wide(&mut self, position: u32, run: usize) {
        let visit = self.wide.visit(&mut self.network.state, &mut self.memo, position, run);
        if visit.updates.is_empty() {
            return self.network.queue.unmark(position, visit.runs);
        }
        self.network.state.set_cause(Cause::Visit(self.network.state.plan.op(position)));
        for (tensor, sharding) in visit.updates {
            let value = self.network.state.plan.tensor(position, tensor as usize);
            self.network.update(value, sharding, sharding, Some(position));
        }
    }
}
