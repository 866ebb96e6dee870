//! Live ranges of a block for the order in which a compiler schedules its kernels.
//!
//! Source: XLA's `BFScheduler` and `DefaultMemoryScheduler`.

use crate::compilers::compilation::ChipFacts;
use crate::compilers::latency_hiding_scheduler::with_hidden_latency;
use crate::compilers::memory_scheduler::async_collectives::{early_kernels, with_early_starts};
use crate::compilers::memory_scheduler::{candidates, readers_of_overwritten};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_gpu::latency_estimator as gpu;
use crate::compilers::xla_tpu::cost_analysis::{KernelCosts, Needs};
use crate::compilers::xla_tpu::latency_estimator::{self as tpu, runs_beside};
use crate::ir::Program;
use crate::work::cached::Works;

/// A compiler, what it knows of the chip that it compiles for, and for each kernel what the blocks inside of it need, if the chip has
/// vector memory.
type Chip<'i> = (Compiler, ChipFacts, &'i [Needs]);

impl Liveness {
    /// For `graph`, that of the entry function. Each of `donated` is the index of a result and the argument whose buffer it may
    /// take; other results have buffers of their own, which are not counted. The compiler of `chip` schedules the kernels.
    pub fn of_entry(
        (program, works): (&Program, &mut Works<'_>),
        graph: &Graph,
        donated: &[(usize, u32)],
        chip: Chip<'_>,
    ) -> Self {
        let live = |order, held: &[(u32, u32)]| Self::new(graph, (order, held), donated, true, &[]);
        Self::scheduled((program, works), (graph, true), donated, chip, live)
    }
    /// For `graph`, that of another block; each of `carried` is the index of a result and the loop argument whose buffer it takes.
    /// Results of the kernels in `always` are live throughout.
    pub fn inside(
        (program, works): (&Program, &mut Works<'_>),
        graph: &Graph,
        carried: &[(usize, u32)],
        always: &[bool],
        chip: Chip<'_>,
    ) -> Self {
        let live =
            |order, held: &[(u32, u32)]| Self::new(graph, (order, held), carried, false, always);
        Self::scheduled((program, works), (graph, false), carried, chip, live)
    }
    /// The live ranges for the order in which the compiler schedules the kernels of `graph`, a block of `program`.
    fn scheduled(
        (program, works): (&Program, &mut Works<'_>),
        (graph, is_entry): (&Graph, bool),
        donated: &[(usize, u32)],
        (compiler, facts, inside): Chip<'_>,
        live: impl Fn(Vec<u32>, &[(u32, u32)]) -> Self,
    ) -> Self {
        if !compiler.orders_for_memory() {
            return live(breadth_first(graph).to_vec(), &[]);
        }
        let [first, others @ ..] = candidates(graph, donated).map(|order| live(order, &[]));
        let most = |one: &Self| one.taken.iter().copied().max();
        let best =
            others
                .into_iter()
                .fold(first, |best, one| if most(&one) < most(&best) { one } else { best });
        let before = || readers_of_overwritten(graph, donated);
        let limit =
            |memory| if is_entry { limit(graph, compiler, memory, donated) } else { u128::MAX };
        if compiler.has_vector_memory() {
            let costs = KernelCosts::new((program, works), (graph, inside), facts);
            let memory = facts.overlapped_bytes.filter(|_| runs_beside(program, graph));
            let hidden = memory.and_then(|memory| {
                let estimator = tpu::Estimator { program, graph, costs: &costs, facts };
                let estimates = (tpu::RULES, |at| estimator.estimated(at));
                with_hidden_latency(graph, (&best.order, limit(memory)), &before(), estimates)
            });
            let mut best = hidden.map_or(best, |(order, held)| live(order, &held));
            best.assign_memory_space(program, (graph, inside), is_entry, (&costs, facts));
            return best;
        }
        if !compiler.starts_collectives_early() {
            return best;
        }
        let is_early = early_kernels(program, graph);
        let has_early = is_early.contains(&true);
        let early = has_early.then(|| with_early_starts(graph, &best.order, &is_early));
        let order = early.as_ref().map_or(&best.order, |(order, _)| order);
        let hidden = facts.overlapped_bytes.and_then(|memory| {
            let mut estimator = gpu::Estimator { program, works };
            let estimates = (gpu::RULES, |at| estimator.estimated(graph, at));
            with_hidden_latency(graph, (order, limit(memory)), &before(), estimates)
        });
        hidden.or(early).map_or(best, |(order, held)| live(order, &held))
    }
}

/// The bytes that `compiler` lets be live in the entry function, on a chip with so much memory: its arguments and results are elsewhere.
fn limit(graph: &Graph, compiler: Compiler, memory: u128, donated: &[(usize, u32)]) -> u128 {
    let bytes = |&item: &u32| graph.items[graph.stored_as(item) as usize].bytes;
    let arguments = graph.items.iter().filter(|item| item.made_by == NONE && item.name_of == NONE);
    let arguments: u128 = arguments.map(|item| item.bytes).sum();
    let results = graph.returned.iter().filter(|&&item| item != NONE);
    let results: u128 = results.map(bytes).sum();
    let shared: u128 = donated.iter().map(|(_, argument)| bytes(argument)).sum();
    let ports = arguments.saturating_add(results).saturating_sub(shared);
    device_bytes(compiler, memory).saturating_sub(ports) / 100 * compiler.memory_percents().1
}

/// What `compiler` lets programs take of so much memory of a chip.
pub(in crate::compilers::xla_cpu) const fn device_bytes(compiler: Compiler, memory: u128) -> u128 {
    memory / 100 * compiler.memory_percents().0
}
