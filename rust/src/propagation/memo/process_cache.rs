//! The process-wide cache of visits: outcomes of visits of all programs so far.
//!
//! The outcome of a visit is a function of its rule, mesh and shardings, which have different ids
//! in each program. The cache has its own ids, and translates those of the current program in both
//! directions. If a program is propagated again, for example with other annotations, only new
//! visits are computed.
//!
//! The cache is bounded: visits of more than [`MAX_TENSORS`] tensors are not stored, and the cache
//! is emptied when it has [`MAX_VISITS`] visits or the meshes list too many device ids.
//! [`crate::memoization`] hands it from run to run, across threads and forks.

use super::ids::SpecClassId;
use super::rule_equivalence::RuleEquivalence;
use crate::index::{Id, MeshId, RuleId, ShardingId};
use crate::ir::{MeshTable, Tables};
use crate::memoization::{CacheSlot, Memo, Taken};
use crate::mesh::Mesh;
use crate::op_sharding_rule::RuleTable;
use crate::propagation::visit::direction::{Directions, NUM_STEPS};
use crate::propagation::visit::{Run, Subset, Update, VisitSpec, VisitStrategy};
use crate::sharding::ShardingTable;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most visits, and classes of specs, that are stored: many times those of a large model.
pub const MAX_VISITS: usize = 1 << 15;

/// Visits of more tensors than this are not stored: an op with thousands of tensors would add thousands of
/// keys of that length.
pub const MAX_TENSORS: usize = 64;

/// The most device ids, summed over all meshes that list them.
const MAX_DEVICE_IDS: usize = 1 << 20;

/// The caches that no run uses at present.
static KEPT: CacheSlot<ProcessVisitCache> = CacheSlot::new();

/// Empties the cache. Runs in progress keep using the visits that they have.
pub fn clear() {
    KEPT.clear();
}

/// Number of visits in the cache, at most [`MAX_VISITS`]; 0 while a run uses it.
pub fn len() -> usize {
    KEPT.size(|table| table.rows.len())
}

/// A class of specs with equal visits.
#[derive(Clone)]
pub struct SpecClass {
    /// A representative of these specs; its rule is an id of [`ProcessVisitCache::rules`].
    pub spec: VisitSpec,
    /// The directions in which each factor propagates.
    pub directions: Directions,
    /// For each op-priority step, the first step with equal directions.
    first_alike: [usize; NUM_STEPS],
}

impl SpecClass {
    /// The first kind of greedy run whose visits have the same outcomes as those of `run`.
    pub fn first_alike(&self, run: Run) -> Run {
        Run { step: self.first_alike[run.step], ..run }
    }
}

/// A visit that may be in the table: its row, and the mesh for the translation of ids.
#[derive(Clone, Copy)]
pub struct CachedVisit {
    row: usize,
    /// The mesh of all shardings, by its id in the program.
    mesh: MeshId,
}

/// The range of the updates of a visit, if the outcome is known.
type Outcome = Option<(u32, u32)>;

/// The outcomes of a visit in each kind of greedy run, by op-priority step.
#[derive(Clone, Default)]
struct Outcomes {
    basic: [Outcome; NUM_STEPS],
    aggressive: [Outcome; NUM_STEPS],
}

impl Outcomes {
    fn of(&mut self, run: Run) -> &mut Outcome {
        let column = match run.strategy {
            VisitStrategy::Basic => &mut self.basic,
            VisitStrategy::Aggressive => &mut self.aggressive,
        };
        &mut column[run.step]
    }
}

/// The table of visits: their inputs, by ids of the cache, and their outcomes.
#[derive(Clone)]
pub struct ProcessVisitCache {
    equivalence: RuleEquivalence,
    classes: Vec<SpecClass>,
    class_ids: FxHashMap<VisitSpec, SpecClassId>,
    meshes: FxHashMap<Arc<Mesh>, MeshId>,
    shardings: ShardingTable,
    /// Row numbers, by class, shardings and subset.
    rows: Memo<usize>,
    outcomes: Vec<Outcomes>,
    updates: Vec<Update>,
    program: ProgramNumbers,
    /// Number of device ids listed by the meshes.
    num_device_ids: usize,
}

/// The translation between ids of the current program and ids of the cache.
#[derive(Clone, Default)]
struct ProgramNumbers {
    /// For each mesh of the program its id in the cache, if known.
    meshes: Vec<MeshId>,
    /// For each sharding of the program its id in the cache, if known.
    shardings: Vec<ShardingId>,
    /// For each sharding of the cache the mesh for which it was last looked up, and its id in the
    /// program.
    back: Vec<(MeshId, ShardingId)>,
}

/// The entry of `list` at `index`; extends the list if it is shorter.
fn entry_at<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

impl ProcessVisitCache {
    fn new() -> Self {
        Self {
            equivalence: RuleEquivalence::default(),
            classes: Vec::new(),
            class_ids: FxHashMap::default(),
            meshes: FxHashMap::default(),
            shardings: ShardingTable::default(),
            rows: Memo::default(),
            outcomes: Vec::new(),
            updates: Vec::new(),
            program: ProgramNumbers::default(),
            num_device_ids: 0,
        }
    }
    /// Takes the cache for the propagation of a program in these kinds of greedy runs.
    pub fn take(runs: &[Run]) -> Taken<Self> {
        Self::started(KEPT.take(Self::new), runs)
    }
    /// A separate cache, which the process does not keep.
    pub fn apart(runs: &[Run]) -> Taken<Self> {
        Self::started(Taken::apart(Self::new()), runs)
    }
    fn started(mut table: Taken<Self>, runs: &[Run]) -> Taken<Self> {
        let is_exact = |run: &Run| run.strategy.guarantees().uses_exact_factor_sizes;
        table.equivalence.start_program(runs.iter().any(is_exact));
        table
    }
    /// Puts the cache back for the next propagation.
    pub fn leave(mut table: Taken<Self>) {
        table.program = ProgramNumbers::default();
        table.equivalence.forget_program();
        if !table.is_full() && table.classes.len() < MAX_VISITS {
            KEPT.leave(table, |table| table.rows.len());
        }
    }
    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_VISITS || self.num_device_ids > MAX_DEVICE_IDS
    }

    /// The number of visits.
    pub fn num_visits(&self) -> usize {
        self.rows.len()
    }
    /// Removes all visits and their shardings; keeps classes.
    pub fn forget_visits(&mut self) {
        self.shardings = ShardingTable::default();
        self.rows.clear();
        self.outcomes.clear();
        self.updates.clear();
        self.program.shardings.clear();
        self.program.back.clear();
    }

    /// The rules of all classes.
    pub fn rules(&self) -> &RuleTable {
        self.equivalence.rules()
    }
    /// The class with this id.
    #[inline]
    pub fn class(&self, id: SpecClassId) -> &SpecClass {
        &self.classes[id.index()]
    }
    /// The class of `spec`, whose rule is one of `rules`.
    pub fn class_of(&mut self, rules: &RuleTable, spec: VisitSpec) -> SpecClassId {
        let rule: RuleId = self.equivalence.representative(rules, spec.rule);
        let spec = VisitSpec { rule, ..spec };
        let next = SpecClassId::from_index(self.classes.len());
        let id = *self.class_ids.entry(spec).or_insert(next);
        if id == next {
            let directions = spec.directions(self.rules());
            let first_alike = std::array::from_fn(|step| {
                let is_alike = |&other: &usize| directions.of(other) == directions.of(step);
                (0..step).find(is_alike).unwrap_or(step)
            });
            self.classes.push(SpecClass { spec, directions, first_alike });
        }
        id
    }

    /// Finds or adds the visit of an op of `class` whose tensors have these shardings; `None` if it is not
    /// stored: it has too many tensors, the cache is full, or the shardings are not all over one mesh.
    pub fn visit(
        &mut self,
        tables: &Tables<'_>,
        class: SpecClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> Option<CachedVisit> {
        let mut meshes =
            shardings.iter().filter_map(|&id| tables.shardings.get(id)).map(|known| known.mesh);
        let mesh = meshes.next()?;
        let is_long = shardings.len() > MAX_TENSORS;
        if is_long || meshes.any(|other| other != mesh) || self.is_full() {
            return None;
        }
        let mut key = self.rows.key();
        key.extend([class.index() as u32, shardings.len() as u32]);
        key.extend(shardings.iter().map(|&id| self.sharding(tables, id).index() as u32));
        key.extend(subset.key());
        let row = self.rows.find(key).unwrap_or_else(|key| {
            self.outcomes.push(Outcomes::default());
            self.rows.add(key, self.outcomes.len() - 1)
        });
        Some(CachedVisit { row, mesh })
    }
    /// Appends to `updates` the outcome of the visit in `run`, a run that
    /// [`SpecClass::first_alike`] returned; false if it is not known.
    pub fn recall(
        &mut self,
        tables: &mut Tables<'_>,
        visit: CachedVisit,
        run: Run,
        updates: &mut Vec<Update>,
    ) -> bool {
        let Some((start, end)) = *self.outcomes[visit.row].of(run) else { return false };
        for at in start..end {
            let (tensor, sharding) = self.updates[at as usize];
            updates.push((tensor, self.sharding_of_program(tables, sharding, visit.mesh)));
        }
        true
    }
    /// Stores the updates of the visit in `run`, a run that [`SpecClass::first_alike`] returned.
    pub fn remember(
        &mut self,
        tables: &Tables<'_>,
        visit: CachedVisit,
        run: Run,
        updates: &[Update],
    ) {
        let start = self.updates.len() as u32;
        for &(tensor, sharding) in updates {
            let sharding = self.sharding(tables, sharding);
            self.updates.push((tensor, sharding));
        }
        *self.outcomes[visit.row].of(run) = Some((start, self.updates.len() as u32));
    }

    /// The id in the cache of sharding `id` of the program.
    fn sharding(&mut self, tables: &Tables<'_>, id: ShardingId) -> ShardingId {
        let Some(sharding) = tables.shardings.get(id) else { return id };
        if let Some(known) = entry_at(&mut self.program.shardings, id.index()).get() {
            return known;
        }
        let mesh = sharding.mesh;
        let mut sharding = sharding.clone();
        sharding.mesh = self.mesh(tables.meshes, mesh);
        let known = self.shardings.intern(sharding);
        self.program.link(known, (mesh, id));
        known
    }
    /// The id in the program of sharding `known` of the cache, over `mesh` of the program.
    fn sharding_of_program(
        &mut self,
        tables: &mut Tables<'_>,
        known: ShardingId,
        mesh: MeshId,
    ) -> ShardingId {
        let back = self.program.back.get(known.index());
        if let Some(&(_, id)) = back.filter(|&&(over, _)| over == mesh) {
            return id;
        }
        let mut sharding = self.shardings[known].clone();
        sharding.mesh = mesh;
        let id = tables.shardings.intern(sharding);
        self.program.link(known, (mesh, id));
        id
    }
    /// The id in the cache of mesh `id` of the program; equal meshes have the same id.
    fn mesh(&mut self, meshes: &MeshTable, id: MeshId) -> MeshId {
        let known = entry_at(&mut self.program.meshes, id.index());
        if known.is_none() {
            let (mesh, next) = (&meshes[id].mesh, MeshId::from_index(self.meshes.len()));
            *known = *self.meshes.entry(mesh.clone()).or_insert_with(|| {
                self.num_device_ids += mesh.device_ids.len();
                next
            });
        }
        *known
    }
}

impl ProgramNumbers {
    /// Records that sharding `id` of the program, over `mesh`, is `known` in the cache.
    fn link(&mut self, known: ShardingId, (mesh, id): (MeshId, ShardingId)) {
        *entry_at(&mut self.shardings, id.index()) = known;
        *entry_at(&mut self.back, known.index()) = (mesh, id);
    }
}
