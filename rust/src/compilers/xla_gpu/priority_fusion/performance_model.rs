//! The run time of a kernel by the model from which XLA:GPU decides what to fuse.
//!
//! Source: XLA's `GpuPerformanceModel`. Constants are those of an H100, also for other GPUs.

use super::expression::{Expression, Use};
use super::hero::Hero;
use super::node::{Node, Size};

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

/// Seconds to read `total` bytes of an array, of which the first read comes from memory and others from caches.
fn read_seconds(size: Size, total: f64, blocks: f64, is_strided: bool) -> f64 {
    let net = size.bytes.min(total);
    let share = if is_strided { size.element / TRANSACTION } else { 1.0 };
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

/// Measures `node`: the seconds of its kernel by itself, and those of each read of an array of one of these sizes.
pub fn measure(size: impl Fn(u32) -> Size, node: &mut Node) {
    let (hero, updated) = (node.expression.hero, node.expression.updated);
    // Of a tiled kernel the tiles are as small as fills the chip, those of a reduction of what it reads.
    node.launch = launch(hero, if hero == Hero::Tiled { node.looped } else { node.launched });
    let mut uses = std::mem::take(&mut node.expression.uses);
    for it in &mut uses {
        it.utilization = node.expression.utilization(it);
        let from = size(it.node);
        let total = from.bytes * it.utilization;
        it.seconds = read_seconds(from, total, node.launch.0, reads_apart(hero, it));
    }
    // What is updated in place is not read.
    let read = uses.iter().filter(|it| it.node != updated).map(|it| it.seconds);
    let read: f64 = read.sum();
    let compute = compute_seconds(node.expression.flops, node.launch);
    node.seconds = combined(compute, read + node.written / BANDWIDTH);
    node.expression.uses = uses;
}

/// Seconds to write the result of `node` as a further output.
pub fn side_output_seconds(node: &Node) -> f64 {
    node.written / BANDWIDTH
}

/// Seconds of `consumer` with `producer`, node `at`, fused into it; both are measured.
pub fn fused_seconds(
    size: impl Fn(u32) -> Size,
    (at, producer): (u32, &Node),
    consumer: &Node,
) -> f64 {
    let (inner, outer): (&Expression, &Expression) = (&producer.expression, &consumer.expression);
    let Some(used) = outer.use_of(at) else { return f64::INFINITY };
    let hero = outer.hero_with(at, inner);
    if hero == Hero::Tiled {
        return tiled_seconds(size, (at, inner), consumer);
    }
    let utilization = used.utilization;
    let is_own = hero == outer.hero;
    let launch = if is_own { consumer.launch } else { launch(hero, consumer.launched) };
    let flops = inner.flops.mul_add(utilization, outer.flops);
    let mut read = 0.0;
    for (node, one, other) in inner.union(outer) {
        if node == at {
            continue;
        }
        match (one, other) {
            // The producer does not change this read.
            (None, Some(other)) if is_own && other.utilization >= 0.0 => {
                read += other.seconds;
                continue;
            }
            _ => {}
        }
        let from = size(node);
        let of_inner = one.map_or(0.0, |it| it.utilization * utilization);
        let of_outer = other.map_or(0.0, |it| it.utilization);
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

/// As [`fused_seconds`], for a tiled kernel: each part of a row is computed and read once.
fn tiled_seconds(
    size: impl Fn(u32) -> Size,
    (at, inner): (u32, &Expression),
    consumer: &Node,
) -> f64 {
    let outer = &consumer.expression;
    let launch = launch(Hero::Tiled, consumer.looped);
    let reads = inner.union(outer).filter(|&(node, ..)| node != at).map(|(node, ..)| {
        let from = size(node);
        read_seconds(from, from.bytes, launch.0, false)
    });
    let read: f64 = reads.sum();
    let flops = outer.flops + inner.flops;
    combined(compute_seconds(flops, launch), read + consumer.written / BANDWIDTH)
}
