//! Live ranges of a block for the order in which a compiler schedules its kernels.
//!
//! Source: XLA's `BFScheduler` and `DefaultMemoryScheduler`.

use crate::compilers::compilation::FastMemory;
use crate::compilers::memory_scheduler::async_collectives::{early_kernels, with_early_starts};
use crate::compilers::memory_scheduler::{candidates, readers_of_overwritten};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::compilers::xla_gpu::latency_estimator::Estimator;
use crate::compilers::xla_gpu::latency_hiding_scheduler::with_hidden_latency;
use crate::compilers::xla_tpu::latency_hiding_scheduler::beside_loops;
use crate::ir::Program;
use crate::work::cached::Works;

/// A compiler, and the fast memory of the chip that it compiles for.
type Chip = (Compiler, FastMemory);

impl Liveness {
    /// For `graph`, that of the entry function. Each of `donated` is the index of a result and the argument whose buffer it may
    /// take; other results have buffers of their own, which are not counted. The compiler of `chip` schedules the kernels.
    pub fn of_entry(
        (program, works): (&Program, &mut Works<'_>),
        graph: &Graph,
        donated: &[(usize, u32)],
        chip: Chip,
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
        chip: Chip,
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
        (compiler, fast): Chip,
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
        let gathers = compiler.gathers_beside_loops();
        let beside = gathers.then(|| beside_loops(program, graph, &best.order)).flatten();
        let best = beside.map_or(best, |(order, held)| live(order, &held));
        if compiler.has_vector_memory() {
            let mut best = best;
            best.assign_memory_space(program, graph, is_entry, fast);
            return best;
        }
        if !compiler.starts_collectives_early() {
            return best;
        }
        let is_early = early_kernels(program, graph);
        let (order, held) = with_early_starts(graph, &best.order, &is_early);
        let before = readers_of_overwritten(graph, donated);
        let mut estimator = Estimator { program, works };
        let hidden = with_hidden_latency(graph, &order, &before, &mut estimator);
        let (order, held) = hidden.unwrap_or((order, held));
        live(order, &held)
    }
}
