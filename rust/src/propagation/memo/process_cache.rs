//! Visits that this process has made before, of whichever program.
//!
//! What a visit does follows from what its rule, its mesh and its shardings are, but each program counts
//! those in its own way. Here they have numbers for the whole process, which a run finds once for each
//! of its own numbers, and back. So a program that is propagated again, with other annotations say, works
//! out only what is new.
//!
//! A run takes the table along and leaves it to the next one; one that starts meanwhile begins a new
//! table, and the larger of the two is kept. A table that is full is not kept: programs with so many
//! different visits would only fill it again.

use super::rule_equivalence::RuleEquivalence;
use super::{Run, SpecClassId};
use crate::index::{Id, MeshId, RuleId, ShardingId};
use crate::ir::MeshTable;
use crate::mesh::Mesh;
use crate::propagation::visit::direction::{Directions, NUM_STEPS};
use crate::propagation::visit::{Subset, Tables, Update, VisitSpec};
use crate::propagation::Strategy;
use crate::rule::RuleTable;
use crate::sharding::ShardingTable;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most visits, and kinds of visits, that are remembered: many times those of a large model.
const MAX_VISITS: usize = 1 << 15;

/// Visits of more tensors than this are not remembered: those of an op with thousands of different ones
/// would take as many keys of that length.
const MAX_TENSORS: usize = 64;

/// The table, while no run has it.
static KEPT: Mutex<Option<Box<ProcessVisitCache>>> = Mutex::new(None);

/// What visits of a class have in common.
pub struct SpecClass {
    /// The rule is one of [`ProcessVisitCache::rules`].
    pub spec: VisitSpec,
    /// In which directions it propagates.
    pub directions: Directions,
    /// For each step the first one with the same directions.
    first_alike: [usize; NUM_STEPS],
}

impl SpecClass {
    /// The first kind of greedy run in which visits do what they do in `run`.
    pub fn first_alike(&self, run: Run) -> Run {
        Run { step: self.first_alike[run.step], ..run }
    }
}

/// A visit: a row of the table.
#[derive(Clone, Copy)]
pub struct CachedVisit {
    row: usize,
    /// The mesh of all shardings, as the program counts.
    mesh: MeshId,
}

/// For each step, in the basic and in the aggressive strategy, where the updates start and end.
type Outcomes = [Option<(u32, u32)>; 2 * NUM_STEPS];

/// The table.
pub struct ProcessVisitCache {
    equivalence: RuleEquivalence,
    classes: Vec<SpecClass>,
    class_ids: FxHashMap<VisitSpec, SpecClassId>,
    meshes: FxHashMap<Arc<Mesh>, MeshId>,
    shardings: ShardingTable,
    /// By class, shardings and subset.
    rows: FxHashMap<Box<[u32]>, usize>,
    outcomes: Vec<Outcomes>,
    updates: Vec<Update>,
    key: Vec<u32>,
    program: Numbers,
}

/// How the program at hand counts.
#[derive(Default)]
struct Numbers {
    /// For each of its meshes the one here, absent if not known yet.
    meshes: Vec<MeshId>,
    /// For each of its shardings the one here, likewise.
    shardings: Vec<ShardingId>,
    /// For each sharding here the one there, over the mesh that it was last wanted over.
    back: Vec<(MeshId, ShardingId)>,
}

/// The place of `index` in `list`, which is made long enough.
fn place<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
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
            rows: FxHashMap::default(),
            outcomes: Vec::new(),
            updates: Vec::new(),
            key: Vec::new(),
            program: Numbers::default(),
        }
    }
    /// Takes the table along, for a run.
    pub fn take() -> Box<Self> {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.unwrap_or_else(|| Box::new(Self::new()))
    }
    /// Leaves the table to the next run.
    pub fn leave(mut self: Box<Self>) {
        self.program = Numbers::default();
        self.equivalence.forget_program();
        if self.is_full() || self.classes.len() >= MAX_VISITS {
            return;
        }
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|kept| kept.rows.len() < self.rows.len()) {
            *kept = Some(self);
        }
    }
    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_VISITS
    }

    /// The rules that classes of visits have.
    pub fn rules(&self) -> &RuleTable {
        self.equivalence.rules()
    }
    /// The class of that number.
    #[inline]
    pub fn class(&self, id: SpecClassId) -> &SpecClass {
        &self.classes[id.index()]
    }
    /// The class of visits of `kind`, whose rule is one of `rules`.
    pub fn class_of(&mut self, rules: &RuleTable, spec: VisitSpec) -> SpecClassId {
        let rule: RuleId = self.equivalence.first(rules, spec.rule);
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

    /// The visit of an op of `class` whose tensors have these shardings; `None` if it cannot be known
    /// here: there are many tensors, no room, or no mesh that all shardings are over.
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
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend([class.index() as u32, shardings.len() as u32]);
        key.extend(shardings.iter().map(|&id| self.sharding(tables, id).index() as u32));
        key.extend(subset.key());
        let next = self.outcomes.len();
        let row = self.rows.get(&key[..]).copied().unwrap_or(next);
        if row == next {
            self.rows.insert(key[..].into(), row);
            self.outcomes.push(Outcomes::default());
        }
        self.key = key;
        Some(CachedVisit { row, mesh })
    }
    /// Adds to `updates` what the visit changes in `run`, which is the first of those alike; false if
    /// that is not known.
    pub fn recall(
        &mut self,
        tables: &mut Tables<'_>,
        visit: CachedVisit,
        run: Run,
        updates: &mut Vec<Update>,
    ) -> bool {
        let Some((start, end)) = self.outcomes[visit.row][column(run)] else { return false };
        for at in start..end {
            let (tensor, sharding) = self.updates[at as usize];
            updates.push((tensor, self.sharding_of_program(tables, sharding, visit.mesh)));
        }
        true
    }
    /// Remembers what the visit changes in `run`, likewise.
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
        self.outcomes[visit.row][column(run)] = Some((start, self.updates.len() as u32));
    }

    /// The number here of sharding `id` of the program.
    fn sharding(&mut self, tables: &Tables<'_>, id: ShardingId) -> ShardingId {
        let Some(sharding) = tables.shardings.get(id) else { return id };
        if let Some(known) = place(&mut self.program.shardings, id.index()).get() {
            return known;
        }
        let mesh = sharding.mesh;
        let mut sharding = sharding.clone();
        sharding.mesh = self.mesh(tables.meshes, mesh);
        let known = self.shardings.intern(sharding);
        self.program.link(known, (mesh, id));
        known
    }
    /// The number in the program of the sharding `known`, over `mesh` of the program.
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
    /// The number here of mesh `id` of the program. Meshes that are equal have the same.
    fn mesh(&mut self, meshes: &MeshTable, id: MeshId) -> MeshId {
        let known = place(&mut self.program.meshes, id.index());
        if known.is_none() {
            let next = MeshId::from_index(self.meshes.len());
            *known = *self.meshes.entry(meshes[id].mesh.clone()).or_insert(next);
        }
        *known
    }
}

impl Numbers {
    /// Notes that sharding `id` of the program, which is over `mesh`, is `known` here.
    fn link(&mut self, known: ShardingId, (mesh, id): (MeshId, ShardingId)) {
        *place(&mut self.shardings, id.index()) = known;
        *place(&mut self.back, known.index()) = (mesh, id);
    }
}

/// Where the outcome in `run` stands in a row.
fn column(run: Run) -> usize {
    2 * run.step + usize::from(run.strategy != Strategy::Basic)
}
