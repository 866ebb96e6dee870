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
//! Tensors that share no factor have nothing to do with each other either: each part of the op is
//! visited by itself ([`super::parts`]), and only if one of its tensors has changed. (In the basic
//! strategy an axis that any tensor uses stops all others; there parts are not told apart.)
//!
//! None of that holds where parts of an axis need not nest, which takes an axis whose size is not a
//! power of two, and parts of it; such an op is visited with every tensor from then on.

use super::engine::{sharding, Engine};
use super::memo::{Outcome, Run};
use super::origins::{Arrivals, Subject};
use super::parts::{parts, RulePart};
use super::queue::RunMask;
use super::visit::{visit, Site, Subset, Tables, Update, VisitKind};
use super::Strategy;
use crate::index::{MeshId, RuleId, ShardingId};
use crate::mesh::Mesh;
use crate::rule::{OpShardingRule, RuleTable, TensorMapping};
use crate::sharding::TensorSharding;
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
    shapes: FxHashMap<RuleId, Rc<Shape>>,
}

/// What a rule says of a wide op.
struct Shape {
    parts: Vec<ShapePart>,
    /// For each tensor its part, and its number there.
    places: Vec<Option<(u32, u32)>>,
    /// Whether some dim has several factors.
    has_splits: bool,
}

struct ShapePart {
    rule: RuleId,
    /// In order.
    tensors: Vec<u32>,
    /// For each tensor the first one on the same side that has the same mapping.
    firsts: Vec<u32>,
}

impl Shape {
    fn of(rules: &mut RuleTable, id: RuleId) -> Self {
        let rule = &rules[id];
        let num_tensors = rule.operands.len() + rule.results.len();
        let has_splits = rule.tensors().any(|tensor| tensor.dims.iter().any(|dim| dim.len() > 1));
        let mut parts = parts(rule);
        parts.retain(|part| !part.tensors.is_empty());
        let parts: Vec<ShapePart> = if parts.len() > 1 {
            let part = |RulePart { tensors, rule }| {
                let firsts = firsts(&rule);
                ShapePart { rule: rules.intern(rule), tensors, firsts }
            };
            parts.into_iter().map(part).collect()
        } else {
            let tensors = (0..num_tensors as u32).collect();
            vec![ShapePart { rule: id, tensors, firsts: firsts(rule) }]
        };
        let mut places = vec![None; num_tensors];
        for (part, ShapePart { tensors, .. }) in parts.iter().enumerate() {
            for (number, &tensor) in tensors.iter().enumerate() {
                places[tensor as usize] = Some((part as u32, number as u32));
            }
        }
        Self { parts, places, has_splits }
    }
}

/// For each tensor the first one on the same side that has the same mapping.
fn firsts(rule: &OpShardingRule) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(rule.operands.len() + rule.results.len());
    let mut start = 0;
    for side in [&rule.operands, &rule.results] {
        let mut known: FxHashMap<&TensorMapping, u32> = FxHashMap::default();
        for (index, mapping) in side.iter().enumerate() {
            firsts.push(*known.entry(mapping).or_insert(start + index as u32));
        }
        start += side.len() as u32;
    }
    firsts
}

/// What is known of a wide op.
#[derive(Default)]
struct WideOp {
    reader: usize,
    /// How it was visited last.
    kind: Option<VisitKind>,
    parts: Vec<Part>,
    /// For each run the parts in which it may do something.
    open: Vec<Vec<u32>>,
    /// The mesh of the shardings so far.
    mesh: MeshId,
    /// Whether it is visited with every tensor.
    is_whole: bool,
}

impl WideOp {
    /// In all runs something may happen in `part`.
    fn open(&mut self, part: u32) {
        for run in 0..self.open.len() {
            self.open_in(run, part);
        }
    }
    fn open_in(&mut self, run: usize, part: u32) {
        let is_open = &mut self.parts[part as usize].is_open;
        if *is_open & 1 << run == 0 {
            *is_open |= 1 << run;
            self.open[run].push(part);
        }
    }
    /// Takes the parts in which something may happen in `run`.
    fn take_open(&mut self, run: usize) -> Vec<u32> {
        let open = std::mem::take(&mut self.open[run]);
        for &part in &open {
            self.parts[part as usize].is_open &= !(1 << run);
        }
        open
    }
}

/// The tensors of a part by the pair of mapping and sharding that they have.
#[derive(Default)]
struct Part {
    /// The runs in which it stands in [`WideOp::open`].
    is_open: RunMask,
    pairs: Vec<Pair>,
    ids: FxHashMap<(u32, ShardingId), u32>,
    /// For each tensor its pair.
    pair_of: Vec<u32>,
    /// The pairs that tensors have, in the order of their first tensors once [`Part::sort`] ran.
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

impl Part {
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
        let mut present = std::mem::take(present);
        present.sort_unstable_by_key(|&id| self.first(id));
        self.present = present;
    }
    /// The first tensor that has pair `id`, once [`Part::sort`] ran.
    fn first(&self, id: u32) -> u32 {
        self.pairs[id as usize].tensors.peek().map_or(0, |first| first.0)
    }
    /// The tensors that have pair `id`.
    fn tensors(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let tensors = self.pairs[id as usize].tensors.iter().map(|tensor| tensor.0);
        tensors.filter(move |&tensor| self.pair_of[tensor as usize] == id)
    }
}

/// What a visit of a wide op does.
struct WideVisit {
    /// What changes, in order.
    updates: Vec<Update>,
    /// If that is nothing: in which runs.
    runs: RunMask,
    /// What comes to which tensor, if that is recorded and known.
    arrivals: Option<Arrivals>,
}

impl Engine<'_> {
    /// Visits the op at `position`, which has many tensors.
    pub fn visit_wide(&mut self, position: u32, run: usize) {
        let kind = self.plan.kinds.row(self.plan.kind(position)).visit;
        let shape = self.shape(kind.rule);
        let place = match self.wide.places.get(&position) {
            Some(&place) => place as usize,
            None => self.add_wide(position, &shape),
        };
        let mut state = std::mem::take(&mut self.wide.ops[place]);
        self.look_at_changes(position, &shape, &mut state);
        if state.kind.replace(kind) != Some(kind) {
            (0..state.parts.len() as u32).for_each(|part| state.open(part));
        }
        let Run { strategy, .. } = self.memo.runs()[run];
        let is_whole = state.is_whole || strategy == Strategy::Basic && shape.parts.len() > 1;
        let visit = if is_whole {
            let updates = self.visit_all(position, run);
            WideVisit { updates, runs: 1 << run, arrivals: None }
        } else {
            self.visit_parts(kind, &shape, &mut state, run)
        };
        self.wide.ops[place] = state;
        if visit.updates.is_empty() {
            return self.queue.settle(position, visit.runs);
        }
        if self.recorder.is_some() {
            self.record_wide(position, run, &visit);
        }
        for (tensor, sharding) in visit.updates {
            self.stats.updates += 1;
            let value = self.plan.tensor(position, tensor as usize);
            self.update(value, sharding, sharding, position, true);
        }
    }

    fn shape(&mut self, rule: RuleId) -> Rc<Shape> {
        let rules = &mut self.program.rules;
        let known = self.wide.shapes.entry(rule);
        Rc::clone(known.or_insert_with(|| Rc::new(Shape::of(rules, rule))))
    }

    /// Starts to keep what is known of the op; all of its tensors are yet to be looked at.
    ///
    /// An edge of a manual computation, whose target looks different from its sources, has one source
    /// and so is never wide.
    fn add_wide(&mut self, position: u32, shape: &Shape) -> usize {
        let place = self.wide.ops.len();
        let tensors = self.plan.visited(position).tensors;
        let kept = tensors.iter().map(|&value| self.plan.edges.kept(value));
        let reader = self.readers.add(kept);
        let new = |part: &ShapePart| Part {
            pair_of: vec![u32::MAX; part.tensors.len()],
            ..Part::default()
        };
        let parts = shape.parts.iter().map(new).collect();
        let open = vec![Vec::new(); self.memo.runs().len()];
        self.wide.ops.push(WideOp { reader, parts, open, ..WideOp::default() });
        self.wide.places.insert(position, place as u32);
        place
    }

    fn all_shardings(&mut self, position: u32) -> Vec<ShardingId> {
        let (tensors, edges) = (self.plan.visited(position).tensors, &self.plan.edges);
        tensors.iter().map(|&tensor| sharding(self.program, edges, tensor)).collect()
    }

    fn look_at_changes(&mut self, position: u32, shape: &Shape, state: &mut WideOp) {
        for tensor in self.readers.changed(state.reader) {
            let Some((part, number)) = shape.places[tensor as usize] else { continue };
            let value = self.plan.tensor(position, tensor as usize);
            let id = sharding(self.program, &self.plan.edges, value);
            let first = shape.parts[part as usize].firsts[number as usize];
            state.parts[part as usize].put(number, first, id);
            state.open(part);
            if let Some(sharding) = self.program.shardings.get(id) {
                if state.mesh.is_none() {
                    state.mesh = sharding.mesh;
                }
                let is_other_mesh = sharding.mesh != state.mesh && shape.parts.len() > 1;
                let mesh = self.program.mesh(sharding.mesh);
                state.is_whole |= is_other_mesh || !do_parts_nest(sharding, mesh, shape.has_splits);
            }
        }
    }

    /// Records a visit that changes something, before it does.
    #[cold]
    fn record_wide(&mut self, position: u32, run: usize, visit: &WideVisit) {
        let Some(arrivals) = &visit.arrivals else {
            let shardings = self.all_shardings(position);
            return self.record(position, run, &shardings);
        };
        let kind = self.plan.kinds.row(self.plan.kind(position)).visit;
        let num_operands = self.program.rules[kind.rule].operands.len();
        let tensors = self.plan.visited(position).tensors.to_vec();
        let subject = Subject::Op(self.plan.op(position));
        self.record_arrivals(subject, num_operands, arrivals, |tensor| tensors[tensor]);
    }

    /// Visits parts that may do something in `run`.
    fn visit_parts(
        &mut self,
        kind: VisitKind,
        shape: &Shape,
        state: &mut WideOp,
        run: usize,
    ) -> WideVisit {
        // Behind a factor that is not fully sharded, axes can come to a tensor and leave no trace. Parts in
        // which nothing else happens would have to be looked at for them.
        let is_recording = self.recorder.is_some() && !(shape.has_splits && shape.parts.len() > 1);
        let mut arrivals = is_recording.then(Arrivals::default);
        let mut updates: Vec<Update> = Vec::new();
        let mut runs = 1 << run;
        for number in state.take_open(run) {
            let part = &mut state.parts[number as usize];
            part.sort();
            let pairs = || part.present.iter().map(|&id| &part.pairs[id as usize]);
            let firsts: Vec<u32> = pairs().map(|pair| pair.mapping).collect();
            let reduced: Vec<ShardingId> = pairs().map(|pair| pair.sharding).collect();
            let mut tables = Tables {
                rules: &self.program.rules,
                meshes: &self.program.meshes,
                shardings: &mut self.program.shardings,
            };
            let ShapePart { rule, tensors, .. } = &shape.parts[number as usize];
            let kind = VisitKind { rule: *rule, ..kind };
            let (class, subset) = (self.memo.class(tables.rules, kind), Subset(Some(&firsts)));
            let entry = self.memo.entry(class, subset, &reduced);
            match self.memo.outcome(&mut tables, entry, subset, &reduced, run) {
                Outcome::Nothing(nothing) if shape.parts.len() == 1 => runs = nothing,
                Outcome::Nothing(_) => {}
                Outcome::Updates(change) => {
                    if let Some(arrivals) = &mut arrivals {
                        let site = Site { kind, subset, shardings: &reduced };
                        let new = Arrivals::of(&tables, site, self.memo.runs()[run]);
                        let id = |pair: u32| part.present[pair as usize];
                        let first = |pair| tensors[part.first(id(pair)) as usize];
                        let same = |pair| part.tensors(id(pair)).map(|at| tensors[at as usize]);
                        arrivals.add(new, first, same);
                    }
                    for index in self.memo.updates(change) {
                        let (pair, sharding) = self.memo.update(index);
                        let same = part.tensors(part.present[pair as usize]);
                        updates.extend(same.map(|tensor| (tensors[tensor as usize], sharding)));
                    }
                    state.open_in(run, number);
                }
            }
        }
        updates.sort_unstable_by_key(|&(tensor, _)| tensor);
        // A tensor that left a pair and came back stands there twice.
        updates.dedup();
        WideVisit { updates, runs, arrivals: arrivals.map(Arrivals::in_order) }
    }

    /// Visits with every tensor. Not remembered: the key would be as long as the op.
    fn visit_all(&mut self, position: u32, run: usize) -> Vec<Update> {
        let shardings = self.all_shardings(position);
        let kind = self.plan.kinds.row(self.plan.kind(position)).visit;
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let Run { step, strategy } = self.memo.runs()[run];
        let directions = kind.directions(tables.rules);
        let site = Site { kind, subset: Subset::ALL, shardings: &shardings };
        visit(&mut tables, site, directions.of(step), strategy)
    }
}

/// Whether all parts of axes that a visit can meet nest, as far as it depends on `sharding`.
fn do_parts_nest(sharding: &TensorSharding, mesh: &Mesh, has_splits: bool) -> bool {
    sharding.axis_refs().all(|axis| {
        let size = mesh.axis_size(axis.axis);
        size & (size - 1) == 0 || !(has_splits || axis.sub.is_some())
    })
}
