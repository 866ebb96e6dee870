//! Wide ops: visits of ops with many tensors.
//!
//! Merging axes and finding conflicts are folds over the tensors that can only shorten a list, so a
//! tensor with the same mapping and sharding as an earlier one does not change the result. A visit
//! therefore reads one tensor of each such group, in the order of their first tensors, and all
//! tensors of a group change in the same way ([`tensor_groups`]). For a concatenation of thousands
//! of operands, it reads only a few.
//!
//! The groups are kept from visit to visit ([`wide_op`]). When the sharding of a value changes, the
//! tensors that read it are listed, and the next visit regroups only those: a change of one operand
//! takes time logarithmic in the number of operands.
//!
//! If most groups have one tensor, a visit is computed incrementally from the previous one
//! ([`incremental`]).
//!
//! Tensors that share no factor have no effect on each other. Each component of the rule is visited
//! separately ([`components`], [`decomposition`]), and only if one of its tensors has changed.
//!
//! Each shortcut is used for strategies that guarantee what it relies on
//! ([`super::visit::strategy::StrategyGuarantees`]), and only while all sub-axes of an axis nest.
//! Sub-axes that do not nest, such as `"x":(1)2` and `"x":(1)3`, need an axis whose size is not a
//! power of two. From the first such sub-axis on, a visit of the op reads every tensor,
//! incrementally where possible.

mod components;
mod decomposition;
mod incremental;
mod tensor_groups;
mod wide_op;

use crate::index::{MeshId, RuleId, ShardingId};
use crate::propagation::memo::{Memo, Outcome};
use crate::propagation::origins::{Arrivals, Subject};
use crate::propagation::state::State;
use crate::propagation::visit::{
    visit, Continuation, Run, RunMask, Subset, Update, VisitInput, VisitSpec,
};
use decomposition::{RuleComponent, RuleDecomposition};
use incremental::IncrementalVisit;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tensor_groups::TensorGroups;
use wide_op::WideOp;

/// The wide ops of a program.
#[derive(Default)]
pub struct WideOps {
    /// For each wide op that was visited, by position, its index in `ops`.
    places: FxHashMap<u32, u32>,
    ops: Vec<WideOp>,
    decompositions: FxHashMap<RuleId, Rc<RuleDecomposition>>,
}

/// The outcome of a visit of a wide op.
pub struct WideVisit {
    /// The updates, in order.
    pub updates: Vec<Update>,
    /// If there are no updates, the kinds of runs in which there are none.
    pub runs: RunMask,
}

impl WideOps {
    /// Visits the op at `position`, which has many tensors.
    pub fn visit(
        &mut self,
        state: &mut State<'_>,
        memo: &mut Memo,
        position: u32,
        run: usize,
    ) -> WideVisit {
        let Some(spec) = state.plan.spec(position) else {
            return WideVisit { updates: Vec::new(), runs: RunMask::MAX };
        };
        let known = self.decompositions.entry(spec.rule);
        let make = || Rc::new(RuleDecomposition::of(state.rules_mut(), spec.rule));
        let decomposition = Rc::clone(known.or_insert_with(make));
        let next = self.ops.len() as u32;
        let place = *self.places.entry(position).or_insert(next);
        if place == next {
            self.ops.push(WideOp::new(state, position, &decomposition, memo.runs().len()));
        }
        let op = &mut self.ops[place as usize];
        op.catch_up(state, position, spec, &decomposition);
        let guarantees = memo.run(run).strategy.guarantees();
        let has_components = decomposition.components.len() > 1;
        let is_whole = op.is_whole
            || !guarantees.repeating_is_idempotent
            || has_components && !guarantees.components_are_independent;
        let mut visit = Visit { state, memo, spec, run };
        if is_whole {
            visit.whole(op, position)
        } else {
            visit.components(op, position, &decomposition)
        }
    }
}

/// The data of a visit in progress.
struct Visit<'a, 'p> {
    state: &'a mut State<'p>,
    memo: &'a mut Memo,
    spec: VisitSpec,
    run: usize,
}

impl Visit<'_, '_> {
    /// Visits with every tensor.
    fn whole(&mut self, op: &mut WideOp, position: u32) -> WideVisit {
        let mut updates = if self.can_continue(op) {
            let all = |state: &mut State<'_>| all_shardings(state, position);
            self.incrementally(&mut op.incremental, self.spec, op.mesh, all)
        } else {
            // Not in the memo: the key would be as long as the op's list of tensors.
            let shardings = all_shardings(self.state, position);
            let Run { step, strategy } = self.memo.run(self.run);
            let input = VisitInput { spec: self.spec, subset: Subset::ALL, shardings: &shardings };
            let mut tables = self.state.tables();
            let directions = self.spec.directions(tables.rules);
            visit(&mut tables, input, directions.of(step), strategy)
        };
        updates.sort_unstable_by_key(|&(tensor, _)| tensor);
        self.record(position, &updates, None);
        WideVisit { updates, runs: 1 << self.run }
    }

    /// Visits the components in which something may change.
    fn components(
        &mut self,
        op: &mut WideOp,
        position: u32,
        decomposition: &RuleDecomposition,
    ) -> WideVisit {
        // If a factor is not fully sharded, axes of the factors behind it are not in the table, so
        // that a tensor may get axes without an arrival. Then the visit is recorded as a whole
        // instead.
        let has_components = decomposition.components.len() > 1;
        let is_recording =
            self.state.is_recording() && !(decomposition.has_splits && has_components);
        let mut arrivals = is_recording.then(Arrivals::default);
        let can_continue = self.can_continue(op);
        let mut updates: Vec<Update> = Vec::new();
        let mut runs = 1 << self.run;
        for number in op.take_open(self.run) {
            let component = &decomposition.components[number as usize];
            let state = &mut op.components[number as usize];
            let start = updates.len();
            if can_continue && component.has_many_mappings() {
                let spec = VisitSpec { rule: component.rule, ..self.spec };
                let all = |_: &mut State<'_>| state.groups.shardings().collect();
                let new = self.incrementally(&mut state.incremental, spec, op.mesh, all);
                let of_op = |(tensor, new): Update| (component.tensors[tensor as usize], new);
                updates.extend(new.into_iter().map(of_op));
            } else {
                let nothing =
                    self.groups(component, &mut state.groups, &mut updates, arrivals.as_mut());
                if !has_components {
                    runs = nothing;
                }
            }
            if updates.len() > start {
                op.open_in(self.run, number);
            }
        }
        updates.sort_unstable_by_key(|&(tensor, _)| tensor);
        // A tensor that left a group and came back is listed twice.
        updates.dedup();
        self.record(position, &updates, arrivals);
        WideVisit { updates, runs }
    }

    /// Visits a component by its groups of tensors, and adds the changes. If there are none,
    /// returns the kinds of runs in which there are none.
    fn groups(
        &mut self,
        component: &RuleComponent,
        groups: &mut TensorGroups,
        updates: &mut Vec<Update>,
        arrivals: Option<&mut Arrivals>,
    ) -> RunMask {
        let RuleComponent { rule, tensors, .. } = component;
        let spec = VisitSpec { rule: *rule, ..self.spec };
        groups.sort();
        let present = || groups.present.iter().map(|&id| groups.group(id));
        let mappings: Vec<u32> = present().map(|group| group.mapping).collect();
        let shardings: Vec<ShardingId> = present().map(|group| group.sharding).collect();
        let subset = Subset(Some(&mappings));
        let mut tables = self.state.tables();
        let class = self.memo.class(tables.rules, spec);
        let entry = self.memo.entry(class, subset, &shardings);
        let list = match self.memo.outcome(&mut tables, entry, subset, &shardings, self.run) {
            Outcome::Nothing(runs) => return runs,
            Outcome::Updates(list) => list,
        };
        let id = |group: u32| groups.present[group as usize];
        let tensors_of = |group| groups.tensors(id(group)).map(|at| tensors[at as usize]);
        if let Some(arrivals) = arrivals {
            let input = VisitInput { spec, subset, shardings: &shardings };
            let new = Arrivals::of(&tables, input, self.memo.run(self.run));
            arrivals.add(new, |group| tensors[groups.first(id(group)) as usize], tensors_of);
        }
        for index in self.memo.updates(list) {
            let (group, sharding) = self.memo.update(index);
            updates.extend(tensors_of(group).map(|tensor| (tensor, sharding)));
        }
        1 << self.run
    }

    /// Whether the op's visits can be computed from previous ones.
    fn can_continue(&self, op: &WideOp) -> bool {
        let is_guaranteed = match self.memo.run(self.run).strategy.guarantees().continuation {
            Some(Continuation::FactorClaims) => !self.spec.is_elementwise,
            None => false,
        };
        let has_devices = |mesh: MeshId| !self.state.program().mesh(mesh).is_maximal();
        is_guaranteed
            && !self.state.is_recording()
            && !op.has_other_mesh
            && op.mesh.get().is_some_and(has_devices)
    }

    /// Makes an incremental visit of an op or a component of it. Without a state from the previous
    /// visit, starts one with these `shardings`. Updates refer to tensors by their index in it.
    fn incrementally(
        &mut self,
        kept: &mut Option<Box<IncrementalVisit>>,
        spec: VisitSpec,
        mesh: MeshId,
        shardings: impl FnOnce(&mut State<'_>) -> Vec<ShardingId>,
    ) -> Vec<Update> {
        let known = kept.take().filter(|kept| kept.spec == spec);
        let visit = known.unwrap_or_else(|| {
            let (shardings, num_runs) = (shardings(self.state), self.memo.runs().len());
            Box::new(IncrementalVisit::new(&self.state.tables(), spec, mesh, shardings, num_runs))
        });
        let step = self.memo.run(self.run).step;
        kept.insert(visit).visit(&mut self.state.tables(), self.run, step)
    }

    /// Adds a visit to the record of origins before its updates are applied.
    fn record(&mut self, position: u32, updates: &[Update], arrivals: Option<Arrivals>) {
        if updates.is_empty() || !self.state.is_recording() {
            return;
        }
        if let Some(arrivals) = arrivals {
            return self.state.record_arrivals(position, self.spec, &arrivals.in_order());
        }
        let shardings = all_shardings(self.state, position);
        let subject = Subject::Op(self.state.plan.op(position));
        let tensors = self.state.plan.row(position).tensors.to_vec();
        let visit = (subject, self.spec, self.memo.run(self.run));
        self.state.record_visit(visit, &tensors, &shardings);
    }
}

/// The shardings of all tensors of the op at `position`.
fn all_shardings(state: &mut State<'_>, position: u32) -> Vec<ShardingId> {
    let (program, plan) = state.program_and_plan();
    let tensors = plan.row(position).tensors;
    tensors.iter().map(|&tensor| plan.edges.sharding(program, tensor)).collect()
}
