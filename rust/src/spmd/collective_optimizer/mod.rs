//! Passes that reduce the number and the size of collectives of a per-device program. They depend on `StableHLO`
//! only, so that they run on any per-device program.
//!
//! 1. [`remove_unused_ops`]: removes collectives, and other ops, that nothing uses.
//! 2. [`fuse_reshards`]: fuses a collective with its inverse, or with another one of its kind.
//! 3. [`all_reduce_to_reduce_scatter`]: turns an all-reduce of which each device keeps a slice into a reduce-scatter.
//! 4. [`merge_equal_collectives`]: merges equal collectives.
//! 5. [`hoist_loop_invariant_collectives`]: moves collectives with loop-invariant operands out of loops.
//! 6. [`all_reduce_reassociate`]: combines partial values before they are reduced. It changes the order of sums, so that
//!    [`run`] leaves it out.

pub mod all_reduce_reassociate;
pub mod all_reduce_to_reduce_scatter;
pub mod fuse_reshards;
pub mod hoist_loop_invariant_collectives;
pub mod merge_equal_collectives;
mod offsets;
pub mod remove_unused_ops;

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, StrId};
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
    remove_unused_ops::run(program, context)?;
    fuse_reshards::run(program, context)?;
    all_reduce_to_reduce_scatter::run(program, context)?;
    merge_equal_collectives::run(program, context)?;
    hoist_loop_invariant_collectives::run(
        program,
        context,
        hoist_loop_invariant_collectives::MAX_BYTES,
    )
}

/// Names of ops, looked up in the strings of a program.
struct Names {
    ids: Vec<StrId>,
}

impl Names {
    /// Those of `names` that the program has.
    fn new(program: &Program, names: &[&str]) -> Self {
        Self { ids: names.iter().filter_map(|name| program.strings().find(name)).collect() }
    }
    /// Whether `op` has one of the names.
    fn contain(&self, program: &Program, op: OpId) -> bool {
        self.ids.contains(&program.op_name_id(op))
    }
    /// The ops with one of the names, in pre-order.
    fn ops(&self, program: &Program) -> Vec<OpId> {
        program.pre_order(program.module_op()).filter(|&op| self.contain(program, op)).collect()
    }
}

/// The rows of an integer matrix attribute: groups or pairs of devices. `None` if it has another form.
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

/// The attribute `name` of `op`, the index of a dim.
fn dim(program: &Program, op: OpId, name: &str) -> Option<usize> {
    usize::try_from(op_attribute(program, op, name)?.as_int()?).ok()
}
