//! Passes that reduce the number and the size of collectives of a per-device program. They depend on `StableHLO`
//! only, so that they run on any per-device program.
//!
//! 1. [`remove_unused_ops`]: removes collectives, and other ops, that nothing uses.
//! 2. [`fuse_reshards`]: fuses a collective with its inverse, or with another one of its kind.
//! 3. [`all_reduce_to_reduce_scatter`]: turns an all-reduce of which each device keeps a slice into a reduce-scatter.
//! 4. [`merge_equal_collectives`]: merges equal collectives.
//! 5. [`hoist_loop_invariant_collectives`]: moves collectives with loop-invariant operands out of loops.
//! 6. [`all_reduce_reassociate`]: combines partial values before they are reduced.
//! 7. [`while_loop_all_reduce_code_motion`]: moves all-reduces behind the loops that accumulate their results.
//! 8. [`all_reduce_folder`]: makes one all-reduce of two that follow each other.
//! 9. [`all_gather_broadcast_reorder`]: gathers what is broadcast before it is.
//! 10. [`top_k_of_shards`]: selects the largest elements of shards before they are gathered.
//! 11. [`schedule_aware_collective_cse`]: gathers anew what is needed again much later.
//! 12. [`reduce_scatter_decomposer`]: turns reduce-scatters that TPUs have no kernel for into all-reduces.
//!
//! The last seven are XLA's, and most of them change the order of sums; [`run`] leaves them out.

pub mod all_gather_broadcast_reorder;
pub mod all_reduce_folder;
pub mod all_reduce_reassociate;
pub mod all_reduce_to_reduce_scatter;
pub mod fuse_reshards;
pub mod hoist_loop_invariant_collectives;
pub mod merge_equal_collectives;
mod offsets;
pub mod reduce_scatter_decomposer;
pub mod remove_unused_ops;
pub mod schedule_aware_collective_cse;
pub mod top_k_of_shards;
pub mod while_loop_all_reduce_code_motion;

use super::reducer::Reducer;
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, StrId, ValueId};
use crate::ir::{OpTraits, Program};
use crate::mlir::{op_attribute, AttrValue};

/// Collectives.
pub const COLLECTIVES: [&str; 6] = [
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
    fn ops(&self, program: &mut Program) -> Vec<OpId> {
        program.ops_named_in_pre_order(&self.ids)
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

/// Whether the result of `op` has the elements of its first operand in another form.
fn is_formatting(program: &Program, op: OpId) -> bool {
    match program.op_name(op) {
        "stablehlo.reshape" | "stablehlo.transpose" => true,
        // Where they only add or remove dims of size one.
        "stablehlo.broadcast_in_dim" => has_as_many_elements(program, op),
        "stablehlo.reduce" => {
            program.num_results(op) == 1
                && has_as_many_elements(program, op)
                && Reducer::of_region(program, op) == Some(Reducer::Add)
                && is_zero(program, program.operand(op, 1))
        }
        _ => false,
    }
}

fn has_as_many_elements(program: &Program, op: OpId) -> bool {
    let size = |value: ValueId| {
        let shape = program.value_type(value).static_shape()?;
        shape.iter().try_fold(1_i64, |size, &dim| size.checked_mul(dim))
    };
    let before = size(program.operand(op, 0));
    before.is_some() && before == size(program.result(op, 0))
}

fn is_zero(program: &Program, value: ValueId) -> bool {
    program.defining_op(value).is_some_and(|op| {
        program.has_traits(op, OpTraits::CONSTANT_LIKE) && program.constant_value(op).is_zero()
    })
}

/// The attributes of `op` that say which devices take part in it, for another collective of theirs.
fn participants(program: &Program, op: OpId) -> Vec<(&'static str, String)> {
    let names = ["replica_groups", "channel_handle", "use_global_device_ids"];
    let attrs = names.map(|name| (name, program.attr(op, name).map(str::to_owned)));
    attrs.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// The attribute `name` of `op`, the index of a dim.
fn dim(program: &Program, op: OpId, name: &str) -> Option<usize> {
    usize::try_from(op_attribute(program, op, name)?.as_int()?).ok()
}
