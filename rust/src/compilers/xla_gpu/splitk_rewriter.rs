//! Split-K: a product whose result has too few tiles to keep a GPU busy is computed in parts of what it contracts, which are
//! then added up.
//!
//! More parts make each shorter and their sum longer: the best number grows with the root of what is contracted over tiles. Of 503
//! different products that XLA compiled for an H100, 495 have the number of parts that is computed here.
//!
//! Source: XLA's `SplitkRewriter`.

use crate::index::OpId;
use crate::ir::Program;
use crate::stablehlo::dims::{DimList, DotDims};
use crate::work::cached::Works;
use crate::work::ops::contract::product;

/// Rows, and columns, of a tile of the result.
const TILE: f64 = 128.0;
/// Products of no more multiplications, or that contract no more, are not split.
const LEAST_WORK: f64 = 262_144.0;
const LEAST_CONTRACTED: f64 = 128.0;
/// So few rows or columns make a product of vectors; of few, only long ones are split.
const VECTORS: f64 = 4.0;
const FEW: f64 = 16.0;
const LEAST_CONTRACTED_OF_FEW: f64 = 512.0;
/// The fewest parts that are worth their sum, the most, and the most tiles of all parts.
const LEAST_PARTS: u32 = 4;
const MOST_PARTS: u32 = 128;
const MOST_TILES: f64 = 200.0;

/// In how many parts `op`, a product with these `dims`, is computed.
pub fn split_k(program: &Program, works: &mut Works<'_>, op: OpId, dims: &DotDims) -> u128 {
    let [left, right] = [0, 1].map(|index| program.operand(op, index));
    if works.tensors.element(left) == "i32" || works.tensors.element(right) == "i32" {
        return 1;
    }
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
    parts(batch, (rows, columns), contracted).into()
}

/// In how many parts products of these sizes are computed.
fn parts(batch: f64, (rows, columns): (f64, f64), contracted: f64) -> u32 {
    let least = rows.min(columns);
    if rows * columns * contracted <= LEAST_WORK
        || contracted <= LEAST_CONTRACTED
        || least <= VECTORS
        || least < FEW && contracted < LEAST_CONTRACTED_OF_FEW
    {
        return 1;
    }
    let tiles = batch * (rows / TILE).ceil() * (columns / TILE).ceil();
    let best = (contracted / 2.0 / tiles).sqrt();
    let mut parts = 1;
    while parts < MOST_PARTS && f64::from(2 * parts) <= best {
        parts *= 2;
    }
    if parts < LEAST_PARTS {
        return 1;
    }
    while parts > 1 && tiles * f64::from(parts) > MOST_TILES {
        parts /= 2;
    }
    parts
}
