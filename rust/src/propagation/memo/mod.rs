//! The memo: outcomes of earlier visits.
//!
//! The memo of a propagation maps the input of a visit to its outcome; the process-wide cache
//! ([`process_cache`]) does the same across programs. A model repeats its layers, so nearly every
//! visit was made before with the same rule and shardings. An entry has the outcome for each kind
//! of greedy run. Once one outcome is "nothing", the outcomes for the other kinds are computed too,
//! so that the caller knows in which runs the op need not be visited again.

mod ids;
mod lookup;
pub mod process_cache;
pub mod rule_equivalence;

pub use ids::{MemoId, SpecClassId};

use crate::index::ShardingId;
use crate::ir::Tables;
use crate::memoization::Taken;
use crate::op_sharding_rule::RuleTable;
use crate::propagation::visit::{
    Run, RunMask, SpecId, Subset, Update, VisitInput, VisitSpec, Workspace, MAX_RUNS,
};
use lookup::Lookup;
use process_cache::{CachedVisit, ProcessVisitCache, SpecClass};
use std::ops::Range;

/// The outcome of a visit: the shardings that it changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It changes nothing in any of these kinds of runs.
    Nothing(RunMask),
    /// It makes the updates of this list, see [`Memo::updates`].
    Updates(UpdateListId),
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

#[derive(Clone)]
struct MemoEntry {
    class: SpecClassId,
    /// The outcome in each kind of run: the index of a list of updates, `NOTHING` or `UNKNOWN`.
    outcomes: [u32; MAX_RUNS],
    /// The kinds of runs in which the outcome is known to be nothing.
    nothing: RunMask,
    is_complete: bool,
}

/// The index of the list of updates that a visit makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpdateListId(u32);

#[derive(Clone)]
struct UpdateList {
    updates: Range<u32>,
    /// The entry of the op's next visit, after these updates.
    next: MemoId,
}

/// The memo of one propagation.
#[derive(Clone)]
pub struct Memo {
    runs: Vec<Run>,
    /// The class of each spec of the program, `UNKNOWN` until its first visit.
    classes: Vec<SpecClassId>,
    lookup: Lookup,
    entries: Vec<MemoEntry>,
    lists: Vec<UpdateList>,
    updates: Vec<Update>,
    cache: Taken<ProcessVisitCache>,
    workspace: Workspace,
    /// Number of look-ups that found an existing entry.
    pub hits: usize,
}

impl Memo {
    pub fn new(runs: Vec<Run>) -> Self {
        let cache = ProcessVisitCache::take(&runs);
        Self::with_cache(runs, cache)
    }
    /// A memo that does not use the process-wide cache, and may be kept for any time.
    pub fn apart(runs: Vec<Run>) -> Self {
        let cache = ProcessVisitCache::apart(&runs);
        Self::with_cache(runs, cache)
    }
    fn with_cache(runs: Vec<Run>, cache: Taken<ProcessVisitCache>) -> Self {
        debug_assert!(runs.len() <= MAX_RUNS);
        Self {
            classes: Vec::new(),
            lookup: Lookup::default(),
            entries: Vec::new(),
            lists: Vec::new(),
            updates: Vec::new(),
            cache,
            workspace: Workspace::default(),
            runs,
            hits: 0,
        }
    }
    /// The kinds of runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
    /// The kind of run at `index`.
    pub fn run(&self, index: usize) -> Run {
        self.runs[index]
    }
    /// All kinds of runs.
    pub fn all_runs(&self) -> RunMask {
        ((1u32 << self.runs.len()) - 1) as RunMask
    }
    /// Clears the memo. The cache of visits is cleared if it has more than `most`.
    pub fn forget(&mut self, most: usize) {
        self.lookup = Lookup::default();
        self.entries.clear();
        self.lists.clear();
        self.updates.clear();
        if self.cache.num_visits() > most {
            self.cache.forget_visits();
        }
    }
    /// Number of entries, which is the number of different inputs of visits.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// The indices of the updates of `list`.
    #[inline]
    pub fn updates(&self, list: UpdateListId) -> Range<u32> {
        self.lists[list.0 as usize].updates.clone()
    }
    /// The update at `index`.
    #[inline]
    pub fn update(&self, index: u32) -> Update {
        self.updates[index as usize]
    }
    /// The class of `spec`, whose rule is one of `rules`.
    #[cold]
    pub fn class(&mut self, rules: &RuleTable, spec: VisitSpec) -> SpecClassId {
        self.cache.class_of(rules, spec)
    }
    /// The class of spec `id`; `spec` returns the spec itself, and is called at its first visit.
    #[inline]
    pub fn class_of(
        &mut self,
        rules: &RuleTable,
        id: SpecId,
        spec: impl FnOnce() -> VisitSpec,
    ) -> SpecClassId {
        match self.classes.get(id.0 as usize) {
            Some(&class) if class != SpecClassId::UNKNOWN => class,
            _ => self.find_class(rules, id, spec()),
        }
    }

    #[cold]
    fn find_class(&mut self, rules: &RuleTable, id: SpecId, spec: VisitSpec) -> SpecClassId {
        let class = self.class(rules, spec);
        let index = id.0 as usize;
        if self.classes.len() <= index {
            self.classes.resize(index + 1, SpecClassId::UNKNOWN);
        }
        self.classes[index] = class;
        class
    }
    /// Puts the process-wide cache back, with the visits of this propagation.
    pub fn leave(self) {
        ProcessVisitCache::leave(self.cache);
    }
    /// Finds or adds the entry of a visit of an op of `class` whose tensors in `subset` have `shardings`.
    #[inline]
    pub fn entry(
        &mut self,
        class: SpecClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> MemoId {
        let next = MemoId::from_index(self.entries.len());
        let id = self.lookup.find(class, subset, shardings, next);
        if id == next {
            let outcomes = [UNKNOWN; MAX_RUNS];
            self.entries.push(MemoEntry { class, outcomes, nothing: 0, is_complete: false });
        } else {
            self.hits += 1;
        }
        id
    }
    /// The outcome in `run` of the visit of entry `id`; the input is that of [`Memo::entry`].
    /// Updates refer to tensors by their index in `subset`.
    #[inline]
    pub fn outcome(
        &mut self,
        tables: &mut Tables<'_>,
        id: MemoId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) -> Outcome {
        if let Some(outcome) = self.remembered(id, run) {
            return outcome;
        }
        self.work_out(id.index(), tables, subset, shardings, run);
        match self.entries[id.index()].outcomes[run] {
            NOTHING => Outcome::Nothing(self.entries[id.index()].nothing),
            change => Outcome::Updates(UpdateListId(change)),
        }
    }
    /// The outcome in `run` of the visit of entry `id`, if it is known.
    #[inline]
    pub fn remembered(&self, id: MemoId, run: usize) -> Option<Outcome> {
        let entry = &self.entries[id.index()];
        match entry.outcomes[run] {
            NOTHING => entry.is_complete.then_some(Outcome::Nothing(entry.nothing)),
            UNKNOWN => None,
            change => Some(Outcome::Updates(UpdateListId(change))),
        }
    }
    /// The entry of the next visit of an op whose last visit made the updates of `list`, if no
    /// other visit has changed its tensors since; [`MemoId::NONE`] if not known yet.
    #[inline]
    pub fn next(&self, list: UpdateListId) -> MemoId {
        self.lists[list.0 as usize].next
    }
    /// Sets what [`Memo::next`] returns for `list`.
    #[inline]
    pub fn set_next(&mut self, list: UpdateListId, next: MemoId) {
        self.lists[list.0 as usize].next = next;
    }
    /// All kinds of runs in which the visit of entry `id` is known to change nothing, if `run` is
    /// among them; otherwise the empty set.
    #[inline]
    pub fn nothing(&self, id: MemoId, run: usize) -> RunMask {
        match self.entries.get(id.index()) {
            Some(entry) if entry.is_complete && entry.outcomes[run] == NOTHING => entry.nothing,
            _ => 0,
        }
    }

    /// Computes the outcome in `run`, and in all other runs if it is "nothing".
    #[cold]
    fn work_out(
        &mut self,
        index: usize,
        tables: &mut Tables<'_>,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) {
        let class = self.entries[index].class;
        let visit = self.cache.visit(tables, class, subset, shardings);
        self.workspace.forget();
        let others = (0..self.runs.len()).filter(|&other| other != run);
        for now in [run].into_iter().chain(others) {
            if self.entries[index].outcomes[now] == UNKNOWN {
                let first = self.cache.class(class).first_alike(self.runs[now]);
                let outcome = self.work_out_one(visit, tables, (class, subset, shardings), first);
                let class = self.cache.class(class);
                for (other, &run) in self.entries[index].outcomes.iter_mut().zip(&self.runs) {
                    if class.first_alike(run) == first {
                        *other = outcome;
                    }
                }
            }
            if self.entries[index].outcomes[run] != NOTHING {
                return;
            }
        }
        let entry = &mut self.entries[index];
        let is_nothing = |&other: &usize| entry.outcomes[other] == NOTHING;
        let nothing = (0..self.runs.len()).filter(is_nothing);
        entry.nothing = nothing.fold(0, |runs, run| runs | 1 << run);
        entry.is_complete = true;
    }

    /// Computes the outcome in `run`, the first of the runs with equal outcomes, or takes it from
    /// the process-wide cache.
    fn work_out_one(
        &mut self,
        visit: Option<CachedVisit>,
        tables: &mut Tables<'_>,
        (class, subset, shardings): (SpecClassId, Subset<'_>, &[ShardingId]),
        run: Run,
    ) -> u32 {
        let Self { lists, updates, cache, workspace, .. } = self;
        let start = updates.len();
        if !visit.is_some_and(|visit| cache.recall(tables, visit, run, updates)) {
            let SpecClass { spec, directions, .. } = cache.class(class);
            let rules = cache.rules();
            let Tables { meshes, shardings: table, .. } = tables;
            let here = &mut Tables { rules, meshes, shardings: table };
            let site = VisitInput { spec: *spec, subset, shardings };
            workspace.visit(here, site, directions.of(run.step), run.strategy, updates);
            if let Some(visit) = visit {
                cache.remember(tables, visit, run, &updates[start..]);
            }
        }
        let updates = start as u32..updates.len() as u32;
        if updates.is_empty() {
            return NOTHING;
        }
        lists.push(UpdateList { updates, next: MemoId::NONE });
        lists.len() as u32 - 1
    }
}
