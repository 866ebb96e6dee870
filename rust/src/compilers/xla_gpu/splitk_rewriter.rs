//! Split-K: a product whose result has too few tiles to keep a GPU busy is computed in parts of what it contracts, which are
//! then added up.
//!
//! XLA estimates the cost of each number of parts by a model whose constants were fitted to products on one chip. They are those
//! of an H100, also for other GPUs.
//!
//! Source: XLA's `SplitkRewriter`.

use crate::index::OpId;
use crate::ir::Program;
use crate::stablehlo::dims::{DimList, DotDims};
use crate::work::cached::Works;
use crate::work::ops::contract::product;

/// Streaming multiprocessors, and bytes of the second-level cache.
const CORES: f64 = 132.0;
const L2_BYTES: f64 = 50.0 * 1024.0 * 1024.0;

/// Rows, and columns, of a tile of the result.
const TILE: f64 = 212.0;
/// Bytes of what is contracted that a step of the loop over a tile takes.
const STEP_BYTES: f64 = 442.0;
/// FLOPs of an element in such a step: a product, a sum, and what else is done for it.
const FLOPS: f64 = 2.0 + 4.733_13;
/// FLOPs in the time of a byte from memory, and from the cache.
const FLOPS_PER_BYTE: f64 = 2842.3;
const FLOPS_PER_CACHED_BYTE: f64 = 1846.31;
/// The share of the cache up to which it has what all tiles of a time read.
const CACHED_SHARE: f64 = 2.198_72;
/// FLOPs in the time in which the sum of the parts starts, and in that of a byte of it.
const SUM_FLOPS: f64 = 2.742_28e9;
const SUM_FLOPS_PER_BYTE: f64 = 677.076;

/// The numbers of parts that are tried.
const PARTS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The sizes of a product, and the bits of its elements.
#[derive(Clone, Copy)]
struct Gemm {
    batch: f64,
    rows: f64,
    columns: f64,
    contracted: f64,
    left_bits: f64,
    right_bits: f64,
    result_bits: f64,
}

/// In how many parts `op`, a product with these `dims`, is computed.
pub fn split_k(program: &Program, works: &mut Works<'_>, op: OpId, dims: &DotDims) -> u128 {
    let [left, right] = [0, 1].map(|index| program.operand(op, index));
    let result = program.result(op, 0);
    if works.tensors.element(left) == "i32" || works.tensors.element(right) == "i32" {
        return 1;
    }
    let mut bits = |value| {
        let tensor = works.tensors.of(value);
        (tensor.bytes.saturating_mul(8) / tensor.elements.max(1)) as f64
    };
    let (left_bits, right_bits, result_bits) = (bits(left), bits(right), bits(result));
    let sizes = works.tensors.of(left).dims.as_deref().unwrap_or_default();
    let along =
        |dims: &DimList<usize>| product(dims.iter().filter_map(|&dim| sizes.get(dim))) as f64;
    let batch = along(&dims.lhs_batching);
    let contracted = along(&dims.lhs_contracting);
    let elements = works.tensors.of(left).elements as f64;
    let columns = works.tensors.of(right).elements as f64 / (batch * contracted);
    let rows = elements / (batch * contracted);
    if !(batch * contracted * rows * columns).is_normal() {
        return 1;
    }
    let gemm = Gemm { batch, rows, columns, contracted, left_bits, right_bits, result_bits };
    let best = PARTS.into_iter().min_by(|&a, &b| gemm.cost(a).total_cmp(&gemm.cost(b)));
    u128::from(best.unwrap_or(1))
}

impl Gemm {
    /// The cost in so many parts, in FLOPs of the time that it takes.
    fn cost(&self, parts: u32) -> f64 {
        let is_whole = parts == 1;
        let parts = f64::from(parts);
        let depth = (self.contracted / parts).ceil();
        let tiles = (self.rows / TILE).ceil() * (self.columns / TILE).ceil();
        let waves = (self.batch * parts * tiles / CORES).ceil();
        let steps = (depth * self.left_bits.max(self.right_bits) / 8.0 / STEP_BYTES).ceil();
        let sum_bytes = 4.0;
        let written = if is_whole { self.result_bits / 8.0 } else { sum_bytes };
        let flops = FLOPS * TILE * TILE * steps * STEP_BYTES * sum_bytes;
        let bytes = TILE * depth * (self.left_bits + self.right_bits) / 8.0 + TILE * TILE * written;
        let is_cached = bytes * CORES < CACHED_SHARE * L2_BYTES;
        let per_byte = if is_cached { FLOPS_PER_CACHED_BYTE } else { FLOPS_PER_BYTE };
        let dot = flops.max(bytes * per_byte) * waves;
        if is_whole {
            return dot;
        }
        let elements = self.batch * self.rows * self.columns;
        let summed = elements * (parts * sum_bytes + self.result_bits / 8.0);
        dot + SUM_FLOPS + summed * SUM_FLOPS_PER_BYTE
    }
}
