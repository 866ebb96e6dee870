//! How long kernels and collectives take by the model from which XLA for v5e schedules them. All-gathers and permutations run beside
//! other kernels, one all-gather and a few permutations at a time; other collectives do not.
//!
//! Source: what XLA's `LatencyHidingScheduler` prints of its nodes while it compiles for TPUs.

use super::cost_analysis::KernelCosts;
use crate::compilers::compilation::ChipFacts;
use crate::compilers::latency_hiding_scheduler::estimates::{Estimated, Rules};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Kernel};
use crate::ir::{OpKind, Program};
use crate::spmd::collective_optimizer::COLLECTIVES;
use crate::stablehlo::trips::trip_count;

/// One all-gather and five permutations run at a time: `xla_max_concurrent_async_all_gathers` and
/// `xla_max_concurrent_async_collective_permutes`.
pub const RULES: Rules = Rules { between: CYCLE, at_once: [1, 5] };

/// Microseconds of a cycle, which what runs nothing takes.
const CYCLE: f64 = 1e-3;

/// The collectives that run beside other kernels, each with a resource of its own.
const BESIDE: [&str; 2] = [GATHER, "stablehlo.collective_permute"];
const GATHER: &str = "stablehlo.all_gather";

/// Estimates the kernels of a block.
pub struct Estimator<'e> {
    /// The program.
    pub program: &'e Program,
    /// The kernels of the block.
    pub graph: &'e Graph,
    /// What they cost, without collectives.
    pub costs: &'e KernelCosts,
    /// The chip.
    pub facts: ChipFacts,
}

/// Whether a kernel of `graph` is a collective that runs beside others.
pub fn runs_beside(program: &Program, graph: &Graph) -> bool {
    graph.kernels.iter().any(|it| it.is_op && BESIDE.contains(&program.op_name(it.op)))
}

impl Estimator<'_> {
    /// The estimates of kernel `at`.
    pub fn estimated(&self, at: u32) -> Estimated {
        let Kernel { op, is_op, is_name, .. } = self.graph.kernels[at as usize];
        if is_name {
            return Estimated::default();
        }
        let trips = match self.program.kind(op) {
            OpKind::While if is_op => trip_count(self.program, op),
            _ => None,
        };
        let cost = self.costs.seconds_in(at, trips) * 1e6;
        if !is_op {
            return Estimated { cost, ..Estimated::default() };
        }
        let name = self.program.op_name(op);
        if let Some(resource) = BESIDE.iter().position(|&it| it == name) {
            // Gathered are the results, in both directions.
            let made: f64 = self.graph.makes(at).iter().map(|&item| self.bytes(item)).sum();
            let bytes = if name == GATHER { made / 2.0 } else { self.read(at) };
            let latency = self.sent(bytes).max(CYCLE);
            return Estimated { cost: CYCLE, latency, resource, ..Estimated::default() };
        }
        if COLLECTIVES.contains(&name) {
            return Estimated { cost: self.sent(self.read(at)), ..Estimated::default() };
        }
        if self.program.kind(op) != OpKind::While {
            return Estimated { cost, ..Estimated::default() };
        }
        let inner = || self.program.pre_order(op).skip(1).map(|it| self.program.op_name(it));
        let inside = BESIDE.map(|name| inner().any(|it| it == name));
        Estimated { cost, inside, ..Estimated::default() }
    }
    fn bytes(&self, item: u32) -> f64 {
        self.graph.items[self.graph.stored_as(item) as usize].bytes as f64
    }
    /// The bytes that kernel `at` reads.
    fn read(&self, at: u32) -> f64 {
        self.graph.reads(at).iter().map(|read| self.bytes(read.item)).sum()
    }
    /// Microseconds to send so many bytes over a link.
    fn sent(&self, bytes: f64) -> f64 {
        bytes / self.facts.link_bytes_per_second.max(1) as f64 * 1e6
    }
}
