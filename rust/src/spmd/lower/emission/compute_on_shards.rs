//! Computes an op on shards: operands and results have the placements of the chosen strategy.

use crate::index::{OpId, ValueId};
use crate::ir::OpKind;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::elements_needed::ints;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::Strategy;
use std::mem::take;

impl Lowering<'_, '_, '_> {
    /// Computes the op on `operands`, and reshards its results to their target placements.
    pub(in crate::spmd::lower) fn compute(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &mut Vec<LocalValue>,
    ) {
        let op = work.op;
        if self.is_kept_whole(work, strategy) {
            return self.in_place(work, strategy, operands);
        }
        match self.emit.program.kind(op) {
            OpKind::Reshape => self.reshape_locally(work, strategy, operands),
            OpKind::Slice => self.slice_locally(work, strategy, take(operands)),
            OpKind::Pad => self.pad_locally(work, strategy, take(operands)),
            OpKind::Other if self.emit.program.op_name_id(op) == self.reverse => {
                self.reverse_locally(work, strategy, take(operands));
            }
            OpKind::Concatenate => self.concatenate_locally(work, strategy, operands),
            OpKind::ReduceWindow => self.reduce_windows_locally(work, strategy, take(operands)),
            OpKind::SelectAndScatter => self.select_locally(work, strategy, take(operands)),
            OpKind::Reduce => self.reduce_locally(work, strategy, take(operands)),
            OpKind::Gather => self.gather_locally(work, strategy, operands),
            OpKind::Scatter => self.scatter_locally(work, strategy, take(operands)),
            OpKind::DynamicSlice => self.dynamic_slice_locally(work, strategy, take(operands)),
            OpKind::DynamicUpdateSlice => self.update_locally(work, strategy, take(operands)),
            OpKind::Convolution => self.convolve_locally(work, strategy, take(operands)),
            OpKind::Scan => self.scan_slices_locally(work, strategy, operands),
            OpKind::CustomCall => self.call_locally(work, strategy, take(operands)),
            _ if Self::joins(work, strategy) => {
                let digits = Self::joined_digits(work, strategy);
                self.top_k_of_shards(work, strategy, &digits, operands[0]);
            }
            _ => {
                if strategy
                    .results
                    .iter()
                    .any(|&result| !self.placements[result].partial.is_empty())
                {
                    self.mask_terms(work, strategy, operands);
                }
                self.in_place(work, strategy, operands);
            }
        }
    }
    /// Whether `sdy-convert-global-to-local` keeps the op unchanged: nothing in it is sharded. (A concatenation may have absorbed
    /// the slices before it.)
    fn is_kept_whole(&self, work: &OpWithRule, strategy: &Strategy) -> bool {
        let mut placements = strategy.operands.iter().chain(&strategy.results);
        self.how.global_to_local.is_some()
            && self.emit.program.kind(work.op) != OpKind::Concatenate
            && placements.all(|&placement| self.placements[placement].is_replicated())
    }
    /// The op itself, with local operands and types.
    pub(in crate::spmd::lower) fn in_place(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
    ) {
        self.set_operands(work.op, operands.iter().map(|held| held.value));
        let results = self.emit.program.op_results(work.op);
        for ((value, &placement), &(_, target)) in results.zip(&strategy.results).zip(work.results)
        {
            let held = self.keep(value, placement);
            let held = self.start_as_xla(work, strategy, held, target);
            self.settle_held(work.op, value, held, target);
        }
    }
    /// Replaces the only result of the op by `value`, which is partial.
    pub(in crate::spmd::lower) fn replace_with_terms(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        value: ValueId,
        reducer: Reducer,
    ) {
        let (global, target) = work.results[0];
        let held = LocalValue {
            value,
            global,
            placement: strategy.results[0],
            reducer,
            is_zero_padded: false,
        };
        let held = self.start_as_xla(work, strategy, held, target);
        let new = self.reshard(held, target);
        let result = self.emit.program.result(work.op, 0);
        self.set_held(result, new);
        self.dead.push(work.op);
    }
    /// Replaces the results of the op, which is then dead, by `values`.
    pub(in crate::spmd::lower) fn replace(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        values: &[ValueId],
    ) {
        let results: Vec<ValueId> = self.emit.program.op_results(work.op).collect();
        for (index, (&result, &value)) in results.iter().zip(values).enumerate() {
            let (global, target) = work.results[index];
            let placement = strategy.results[index];
            let reducer = crate::spmd::lower::Reducer::Add;
            let held = LocalValue { value, global, placement, reducer, is_zero_padded: false };
            let new = self.reshard(held, target);
            self.set_held(result, new);
        }
        self.dead.push(work.op);
    }
    /// The local shape of the `index`-th result.
    pub(in crate::spmd::lower) fn result_shape(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
        index: usize,
    ) -> Vec<i64> {
        let shape = &work.shapes[work.operands.len() + index];
        self.placements[strategy.results[index]].local_shape(shape)
    }
    /// The integers of attribute `name` of `op`.
    pub(in crate::spmd::lower) fn ints(&self, op: OpId, name: &str) -> Vec<i64> {
        ints(self.emit.program, op, name)
    }
}
