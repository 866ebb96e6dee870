//! What is remembered of visits.
//!
//! The memo of a run maps what a visit depends on to what it changes; the cache of the process
//! ([`process_cache`]) does so across programs. A model repeats its layers, so that nearly all visits have been made before with the same rule
//! and the same shardings. An entry holds the outcome for each kind of greedy run; once one of them
//! is 'nothing', all are worked out, so that the caller knows in which runs it need not look again.

mod ids;
mod lookup;
pub mod process_cache;
pub mod rule_equivalence;

pub use ids::{MemoId, SpecClassId};

use crate::index::ShardingId;
use crate::ir::Tables;
use crate::kept::Taken;
use crate::propagation::visit::{
    Run, RunMask, SpecId, Subset, Update, VisitInput, VisitSpec, Workspace, MAX_RUNS,
};
use crate::rule::RuleTable;
use lookup::Lookup;
use process_cache::{CachedVisit, ProcessVisitCache, SpecClass};
use std::ops::Range;

/// What a visit does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing, in all of these runs.
    Nothing(RunMask),
    /// These updates, see [`Memo::updates`].
    Updates(UpdateListId),
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

struct MemoEntry {
    class: SpecClassId,
    /// For each run what it changes.
    outcomes: [u32; MAX_RUNS],
    /// The runs in which the outcome is known to be nothing.
    nothing: RunMask,
    is_complete: bool,
}

/// The number of a list of updates: what a visit changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpdateListId(u32);

struct UpdateList {
    updates: Range<u32>,
    /// The visit that an op comes to by it.
    next: MemoId,
}

/// The memo of a run: what visits change.
pub struct Memo {
    runs: Vec<Run>,
    /// By spec of the program: its class, `UNKNOWN` until the first visit.
    classes: Vec<SpecClassId>,
    lookup: Lookup,
    entries: Vec<MemoEntry>,
    lists: Vec<UpdateList>,
    updates: Vec<Update>,
    cache: Taken<ProcessVisitCache>,
    workspace: Workspace,
    /// Number of look-ups that found their entry.
    pub hits: usize,
}

impl Memo {
    pub fn new(runs: Vec<Run>) -> Self {
        debug_assert!(runs.len() <= MAX_RUNS);
        Self {
            classes: Vec::new(),
            lookup: Lookup::default(),
            entries: Vec::new(),
            lists: Vec::new(),
            updates: Vec::new(),
            cache: ProcessVisitCache::take(&runs),
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
    /// Number of different visits made.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// The updates of a list, by their numbers.
    #[inline]
    pub fn updates(&self, list: UpdateListId) -> Range<u32> {
        self.lists[list.0 as usize].updates.clone()
    }
    /// The update of that number.
    #[inline]
    pub fn update(&self, index: u32) -> Update {
        self.updates[index as usize]
    }
    /// The class of `spec`, whose rule is one of `rules`.
    #[cold]
    pub fn class(&mut self, rules: &RuleTable, spec: VisitSpec) -> SpecClassId {
        self.cache.class_of(rules, spec)
    }
    /// The class of the spec numbered `id`, which `spec` says if it was not visited yet.
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
    /// Leaves what was learned to later runs.
    pub fn leave(self) {
        ProcessVisitCache::leave(self.cache);
    }
    /// The visit of an op of `class` whose tensors (those in `subset`) have these shardings.
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
    /// What a visit changes in `run`, see [`Memo::entry`]. Indices in updates count within `subset`.
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
    /// What a visit changes in `run`, if it has been worked out.
    #[inline]
    pub fn remembered(&self, id: MemoId, run: usize) -> Option<Outcome> {
        let entry = &self.entries[id.index()];
        match entry.outcomes[run] {
            NOTHING => entry.is_complete.then_some(Outcome::Nothing(entry.nothing)),
            UNKNOWN => None,
            change => Some(Outcome::Updates(UpdateListId(change))),
        }
    }
    /// The visit that an op comes to by `list` if nothing else changes its tensors;
    /// [`MemoId::NONE`] if that is not known yet.
    #[inline]
    pub fn next(&self, list: UpdateListId) -> MemoId {
        self.lists[list.0 as usize].next
    }
    /// Says what [`Memo::next`] is.
    #[inline]
    pub fn set_next(&mut self, list: UpdateListId, next: MemoId) {
        self.lists[list.0 as usize].next = next;
    }
    /// The runs in which visit `id` is known to do nothing if `run` is one of them; else none.
    #[inline]
    pub fn nothing(&self, id: MemoId, run: usize) -> RunMask {
        match self.entries.get(id.index()) {
            Some(entry) if entry.is_complete && entry.outcomes[run] == NOTHING => entry.nothing,
            _ => 0,
        }
    }

    /// Works out the outcome in `run`; if it is nothing, in all other runs too.
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

    /// Works out the outcome in `run`, the first of those alike, unless it is cache.
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
