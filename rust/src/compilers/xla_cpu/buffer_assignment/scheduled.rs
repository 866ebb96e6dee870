//! Live ranges of a block in the order in which a compiler runs its kernels.
//!
//! Source: XLA's `BFScheduler` and `DefaultMemoryScheduler`.

use crate::compilers::memory_scheduler::candidates;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::kernels::graph::Graph;

impl Liveness {
    /// Of `graph`, that of the entry function, where the result of each of `donated` may take the memory of an argument, and
    /// other results have memory of their own, outside of what is counted. Kernels run as `compiler` orders them.
    pub fn of_entry(graph: &Graph, donated: &[(usize, u32)], compiler: Compiler) -> Self {
        let live = |order| Self::new(graph, order, donated, true, &[]);
        Self::scheduled(graph, donated, compiler, live)
    }
    /// Of `graph`, that of another block, where what is `carried` to the next trip is written over the argument. What the kernels
    /// in `always` make is there throughout.
    pub fn inside(
        graph: &Graph,
        carried: &[(usize, u32)],
        always: &[bool],
        compiler: Compiler,
    ) -> Self {
        let live = |order| Self::new(graph, order, carried, false, always);
        Self::scheduled(graph, carried, compiler, live)
    }
    /// What is `live` in the order in which `compiler` runs the kernels of `graph`.
    fn scheduled(
        graph: &Graph,
        donated: &[(usize, u32)],
        compiler: Compiler,
        live: impl Fn(Vec<u32>) -> Self,
    ) -> Self {
        if !compiler.orders_for_memory() {
            return live(breadth_first(graph).to_vec());
        }
        let [first, others @ ..] = candidates(graph, donated).map(live);
        let most = |one: &Self| one.taken.iter().copied().max();
        others
            .into_iter()
            .fold(first, |best, one| if most(&one) < most(&best) { one } else { best })
    }
}
