//! The times from which memory space assignment decides: of each kernel the longer one of what it computes and of its traffic with
//! HBM.
//!
//! Source: `CostAnalysis` of XLA's memory space assignment, and the options that XLA for TPUs prints of it.

use crate::compilers::compilation::ChipFacts;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Read};
use crate::compilers::xla_tpu::async_copies::AsyncCopies;
use crate::compilers::xla_tpu::product_fusion::is_product;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::work::cached::{Outcome, Works};
use rustc_hash::FxHashMap;

/// How often loops are expected to run.
const TRIPS: f64 = 5.0;

/// The most ops through which a product is followed to the kernel that computes it.
const MAX_STEPS: usize = 64;

/// What the kernels of a block need, those of the blocks inside included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The most bytes in vector memory at one time.
    pub vector_bytes: u128,
    /// The FLOPs of products.
    pub flops: f64,
    /// The bytes that are read and written.
    pub bytes: f64,
    /// The copies between vector memory and HBM, in the block itself.
    pub copies: AsyncCopies,
}

impl Needs {
    /// What `op` needs if one of its blocks needs `self` and the others `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            vector_bytes: self.vector_bytes.max(other.vector_bytes),
            flops: self.flops + other.flops,
            bytes: self.bytes + other.bytes,
            copies: AsyncCopies::default(),
        }
    }
}

/// Seconds of the kernels of a block.
pub struct KernelCosts {
    /// What each computes, and its traffic if everything is in HBM.
    compute: Vec<f64>,
    traffic: Vec<f64>,
    /// Whether kernels run inside it.
    runs_blocks: Vec<bool>,
    bytes_per_second: f64,
    /// What all of them need, once.
    needs: Needs,
}

impl KernelCosts {
    /// For the kernels of `graph`, on the chip of `facts`; `inside` has for each kernel what the blocks inside of it need.
    pub fn new(
        (program, works): (&Program, &mut Works<'_>),
        (graph, inside): (&Graph, &[Needs]),
        facts: ChipFacts,
    ) -> Self {
        let [flops_per_second, bytes_per_second] =
            [facts.flops_per_second, facts.bytes_per_second].map(|rate| rate.max(1) as f64);
        let all_flops = flops_of_kernels((program, works), graph);
        let count = graph.kernels.len();
        let mut found = Self {
            compute: Vec::with_capacity(count),
            traffic: Vec::with_capacity(count),
            runs_blocks: Vec::with_capacity(count),
            bytes_per_second,
            needs: Needs::default(),
        };
        for (at, kernel) in (0..).zip(&graph.kernels) {
            let runs_blocks = kernel.is_op && runs_blocks(program, kernel.op);
            let (flops, bytes) = if kernel.is_name {
                (0.0, 0.0)
            } else if runs_blocks {
                let Needs { flops, bytes, .. } = inside[at as usize];
                let trips = if program.kind(kernel.op) == OpKind::While { TRIPS } else { 1.0 };
                (trips * flops, trips * bytes)
            } else {
                (all_flops[at as usize], traffic(graph, at))
            };
            found.needs.flops += flops;
            found.needs.bytes += bytes;
            found.compute.push(flops / flops_per_second);
            found.traffic.push(bytes / bytes_per_second);
            found.runs_blocks.push(runs_blocks);
        }
        found
    }
    /// Seconds of kernel `at`.
    fn seconds(&self, at: u32) -> f64 {
        self.compute[at as usize].max(self.traffic[at as usize])
    }
    /// Seconds of kernel `at`; of a loop that runs so many times, if that is known.
    pub fn seconds_in(&self, at: u32, trips: Option<u64>) -> f64 {
        self.seconds(at) * trips.map_or(1.0, |trips| trips as f64 / TRIPS)
    }
}

/// Seconds of the kernels of a block, by their position in its schedule.
pub struct CostAnalysis {
    /// What each computes, and its traffic if everything is in HBM.
    compute: Vec<f64>,
    traffic: Vec<f64>,
    /// Whether kernels run inside it.
    runs_blocks: Vec<bool>,
    /// The seconds of all kernels before each.
    before: Vec<f64>,
    bytes_per_second: f64,
    /// What all of them need, once.
    pub needs: Needs,
}

impl CostAnalysis {
    /// For kernels with `costs`, in `order`.
    pub fn new(costs: &KernelCosts, order: &[u32]) -> Self {
        let mut found = Self {
            compute: order.iter().map(|&at| costs.compute[at as usize]).collect(),
            traffic: order.iter().map(|&at| costs.traffic[at as usize]).collect(),
            runs_blocks: order.iter().map(|&at| costs.runs_blocks[at as usize]).collect(),
            before: Vec::with_capacity(order.len() + 1),
            bytes_per_second: costs.bytes_per_second,
            needs: costs.needs,
        };
        let mut now = 0.0;
        for &at in order {
            found.before.push(now);
            now += costs.seconds(at);
        }
        found.before.push(now);
        found
    }
    /// Seconds to copy `bytes` between the memories.
    pub fn copy(&self, bytes: u128) -> f64 {
        bytes as f64 / self.bytes_per_second
    }
    /// Seconds of the kernels between the positions `start` and `end`, without these two.
    pub fn between(&self, start: u32, end: u32) -> f64 {
        (self.before[end as usize] - self.before[(start as usize + 1).min(end as usize)]).max(0.0)
    }
    /// The last position in `range` after which kernels take at least `seconds` before `end`.
    pub fn latest(&self, (first, end): (u32, u32), seconds: f64) -> Option<u32> {
        let count = self.before[first as usize + 1..=end as usize]
            .partition_point(|&before| self.before[end as usize] - before >= seconds);
        count.checked_sub(1).map(|count| first + count as u32)
    }
    /// The first position in `range` after which kernels take at most `seconds` before `end`.
    pub fn earliest(&self, (first, end): (u32, u32), seconds: f64) -> u32 {
        let count = self.before[first as usize + 1..=end as usize]
            .partition_point(|&before| self.before[end as usize] - before > seconds);
        first + count as u32
    }
    /// Seconds of the kernel at position `at`.
    pub fn at(&self, at: u32) -> f64 {
        self.compute[at as usize].max(self.traffic[at as usize])
    }
    /// Seconds that the kernel at position `at` computes products.
    pub fn computes(&self, at: u32) -> f64 {
        self.compute[at as usize]
    }
    /// Whether kernels run inside that at position `at`.
    pub fn runs_blocks(&self, at: u32) -> bool {
        self.runs_blocks[at as usize]
    }
    /// The seconds that it helps the kernel at position `at` if `bytes` of its traffic are with vector memory; below 0, what it
    /// computes takes so much longer than its traffic.
    pub fn benefit(&self, at: u32, bytes: u128) -> f64 {
        let (compute, traffic) = (self.compute[at as usize], self.traffic[at as usize]);
        if traffic > compute {
            self.copy(bytes)
        } else {
            traffic - compute
        }
    }
    /// The seconds by which the kernel at position `at` gets shorter.
    pub fn reduction(&self, at: u32, bytes: u128) -> f64 {
        let (compute, traffic) = (self.compute[at as usize], self.traffic[at as usize]);
        (traffic - (traffic - self.copy(bytes)).max(compute)).max(0.0)
    }
}

/// The bytes that are read.
pub fn read_bytes(graph: &Graph, read: &Read) -> u128 {
    graph.items[graph.stored_as(read.item) as usize].bytes.min(read.bytes.into())
}

/// The bytes that kernel `at` reads and writes.
fn traffic(graph: &Graph, at: u32) -> f64 {
    let read: u128 = graph.reads(at).iter().map(|read| read_bytes(graph, read)).sum();
    let made: u128 = graph.makes(at).iter().map(|&item| graph.items[item as usize].bytes).sum();
    read as f64 + made as f64
}

/// Whether kernels run inside `op`.
pub fn runs_blocks(program: &Program, op: OpId) -> bool {
    use OpKind::{Call, Case, Composite, If, While};
    matches!(program.kind(op), Call | Case | Composite | If | While)
}

/// The FLOPs of the products that each kernel computes.
fn flops_of_kernels((program, works): (&Program, &mut Works<'_>), graph: &Graph) -> Vec<f64> {
    let mut flops = vec![0.0; graph.kernels.len()];
    let Some(&(first, _)) = graph.ops.first() else { return flops };
    let kernels: FxHashMap<OpId, u32> = graph.ops.iter().copied().collect();
    for op in program.block_ops(program.parent_block(first)) {
        if let Some(of_product) = flops_of_product((program, works), op) {
            let mut user = Some(op);
            for _ in 0..MAX_STEPS {
                let Some(op) = user else { break };
                if let Some(&kernel) = kernels.get(&op) {
                    flops[kernel as usize] += of_product;
                    break;
                }
                user = program.op_results(op).next().and_then(|value| program.users(value).next());
            }
        }
    }
    flops
}

fn flops_of_product((program, works): (&Program, &mut Works<'_>), op: OpId) -> Option<f64> {
    match is_product(program, op).then(|| works.of(op)) {
        Some(Outcome::Counted(work)) => Some(work.flops as f64),
        _ => None,
    }
}
