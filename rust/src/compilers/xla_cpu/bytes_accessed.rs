//! The bytes that XLA's `HloCostAnalysis` counts for a kernel, which are not what it moves: a fused slice reads its result, a fused
//! broadcast reads its operand once more, and all others that read a parameter share one read. A fused gather or scatter reads all
//! of its operand. On GPUs a custom call, such as a convolution of a library, counts nothing, and the two halves of an asynchronous
//! collective count both. On TPUs what is read of an array are tiles.

use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Kernel, Use};
use crate::index::OpId;
use crate::ir::OpKind;
use crate::work::ops::Measure;

/// Bytes of a pointer in the table of a tuple.
const POINTER: u128 = 8;

impl Builder<'_, '_, '_> {
    /// Records that `user` reads `item` in `kernel`, if that is asked for.
    #[inline]
    pub(in crate::compilers::xla_cpu) fn note_use(
        &mut self,
        kernel: u32,
        item: u32,
        user: (OpId, u32),
    ) {
        if let Some(uses) = &mut self.uses {
            uses.push(Use { kernel, item, user });
        }
    }
    /// The bytes of `kernel`, number `at`. `uses` are all uses in the block, sorted.
    pub(in crate::compilers::xla_cpu) fn bytes_accessed(
        &mut self,
        graph: &Graph,
        (kernel, at): (&Kernel, u32),
        uses: &[Use],
    ) -> u128 {
        let is_op = kernel.is_op;
        let program = self.program;
        let is_gpu = self.layouts.compiler().fuses_by_priority();
        if is_op && is_gpu && self.is_custom_call(kernel.op) {
            return 0;
        }
        let reads = graph.reads(at).iter();
        let mut items: Vec<(u32, u64)> = reads.map(|read| (read.item, read.bytes)).collect();
        items.sort_unstable();
        items.dedup_by_key(|one| one.0);
        let mut read: u128 = 0;
        for (item, most) in items {
            let first = uses.partition_point(|it| (it.kernel, it.item) < (kernel.built, item));
            let found = uses[first..].iter().take_while(|it| it.kernel == kernel.built);
            let found: Vec<_> = found.take_while(|it| it.item == item).map(|it| it.user).collect();
            let whole = self.parameter_bytes(graph, item);
            let bytes = if found.is_empty() {
                whole.min(most.into())
            } else {
                self.bytes_read(whole, found)
            };
            read = read.saturating_add(bytes);
        }
        let mut written: u128 = 0;
        for &item in graph.makes(at) {
            let item = &graph.items[item as usize];
            let made_by = program.defining_op(item.value).filter(|_| is_op);
            let update = made_by.filter(|&op| is_update(program.op_name(op)));
            let bytes = match update {
                Some(op) => self.bytes(program.operand(op, 1)),
                None => item.bytes,
            };
            written = written.saturating_add(bytes);
        }
        if !is_op || !is_gpu {
            return read.saturating_add(written);
        }
        let is_collective = self
            .works
            .family(kernel.op)
            .is_some_and(|it| matches!(it.measure, Measure::Collective));
        match program.op_name(kernel.op) {
            "stablehlo.all_gather" | "stablehlo.collective_permute" | "stablehlo.all_reduce" => {
                read.saturating_add(written).saturating_mul(2)
            }
            _ if is_collective => written.saturating_mul(2).saturating_add(read),
            // A sort that numbers its elements itself is a fusion, of which results count.
            _ if program.kind(kernel.op) == OpKind::Sort
                && graph.makes(at).len() > 1
                && graph.reads(at).len() == program.num_operands(kernel.op) =>
            {
                read.saturating_add(POINTER * graph.makes(at).len() as u128)
            }
            _ => read.saturating_add(written),
        }
    }
    /// The bytes of `item` as a parameter. The parts of a dot that is split along its contracting dims, and of dots that are merged,
    /// are parts of one array.
    fn parameter_bytes(&mut self, graph: &Graph, item: u32) -> u128 {
        match self.part_of_merged(graph, item) {
            Some((bytes, false)) => bytes,
            _ => graph.items[graph.stored_as(item) as usize].bytes,
        }
    }
    /// The bytes read of a parameter of so many bytes by the ops `users`, each once.
    fn bytes_read(&mut self, whole: u128, mut users: Vec<(OpId, u32)>) -> u128 {
        users.dedup();
        let mut bytes: u128 = 0;
        let mut is_shared = false;
        for (op, index) in users {
            let program = self.program;
            let is_named = op == OpId::NONE || self.storage.facts.has(op, Fact::NAME);
            let name = if is_named { "" } else { program.op_name(op) };
            let own = match name {
                "stablehlo.broadcast_in_dim" => whole,
                "stablehlo.slice" => self.bytes(program.result(op, 0)),
                "stablehlo.dynamic_slice" if index == 0 => self.bytes(program.result(op, 0)),
                _ if is_update(name) && index == 0 => 0,
                _ => {
                    is_shared = true;
                    0
                }
            };
            bytes = bytes.saturating_add(own);
        }
        bytes.saturating_add(if is_shared { whole } else { 0 })
    }
    /// Whether `op` becomes a call of a library, other than a product.
    fn is_custom_call(&self, op: OpId) -> bool {
        matches!(self.program.kind(op), OpKind::Convolution | OpKind::CustomCall)
            || matches!(
                self.program.op_name(op),
                "stablehlo.cholesky" | "stablehlo.triangular_solve" | "chlo.top_k"
            )
    }
}

fn is_update(name: &str) -> bool {
    name == "stablehlo.dynamic_update_slice"
}
