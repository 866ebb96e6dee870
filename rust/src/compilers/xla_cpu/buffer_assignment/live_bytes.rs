//! The ops of a program in scheduled order, with the live bytes at each.

use crate::compilers::xla_cpu::{Blocks, Entry};
use crate::index::{BlockId, OpId};
use rustc_hash::FxHashMap;

impl Blocks<'_, '_, '_> {
    /// The ops of `block`, the entry block, in scheduled order, with the live bytes at each. An op that consumers recompute stands
    /// before the first of these.
    pub(in crate::compilers::xla_cpu) fn over_time(
        &self,
        block: BlockId,
        Entry { graph, liveness, .. }: &Entry,
        taken: &[u128],
    ) -> Vec<(OpId, u128)> {
        let program = self.builder.program;
        let mut positions = vec![0; graph.kernels.len()];
        for (at, &kernel) in liveness.order.iter().enumerate() {
            positions[kernel as usize] = at;
        }
        let ops: Vec<OpId> = program.block_ops(block).collect();
        let end = taken.len().saturating_sub(1);
        let mut runs_at: FxHashMap<OpId, usize> =
            graph.ops.iter().map(|&(op, kernel)| (op, positions[kernel as usize])).collect();
        for &op in ops.iter().rev() {
            if !runs_at.contains_key(&op) {
                let users = program.op_results(op).flat_map(|value| program.users(value));
                let first = users.filter_map(|user| runs_at.get(&user)).min();
                runs_at.insert(op, first.copied().unwrap_or(end));
            }
        }
        let at = |op: &OpId| runs_at.get(op).copied().unwrap_or(end);
        let mut order = ops;
        order.sort_by_key(at);
        let mut over_time: Vec<(OpId, u128)> = Vec::with_capacity(order.len());
        let mut done = 0;
        for op in order {
            // With the most bytes since the op before it.
            let until = (at(&op) + 1).min(taken.len());
            let last = over_time.last().map_or(0, |last| last.1);
            let most = taken.get(done..until).unwrap_or_default().iter().max();
            over_time.push((op, most.copied().unwrap_or(last)));
            done = until.max(done);
        }
        if let Some(last) = over_time.last_mut() {
            let rest = taken.get(done..).unwrap_or_default().iter().max();
            last.1 = last.1.max(rest.copied().unwrap_or_default());
        }
        over_time
    }
}
