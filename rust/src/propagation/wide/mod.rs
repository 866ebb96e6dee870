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
//! Where nearly every tensor has a pair of its own, what a visit does is worked out from what has changed
//! since the one before ([`incremental`]).
//!
//! Tensors that share no factor have nothing to do with each other either: each part of the op is
//! visited by itself ([`components`]), and only if one of its tensors has changed. (In the basic
//! strategy an axis that any tensor uses stops all others; there parts are not told apart.)
//!
//! None of that holds where parts of an axis need not nest, which takes an axis whose size is not a
//! power of two, and parts of it; such an op is visited with every tensor from then on, by a ledger if
//! that can be.

pub mod components;
pub mod decomposition;
pub mod incremental;
pub mod tensor_groups;

use crate::index::{MeshId, RuleId, ShardingId};
use crate::mesh::Mesh;
use crate::propagation::engine::{sharding, Engine};
use crate::propagation::memo::{Outcome, Run};
use crate::propagation::origins::{Arrivals, Subject};
use crate::propagation::schedule::queue::RunMask;
use crate::propagation::visit::{visit, Subset, Tables, Update, VisitInput, VisitSpec};
use crate::propagation::Strategy;
use crate::sharding::TensorSharding;
use decomposition::{RuleComponent, RuleDecomposition};
use incremental::IncrementalVisit;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tensor_groups::TensorGroups;

/// What is known of wide ops.
#[derive(Default)]
pub struct Wide {
    /// Those that were visited, by position.
    places: FxHashMap<u32, u32>,
    ops: Vec<WideOp>,
    decompositions: FxHashMap<RuleId, Rc<RuleDecomposition>>,
}

/// What is known of a wide op.
#[derive(Default)]
struct WideOp {
    reader: usize,
    /// How it was visited last.
    spec: Option<VisitSpec>,
    parts: Vec<Part>,
    /// For each run the parts in which it may do something.
    open: Vec<Vec<u32>>,
    /// The mesh of the shardings so far.
    mesh: MeshId,
    /// Whether there was another one.
    has_other_mesh: bool,
    /// Whether it is visited with every tensor.
    is_whole: bool,
    /// If so: what is wanted along each factor.
    incremental: Option<Box<IncrementalVisit>>,
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

/// A part of a wide op.
struct Part {
    /// The runs in which it stands in [`WideOp::open`].
    is_open: RunMask,
    groups: TensorGroups,
    /// Where there are many pairs: what is wanted along each factor.
    incremental: Option<Box<IncrementalVisit>>,
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
        let Some(spec) = self.plan.spec(position) else { return };
        let decomposition = self.decomposition(spec.rule);
        let place = match self.wide.places.get(&position) {
            Some(&place) => place as usize,
            None => self.add_wide(position, &decomposition),
        };
        let mut state = std::mem::take(&mut self.wide.ops[place]);
        self.look_at_changes(position, &decomposition, &mut state);
        if state.spec.replace(spec) != Some(spec) {
            (0..state.parts.len() as u32).for_each(|part| state.open(part));
        }
        let Run { strategy, .. } = self.memo.runs()[run];
        let is_whole =
            state.is_whole || strategy == Strategy::Basic && decomposition.parts.len() > 1;
        let visit = if is_whole {
            let mut updates = if self.can_be_incremental(spec, &state, run) {
                let all = |engine: &mut Self| engine.all_shardings(position);
                self.visit_incrementally(&mut state.incremental, spec, state.mesh, run, all)
            } else {
                self.visit_whole(position, run)
            };
            updates.sort_unstable_by_key(|&(tensor, _)| tensor);
            WideVisit { updates, runs: 1 << run, arrivals: None }
        } else {
            self.visit_parts(spec, &decomposition, &mut state, run)
        };
        self.wide.ops[place] = state;
        if visit.updates.is_empty() {
            return self.queue.unmark(position, visit.runs);
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

    fn decomposition(&mut self, rule: RuleId) -> Rc<RuleDecomposition> {
        let rules = &mut self.program.rules;
        let known = self.wide.decompositions.entry(rule);
        Rc::clone(known.or_insert_with(|| Rc::new(RuleDecomposition::of(rules, rule))))
    }

    /// Starts to keep what is known of the op; all of its tensors are yet to be looked at.
    ///
    /// An edge of a manual computation, whose target looks different from its sources, has one source
    /// and so is never wide.
    fn add_wide(&mut self, position: u32, decomposition: &RuleDecomposition) -> usize {
        let place = self.wide.ops.len();
        let tensors = self.plan.row(position).tensors;
        let kept = tensors.iter().map(|&value| self.plan.edges.holder_of(value));
        let reader = self.readers.add(kept);
        let new = |part: &RuleComponent| Part {
            is_open: 0,
            groups: TensorGroups::new(part.tensors.len()),
            incremental: None,
        };
        let parts = decomposition.parts.iter().map(new).collect();
        let open = vec![Vec::new(); self.memo.runs().len()];
        self.wide.ops.push(WideOp { reader, parts, open, ..WideOp::default() });
        self.wide.places.insert(position, place as u32);
        place
    }

    fn all_shardings(&mut self, position: u32) -> Vec<ShardingId> {
        let (tensors, edges) = (self.plan.row(position).tensors, &self.plan.edges);
        tensors.iter().map(|&tensor| sharding(self.program, edges, tensor)).collect()
    }

    fn look_at_changes(
        &mut self,
        position: u32,
        decomposition: &RuleDecomposition,
        state: &mut WideOp,
    ) {
        for tensor in self.readers.changed(state.reader) {
            let Some((part, number)) = decomposition.places[tensor as usize] else { continue };
            let value = self.plan.tensor(position, tensor as usize);
            let id = sharding(self.program, &self.plan.edges, value);
            let program = &*self.program;
            state.incremental.take_if(|incremental| !incremental.change(program, tensor, id));
            let first = decomposition.parts[part as usize].firsts[number as usize];
            let row = &mut state.parts[part as usize];
            row.groups.put(number, first, id);
            row.incremental.take_if(|incremental| !incremental.change(program, number, id));
            state.open(part);
            if let Some(sharding) = self.program.shardings.get(id) {
                if state.mesh.is_none() {
                    state.mesh = sharding.mesh;
                }
                state.has_other_mesh |= sharding.mesh != state.mesh;
                let is_other_mesh = state.has_other_mesh && decomposition.parts.len() > 1;
                let mesh = self.program.mesh(sharding.mesh);
                state.is_whole |=
                    is_other_mesh || !do_parts_nest(sharding, mesh, decomposition.has_splits);
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
        let Some(spec) = self.plan.spec(position) else { return };
        let num_operands = self.program.rules[spec.rule].operands.len();
        let tensors = self.plan.row(position).tensors.to_vec();
        let subject = Subject::Op(self.plan.op(position));
        self.record_arrivals(subject, num_operands, arrivals, |tensor| tensors[tensor]);
    }

    /// Visits parts that may do something in `run`.
    fn visit_parts(
        &mut self,
        spec: VisitSpec,
        decomposition: &RuleDecomposition,
        state: &mut WideOp,
        run: usize,
    ) -> WideVisit {
        // Behind a factor that is not fully sharded, axes can come to a tensor and leave no trace. Parts in
        // which nothing else happens would have to be looked at for them.
        let is_recording =
            self.recorder.is_some() && !(decomposition.has_splits && decomposition.parts.len() > 1);
        let mut arrivals = is_recording.then(Arrivals::default);
        let is_incremental = self.can_be_incremental(spec, state, run);
        let mut updates: Vec<Update> = Vec::new();
        let mut runs = 1 << run;
        for number in state.take_open(run) {
            let RuleComponent { rule, tensors, .. } = &decomposition.parts[number as usize];
            let spec = VisitSpec { rule: *rule, ..spec };
            let part = &mut state.parts[number as usize];
            if is_incremental && decomposition.parts[number as usize].has_many_mappings() {
                let (groups, incremental) = (&part.groups, &mut part.incremental);
                let all = |_: &mut Self| groups.shardings().collect();
                let new = self.visit_incrementally(incremental, spec, state.mesh, run, all);
                if !new.is_empty() {
                    state.open_in(run, number);
                }
                let of_op = |(tensor, sharding): Update| (tensors[tensor as usize], sharding);
                updates.extend(new.into_iter().map(of_op));
                continue;
            }
            let part = &mut part.groups;
            part.sort();
            let groups = || part.present.iter().map(|&id| part.group(id));
            let firsts: Vec<u32> = groups().map(|group| group.mapping).collect();
            let reduced: Vec<ShardingId> = groups().map(|group| group.sharding).collect();
            let mut tables = Tables {
                rules: &self.program.rules,
                meshes: &self.program.meshes,
                shardings: &mut self.program.shardings,
            };
            let (class, subset) = (self.memo.class(tables.rules, spec), Subset(Some(&firsts)));
            let entry = self.memo.entry(class, subset, &reduced);
            match self.memo.outcome(&mut tables, entry, subset, &reduced, run) {
                Outcome::Nothing(nothing) if decomposition.parts.len() == 1 => runs = nothing,
                Outcome::Nothing(_) => {}
                Outcome::Updates(change) => {
                    if let Some(arrivals) = &mut arrivals {
                        let site = VisitInput { spec, subset, shardings: &reduced };
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

    /// Whether visits of the op in `run` can go by ledgers.
    fn can_be_incremental(&self, spec: VisitSpec, state: &WideOp, run: usize) -> bool {
        self.recorder.is_none()
            && self.memo.runs()[run].strategy != Strategy::Basic
            && !(spec.is_elementwise || state.has_other_mesh)
            && state.mesh.get().is_some_and(|mesh| !self.program.mesh(mesh).is_maximal())
    }

    /// Visits an op or a part of it by its ledger, or by a new one of tensors with these `shardings`.
    /// Tensors of updates count within it.
    fn visit_incrementally(
        &mut self,
        incremental: &mut Option<Box<IncrementalVisit>>,
        spec: VisitSpec,
        mesh: MeshId,
        run: usize,
        shardings: impl FnOnce(&mut Self) -> Vec<ShardingId>,
    ) -> Vec<Update> {
        let known = incremental.take().filter(|incremental| incremental.spec == spec);
        let shardings = if known.is_none() { shardings(self) } else { Vec::new() };
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let runs = self.memo.runs();
        let new = || Box::new(IncrementalVisit::new(&tables, spec, mesh, shardings, runs.len()));
        let incremental = incremental.insert(known.unwrap_or_else(new));
        incremental.visit(&mut tables, run, runs[run].step)
    }

    /// Visits with every tensor. Not remembered: the key would be as long as the op.
    fn visit_whole(&mut self, position: u32, run: usize) -> Vec<Update> {
        let shardings = self.all_shardings(position);
        let Some(spec) = self.plan.spec(position) else { return Vec::new() };
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let Run { step, strategy } = self.memo.runs()[run];
        let directions = spec.directions(tables.rules);
        let site = VisitInput { spec, subset: Subset::ALL, shardings: &shardings };
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
