//! Visits of ops with many tensors.
//!
//! What a visit does depends on the tensors only through the different pairs of mapping and sharding
//! among them, in the order of their first appearance: merging axes and looking for conflicts is a
//! fold over the tensors, and folding in the same pair again later changes nothing. (Both folds only
//! ever shorten a list that the pair already agrees with.) So of a concatenation of thousands of
//! operands a handful are looked at, and all others change like them.
//!
//! Which tensors have which pair is kept from visit to visit. Where the sharding of a value changes,
//! the tensors that read it are listed, and the next visit looks at those alone: one operand of
//! thousands that changes costs the logarithm of their number, not their number.
//!
//! None of that holds where parts of an axis need not nest, which takes an axis whose size is not a
//! power of two, and parts of it; such a visit looks at every tensor.

use super::engine::{sharding, Engine};
use super::memo::{Memo, Outcome};
use super::queue::RunMask;
use super::visit::{directions, visit, Subset, Tables, Update, VisitKind};
use crate::index::{RuleId, ShardingId};
use crate::rule::{OpShardingRule, TensorMapping};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// What is known of wide ops.
#[derive(Default)]
pub(super) struct Wide {
    /// Those that were visited, by position.
    places: FxHashMap<u32, u32>,
    ops: Vec<WideOp>,
    mappings: FxHashMap<RuleId, Rc<Mappings>>,
}

/// What a rule says about the tensors of a wide op.
struct Mappings {
    /// For each tensor the first one on the same side that has the same mapping.
    firsts: Vec<u32>,
    /// Whether some dim has several factors.
    has_splits: bool,
}

impl Mappings {
    fn of(rule: &OpShardingRule) -> Self {
        let mut firsts = Vec::with_capacity(rule.operands.len() + rule.results.len());
        let mut start = 0;
        for side in [&rule.operands, &rule.results] {
            let mut known: FxHashMap<&TensorMapping, u32> = FxHashMap::default();
            for (index, mapping) in side.iter().enumerate() {
                firsts.push(*known.entry(mapping).or_insert(start + index as u32));
            }
            start += side.len() as u32;
        }
        let has_splits = rule.tensors().any(|tensor| tensor.dims.iter().any(|dim| dim.len() > 1));
        Self { firsts, has_splits }
    }
}

/// The tensors of a wide op by the pair of mapping and sharding that they have.
#[derive(Default)]
struct WideOp {
    reader: usize,
    pairs: Vec<Pair>,
    ids: FxHashMap<(u32, ShardingId), u32>,
    /// For each tensor its pair.
    pair_of: Vec<u32>,
    /// The pairs that tensors have, in the order of their first tensors once [`WideOp::sort`] ran.
    present: Vec<u32>,
}

struct Pair {
    /// The first tensor that has the mapping.
    mapping: u32,
    sharding: ShardingId,
    is_present: bool,
    /// Tensors that have the pair, and some that had it once; the first one is the smallest.
    tensors: BinaryHeap<Reverse<u32>>,
}

impl WideOp {
    /// Notes that the tensor, whose mapping is that of tensor `mapping`, has `sharding` now.
    fn put(&mut self, tensor: u32, mapping: u32, sharding: ShardingId) {
        let next = self.pairs.len() as u32;
        let id = *self.ids.entry((mapping, sharding)).or_insert(next);
        if id == next {
            let tensors = BinaryHeap::new();
            self.pairs.push(Pair { mapping, sharding, is_present: false, tensors });
        }
        if self.pair_of[tensor as usize] == id {
            return;
        }
        self.pair_of[tensor as usize] = id;
        let pair = &mut self.pairs[id as usize];
        pair.tensors.push(Reverse(tensor));
        if !pair.is_present {
            pair.is_present = true;
            self.present.push(id);
        }
    }
    /// Finds the first tensor of each pair, and puts the pairs in the order of those.
    fn sort(&mut self) {
        let Self { pairs, pair_of, present, .. } = self;
        present.retain(|&id| {
            let pair = &mut pairs[id as usize];
            while pair.tensors.peek().is_some_and(|first| pair_of[first.0 as usize] != id) {
                pair.tensors.pop();
            }
            pair.is_present = !pair.tensors.is_empty();
            pair.is_present
        });
        present.sort_unstable_by_key(|&id| pairs[id as usize].tensors.peek().map(|first| first.0));
    }
    /// The tensors that have pair `id`.
    fn tensors(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let tensors = self.pairs[id as usize].tensors.iter().map(|tensor| tensor.0);
        tensors.filter(move |&tensor| self.pair_of[tensor as usize] == id)
    }
    /// The shardings of all tensors.
    fn shardings(&self) -> impl Iterator<Item = ShardingId> + '_ {
        self.pair_of.iter().map(|&id| self.pairs[id as usize].sharding)
    }
}

/// What a visit of a wide op does.
enum WideOutcome {
    /// Nothing, in all of these runs.
    Nothing(RunMask),
    /// These updates, in order.
    Updates(Vec<Update>),
}

impl Engine<'_> {
    /// Visits the op at `position`, which has many tensors.
    pub fn visit_wide(&mut self, position: u32, run: usize) {
        let place = match self.wide.places.get(&position) {
            Some(&place) => place as usize,
            None => self.add_wide(position),
        };
        let kind = self.plan.kinds.row(self.plan.kind(position)).visit;
        let mappings = self.mappings(kind.rule);
        let mut state = std::mem::take(&mut self.wide.ops[place]);
        for tensor in self.readers.changed(state.reader) {
            let value = self.plan.tensor(position, tensor as usize);
            let sharding = sharding(self.program, &self.plan.edges, value);
            state.put(tensor, mappings.firsts[tensor as usize], sharding);
        }
        state.sort();
        match self.wide_outcome(kind, &mappings, &state, run) {
            WideOutcome::Nothing(runs) => self.queue.settle(position, runs),
            WideOutcome::Updates(updates) => {
                if self.recorder.is_some() {
                    self.shardings.clear();
                    self.shardings.extend(state.shardings());
                    self.record(position, run);
                }
                for (tensor, sharding) in updates {
                    self.apply_elsewhere(position, tensor as usize, sharding);
                }
            }
        }
        self.wide.ops[place] = state;
    }

    fn mappings(&mut self, rule: RuleId) -> Rc<Mappings> {
        let rules = &self.program.rules;
        let known = self.wide.mappings.entry(rule);
        Rc::clone(known.or_insert_with(|| Rc::new(Mappings::of(&rules[rule]))))
    }

    /// Starts to keep what is known of the op; all of its tensors are yet to be looked at.
    ///
    /// An edge of a manual computation, whose target looks different from its sources, has one source
    /// and so is never wide.
    fn add_wide(&mut self, position: u32) -> usize {
        let place = self.wide.ops.len();
        let tensors = self.plan.visited(position).tensors;
        let pair_of = vec![u32::MAX; tensors.len()];
        let kept = tensors.iter().map(|&value| self.plan.edges.kept(value));
        let reader = self.readers.add(kept);
        self.wide.ops.push(WideOp { reader, pair_of, ..WideOp::default() });
        self.wide.places.insert(position, place as u32);
        place
    }

    fn wide_outcome(
        &mut self,
        kind: VisitKind,
        mappings: &Mappings,
        state: &WideOp,
        run: usize,
    ) -> WideOutcome {
        let pairs = || state.present.iter().map(|&id| &state.pairs[id as usize]);
        let firsts: Vec<u32> = pairs().map(|pair| pair.mapping).collect();
        let reduced: Vec<ShardingId> = pairs().map(|pair| pair.sharding).collect();
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        if !is_reducible(&tables, mappings.has_splits, &reduced) {
            let all: Vec<ShardingId> = state.shardings().collect();
            return visit_all(&self.memo, &mut tables, kind, &all, run);
        }
        let (class, subset) = (self.memo.class(tables.rules, kind), Subset(Some(&firsts)));
        let entry = self.memo.entry(class, subset, &reduced);
        match self.memo.outcome(&mut tables, entry, subset, &reduced, run) {
            Outcome::Nothing(runs) => WideOutcome::Nothing(runs),
            Outcome::Updates(change) => {
                let mut updates: Vec<Update> = Vec::new();
                for index in self.memo.updates(change) {
                    let (pair, sharding) = self.memo.update(index);
                    let tensors = state.tensors(state.present[pair as usize]);
                    updates.extend(tensors.map(|tensor| (tensor, sharding)));
                }
                updates.sort_unstable_by_key(|&(tensor, _)| tensor);
                // A tensor that left a pair and came back stands there twice.
                updates.dedup();
                WideOutcome::Updates(updates)
            }
        }
    }
}

/// Visits with every tensor. Not remembered: the key would be as long as the op.
fn visit_all(
    memo: &Memo,
    tables: &mut Tables<'_>,
    kind: VisitKind,
    shardings: &[ShardingId],
    run: usize,
) -> WideOutcome {
    let directions = directions(kind, &tables.rules[kind.rule], memo.runs()[run].step);
    let strategy = memo.runs()[run].strategy;
    let updates = visit(tables, kind, Subset::ALL, shardings, &directions, strategy);
    if updates.is_empty() {
        WideOutcome::Nothing(1 << run)
    } else {
        WideOutcome::Updates(updates)
    }
}

/// Whether all parts of axes that the visit can meet nest.
fn is_reducible(tables: &Tables<'_>, has_splits: bool, shardings: &[ShardingId]) -> bool {
    shardings.iter().filter_map(|&id| tables.shardings.get(id)).all(|sharding| {
        let mesh = &tables.meshes[sharding.mesh].mesh;
        sharding.axis_refs().all(|axis| {
            let size = mesh.axis_size(axis.axis);
            size & (size - 1) == 0 || !(has_splits || axis.sub.is_some())
        })
    })
}
