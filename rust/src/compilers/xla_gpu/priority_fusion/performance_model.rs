//! The run time of a kernel by the model from which XLA:GPU decides what to fuse.
//!
//! Source: XLA's `GpuPerformanceModel`. Constants are those of an H100, also for other GPUs.

use super::expression::{Expression, Use};
use super::hero::Hero;
use super::nodes::Node;

/// Seconds to start a kernel.
pub const LAUNCH: f64 = 1e-6;
/// Bytes per second of device memory, for all cores together.
const BANDWIDTH: f64 = 3.352_32e12;
/// Bytes per second that one block of threads can read: a transaction of 32 bytes in each cycle.
const BLOCK_BANDWIDTH: f64 = 1.98e9 * 32.0;
const CORES: f64 = 132.0;
/// Lanes of a core, and twice its clock rate in cycles per second.
const LANES: f64 = 128.0;
const LANE_FLOPS: f64 = 2.0 * 1.98e9;
/// Threads that the chip runs at once.
const THREADS: f64 = 132.0 * 2048.0;
/// Bytes of the L2 cache, and of the L1 caches of all cores; how much faster these are read than memory.
const L2_BYTES: f64 = 52_428_800.0;
const L1_BYTES: f64 = 132.0 * 262_144.0;
const L2_SPEEDUP: f64 = 2.5;
const L1_SPEEDUP: f64 = 8.0;
/// Bytes of a memory transaction: an uncoalesced read of one element wastes the rest.
const TRANSACTION: f64 = 64.0;
/// The share of the shorter of compute and memory time that overlaps with the longer.
const OVERLAP: f64 = 0.95;

/// The number of blocks of threads, and of threads in each.
fn launch(hero: Hero, elements: f64) -> (f64, f64) {
    match hero {
        Hero::Reduction(reduction) => reduction.launch(),
        Hero::Transpose(_) => ((elements / 1024.0).ceil().max(1.0), 128.0),
        Hero::Tiled => ((elements / 128.0).ceil().max(1.0), 128.0),
        Hero::Loop | Hero::Concatenation | Hero::Scatter => {
            let unroll = if elements >= THREADS { unrolled(elements) } else { 1.0 };
            let work = (elements / unroll).ceil().max(1.0);
            let threads = work.min(128.0);
            ((work / threads).ceil(), threads)
        }
    }
}

/// The elements that each thread computes, of so many in all.
fn unrolled(elements: f64) -> f64 {
    [4.0, 2.0].into_iter().find(|factor| elements % factor == 0.0).unwrap_or(1.0)
}

/// Seconds of overlapping compute and memory time.
fn combined(compute: f64, traffic: f64) -> f64 {
    compute + traffic - compute.min(traffic) * OVERLAP
}

fn compute_seconds(flops: f64, (blocks, threads): (f64, f64)) -> f64 {
    flops / (LANE_FLOPS * threads.min(LANES) * blocks.min(CORES))
}

/// Seconds to read `total` bytes of the result of `node`, of which the first read comes from memory and others from caches.
fn read_seconds(node: &Node, total: f64, blocks: f64, is_strided: bool) -> f64 {
    let net = node.bytes.min(total);
    let share = if is_strided { node.element / TRANSACTION } else { 1.0 };
    let mut again = BANDWIDTH;
    if net < L2_BYTES {
        again *= L2_SPEEDUP;
        if net < L1_BYTES {
            again *= L1_SPEEDUP;
        }
    } else {
        again *= share;
    }
    let most = blocks * BLOCK_BANDWIDTH;
    net / (BANDWIDTH * share).min(most) + (total - net) / again.min(most)
}

/// Whether reads of an operand are uncoalesced: a transpose through shared memory coalesces them.
fn reads_apart(hero: Hero, operand: &Use) -> bool {
    operand.is_strided && !matches!(hero, Hero::Transpose(_))
}

/// Seconds of the kernel of `node` by itself.
pub fn seconds(nodes: &[Node], node: &Node) -> f64 {
    let made = &node.expression;
    // Of a tiled kernel the tiles are as small as fills the chip, those of a reduction of what it reads.
    let elements = if made.hero == Hero::Tiled { node.looped } else { node.launched };
    let launch = launch(made.hero, elements);
    let read: f64 = made
        .uses
        .iter()
        // What is updated in place is not read.
        .filter(|it| it.node != made.updated)
        .map(|it| {
            let from = &nodes[it.node as usize];
            let total = from.bytes * made.utilization(it);
            read_seconds(from, total, launch.0, reads_apart(made.hero, it))
        })
        .sum();
    combined(compute_seconds(made.flops, launch), read + node.written / BANDWIDTH)
}

/// Seconds to write the result of `node` as a further output.
pub fn side_output_seconds(node: &Node) -> f64 {
    node.written / BANDWIDTH
}

/// Seconds of `consumer` with `producer`, node `at`, fused into it.
pub fn fused_seconds(nodes: &[Node], (at, producer): (u32, &Node), consumer: &Node) -> f64 {
    let (inner, outer): (&Expression, &Expression) = (&producer.expression, &consumer.expression);
    let Some(used) = outer.use_of(at) else { return f64::INFINITY };
    let hero = outer.hero_with(at, inner);
    if hero == Hero::Tiled {
        // Each part of a row is computed and read once.
        let fused = Node { expression: outer.with(at, inner), ..consumer.clone() };
        return seconds(nodes, &fused);
    }
    let utilization = outer.utilization(used);
    let launch = launch(hero, consumer.launched);
    let flops = inner.flops.mul_add(utilization, outer.flops);
    let mut read = 0.0;
    // Both lists are sorted by node.
    let (mut left, mut right) = (inner.uses.iter().peekable(), outer.uses.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => one.node.min(other.node),
            (Some(one), None) => one.node,
            (None, Some(other)) => other.node,
            (None, None) => break,
        };
        let one = left.next_if(|it| it.node == next);
        let other = right.next_if(|it| it.node == next);
        if next == at {
            continue;
        }
        let from = &nodes[next as usize];
        let of_inner = one.map_or(0.0, |it| inner.utilization(it) * utilization);
        let of_outer = other.map_or(0.0, |it| outer.utilization(it));
        let common = match (one, other) {
            (Some(one), Some(other)) if one.roots.contains(&0) => outer.common(other, used),
            _ => 0.0,
        };
        let is_strided = one.is_some_and(|it| it.is_strided || used.is_strided)
            || other.is_some_and(|it| it.is_strided);
        let is_strided = is_strided && !matches!(hero, Hero::Transpose(_));
        let total = from.bytes * (of_inner + of_outer - common);
        read += read_seconds(from, total.max(0.0), launch.0, is_strided);
    }
    combined(compute_seconds(flops, launch), read + consumer.written / BANDWIDTH)
}
