//! Removes single-device shardings from ops that lose them on the way to XLA.
//!
//! XLA imports the shardings of constraints, manual computations and a few custom calls, but not
//! the `sdy.sharding` attributes of other ops. For shardings over several devices this makes little
//! difference, since propagation completes them again; but a value with a single-device sharding is
//! then computed where its operands and users are.
//!
//! Source: XLA's `SdyRoundTripImportShardyAttrsPass`.

use crate::import::sdy_round_trip::ANNOTATED;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;

/// Removes them from `program`.
pub fn run(program: &mut Program) {
    if !program.meshes().iter().any(|row| row.mesh.is_maximal()) {
        return;
    }
    for op in program.op_ids().collect::<Vec<_>>() {
        let results: Vec<ValueId> = program.op_results(op).collect();
        for result in results {
            if program.is_on_single_device(program.sharding(result)) && !is_read(program, op) {
                program.set_sharding(result, ShardingId::NONE);
            }
        }
    }
}

/// Whether XLA imports the shardings of `op`.
fn is_read(program: &Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::ShardingConstraint | OpKind::Reshard | OpKind::ManualComputation => true,
        OpKind::CustomCall => op_attribute(program, op, "call_target_name")
            .and_then(|target| target.as_str().map(|target| ANNOTATED.contains(&target)))
            .unwrap_or_default(),
        _ => ["stablehlo.send", "stablehlo.recv", "stablehlo.after_all"]
            .contains(&program.op_name(op)),
    }
}
