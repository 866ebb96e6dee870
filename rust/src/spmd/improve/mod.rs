//! Passes that improve the program of one device and change nothing that it computes: fewer collectives, and smaller
//! ones. They know `StableHLO` alone, so that they run on any program of one device.
//!
//! 1. [`fuse_reshards`]: what undoes a collective, or follows one of its kind, is fused with it.
//! 2. [`reduce_scatters`]: an all-reduce of which each device keeps a part becomes a reduce-scatter.
//! 3. [`merge`]: of equal collectives one is left.
//! 4. [`hoist`]: collectives of what a loop does not change move in front of it.

pub mod fuse_reshards;
pub mod hoist;
pub mod merge;
mod offsets;
pub mod reduce_scatters;

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::Program;
use crate::mlir::{op_attribute, AttrValue};

/// Collectives.
const COLLECTIVES: [&str; 6] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.reduce_scatter",
];

/// Ops without effects that move or convert elements, or compute offsets.
const CHEAP: [&str; 19] = [
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.broadcast_in_dim",
    "stablehlo.compare",
    "stablehlo.concatenate",
    "stablehlo.constant",
    "stablehlo.convert",
    "stablehlo.divide",
    "stablehlo.dynamic_slice",
    "stablehlo.iota",
    "stablehlo.multiply",
    "stablehlo.pad",
    "stablehlo.partition_id",
    "stablehlo.remainder",
    "stablehlo.reshape",
    "stablehlo.select",
    "stablehlo.slice",
    "stablehlo.subtract",
    "stablehlo.transpose",
];

/// Runs all passes, each once.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    fuse_reshards::run(program, context)?;
    reduce_scatters::run(program, context)?;
    merge::run(program, context)?;
    hoist::run(program, context, hoist::MAX_BYTES)
}

/// Whether `op` is a collective.
fn is_collective(program: &Program, op: OpId) -> bool {
    COLLECTIVES.contains(&program.op_name(op))
}

/// Whether `op` is one of [`CHEAP`].
fn is_cheap(program: &Program, op: OpId) -> bool {
    CHEAP.contains(&program.op_name(op))
}

/// The ops called `name`, in pre-order.
fn ops_named(program: &Program, name: &str) -> Vec<OpId> {
    let Some(name) = program.strings().find(name) else { return Vec::new() };
    program.pre_order(program.module_op()).filter(|&op| program.op_name_id(op) == name).collect()
}

/// The rows of a matrix of integers: groups of devices, or pairs of them. None if it is written in another way.
fn matrix(program: &Program, op: OpId, name: &str) -> Option<Vec<Vec<i64>>> {
    let value = op_attribute(program, op, name)?;
    let AttrValue::Dense { ty, .. } = &value else { return None };
    let inner = ty.trim().strip_prefix("tensor<")?.strip_suffix("xi64>")?;
    let (rows, columns) = inner.split_once('x')?;
    let (rows, columns): (usize, usize) = (rows.parse().ok()?, columns.parse().ok()?);
    let ids = value.as_ints()?;
    if ids.len() == 1 && rows.checked_mul(columns)? != 1 {
        return None;
    }
    (rows * columns == ids.len() && columns > 0)
        .then(|| ids.chunks_exact(columns).map(<[i64]>::to_vec).collect())
}

/// The integer attribute `name` of `op` that says a dim.
fn dim(program: &Program, op: OpId, name: &str) -> Option<usize> {
    usize::try_from(op_attribute(program, op, name)?.as_int()?).ok()
}
