//! Removes shardings on a single device from ops that lose theirs on the way to XLA.
//!
//! XLA reads the shardings of an op, other than those of constraints, manual computations and a few custom calls, from no
//! attribute. Of shardings over several devices that changes little, as they are what propagation completes; a value that
//! was to be on one device is computed where its operands and users are.
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

/// Whether XLA reads the shardings of `op`.
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
