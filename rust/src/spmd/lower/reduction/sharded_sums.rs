//! Reduce-scattered sums that some user needs unsharded, as XLA's partitioner computes them.
//!
//! XLA computes a sum by an all-reduce, and slices the shards out of it: a user that needs the unsharded sum takes it, and nothing
//! is gathered. If there is no such user, the all-reduce and the slice become a reduce-scatter.
//!
//! Source: `spmd_partitioner.cc`, `PartitionedHlo::Reshard`, which caches a reshard in both directions.

use crate::index::ValueId;
use crate::ir::OpKind;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::PlacementId;
use crate::spmd::policy::Policy;
use crate::spmd::reshard::{Plan, Step, Traveller};

impl Lowering<'_, '_, '_> {
    /// Records the partial value `held`, from which `plan` computed `new`, if the unsharded sum can be computed later.
    pub(in crate::spmd::lower) fn note_terms(
        &mut self,
        held: LocalValue,
        new: LocalValue,
        plan: &Plan,
    ) {
        let is_scatter =
            matches!(&plan.steps[..], [one] if matches!(one.step, Step::ReduceScatter { .. }));
        if self.how.policy == Policy::Xla && is_scatter && self.are_of_reduction(held.value) {
            self.sums.terms.insert(new.shard(), (self.emit.block(), held));
        }
    }
    /// Whether `value` is the local result of a reduction or a scatter, at most all-reduced along other digits.
    fn are_of_reduction(&self, mut value: ValueId) -> bool {
        let program = &*self.emit.program;
        while let Some(op) = program.defining_op(value) {
            if program.op_name(op) != "stablehlo.all_reduce" {
                return matches!(program.kind(op), OpKind::Reduce | OpKind::Scatter);
            }
            value = program.operand(op, 0);
        }
        false
    }
    /// The unsharded sum of which `held` is a shard, if `target` is its placement.
    pub(in crate::spmd::lower) fn whole_sum(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> Option<LocalValue> {
        let &(block, terms) = self.sums.terms.get(&held.shard())?;
        let mut whole = self.placements[terms.placement].clone();
        whole.partial.clear();
        let is_whole = self.placements.intern(whole.merged()) == target;
        let op = self.emit.program.defining_op(held.value)?;
        let is_scatter = self.emit.program.op_name(op) == "stablehlo.reduce_scatter";
        if !is_whole || !is_scatter || block != self.emit.block() {
            return None;
        }
        let place = self.emit.mark();
        self.emit.go_after(op);
        let sum = self.reshard_anew(terms, target);
        self.emit.go_back(place);
        self.sums.cut.push((held, sum));
        Some(sum)
    }
    /// Slices the shards out of the sums that were computed unsharded.
    pub(in crate::spmd::lower) fn cut_sums(&mut self) {
        for (held, sum) in std::mem::take(&mut self.sums.cut) {
            let (Some(shape), Some(at), Some(scatter)) = (
                self.shape_of(held.global),
                self.emit.program.defining_op(sum.value),
                self.emit.program.defining_op(held.value),
            ) else {
                continue;
            };
            let plan = self.plan(sum, held.placement);
            // With offsets of its own: those of the block may come later.
            let mut emit = self.emit.apart();
            emit.go_after(at);
            let collectives = &mut self.collectives;
            let mut traveller =
                Traveller { emit: &mut emit, collectives, shape: &shape, reducer: held.reducer };
            let (mut from, mut value) = (&self.placements[sum.placement], sum.value);
            for reached in &plan.steps {
                value = traveller.step(value, from, reached);
                from = &reached.placement;
            }
            let devices = std::mem::take(&mut emit.devices);
            self.emit.devices = devices;
            self.emit.program.replace_all_uses(held.value, value);
            self.emit.program.erase_op(scatter);
        }
    }
}
