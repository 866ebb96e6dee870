//! The entry function of a program: its kernels, the arguments that are donated to results, and the order in which it runs.

use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::buffer_assignment::scheduled::device_bytes;
use crate::compilers::xla_cpu::copy_insertion::donated_arguments::with_copies;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::{Blocks, Entry};
use crate::compilers::xla_tpu::entry_layouts::lay_out_results;
use crate::index::{BlockId, ValueId};
use rustc_hash::FxHashMap;

impl Blocks<'_, '_, '_> {
    /// The entry function, whose block is `body`. Where the order that hides the latency of collectives takes more memory than the chip
    /// has, XLA computes values anew (`HloRematerialization`); here that order is not taken.
    pub(in crate::compilers::xla_cpu) fn entry(
        &mut self,
        body: BlockId,
        donated: &[(usize, ValueId)],
    ) -> Entry {
        let entry = self.scheduled(body, donated);
        let Some(memory) = self.facts.overlapped_bytes else { return entry };
        let bytes = |item: u32| entry.graph.items[item as usize].bytes;
        let ports = (0..entry.num_arguments as u32).chain(entry.outputs.iter().copied());
        let ports: u128 = ports.map(bytes).sum();
        let peak = self.peak(&entry.graph, &entry.liveness, &mut Vec::new());
        if ports.saturating_add(peak.bytes) <= device_bytes(self.builder.layouts.compiler(), memory)
        {
            return entry;
        }
        self.facts.overlapped_bytes = None;
        self.peaks.clear();
        self.find_peaks();
        self.scheduled(body, donated)
    }
    /// The kernel graph of `body`, the entry block, and the donations: pairs of the index of a result and an item.
    pub(in crate::compilers::xla_cpu) fn entry_graph(
        &mut self,
        body: BlockId,
        donated: &[(usize, ValueId)],
    ) -> (Graph, Vec<(usize, u32)>) {
        let program = self.builder.program;
        let places: FxHashMap<ValueId, u32> = program.block_args(body).zip(0..).collect();
        let pairs = donated
            .iter()
            .filter_map(|&(result, value)| Some((result, places.get(&value).copied()?)));
        let donated: Vec<(usize, u32)> = pairs.collect();
        let mut graph = self.builder.graph(body);
        let compiler = self.builder.layouts.compiler();
        lay_out_results(program, &mut self.builder.works.tensors, &mut graph, compiler);
        if let Some(last) = program.last_op(body).get() {
            graph = crate::compilers::xla_cpu::copy_insertion::returned_arguments::with_copies(
                graph, last, &donated,
            );
        }
        let graph = crate::compilers::xla_cpu::copy_insertion::in_place_updates::with_copies(
            program,
            graph,
            &donated,
            compiler.fuses_by_priority(),
        );
        (with_copies(graph, &donated), donated)
    }
    fn scheduled(&mut self, body: BlockId, donated: &[(usize, ValueId)]) -> Entry {
        let num_arguments = self.builder.program.block_args(body).len();
        let (program, compiler) = (self.builder.program, self.builder.layouts.compiler());
        let known = self.builder.entry.take();
        let (graph, donated) = known.unwrap_or_else(|| self.entry_graph(body, donated));
        let inside = self.needs_inside(&graph);
        let chip = (compiler, self.facts, &inside[..]);
        let context = (program, &mut *self.builder.works);
        let liveness = Liveness::of_entry(context, &graph, &donated, chip);
        let given: FxHashMap<usize, u32> = donated.into_iter().collect();
        let mut is_output = vec![false; graph.items.len()];
        let mut outputs = Vec::new();
        for (index, &item) in graph.returned.iter().enumerate().filter(|(_, &item)| item != NONE) {
            let item = graph.stored_as(item);
            let is_new = !std::mem::replace(&mut is_output[item as usize], true);
            if is_new && !given.contains_key(&index) && item as usize >= num_arguments {
                outputs.push(item);
            }
        }
        Entry { graph, liveness, num_arguments, outputs }
    }
}
