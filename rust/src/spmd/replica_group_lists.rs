//! Rewrites replica groups given by axes of a mesh as lists of device ids: a per-device program has no meshes.

use super::collectives::matrix_text;
use super::devices::{replica_groups, MAX_DEVICES};
use super::digits::digits_of;
use crate::index::OpId;
use crate::ir::Program;
use crate::mlir::{GroupsByAxes, REPLICA_GROUPS};

/// Lists the groups of all collectives of `program` whose mesh it has.
pub(super) fn list(program: &mut Program) {
    if program.strings().find(REPLICA_GROUPS).is_none() {
        return;
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        if let Some(text) = listed(program, op) {
            program.set_attr(op, REPLICA_GROUPS, &text);
        }
    }
}

/// The groups of `op` as lists of devices, if it names them by axes.
fn listed(program: &Program, op: OpId) -> Option<String> {
    let groups = GroupsByAxes::of(program, op)?;
    let symbol = program.strings().find(groups.symbol()?)?;
    let mesh = program.mesh(program.mesh_by_symbol(symbol)?);
    if mesh.device_count() > MAX_DEVICES {
        return None;
    }
    let axes = groups.axes(mesh)?;
    Some(matrix_text(&replica_groups(&digits_of(&axes, mesh), mesh)))
}
