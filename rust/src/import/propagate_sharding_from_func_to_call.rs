//! `sdy-propagate-sharding-from-func-to-call`: a call without result shardings takes those of the
//! function it calls, if that has any over a mesh of more than one device.

use super::callee;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, OpId, ShardingId, TypeId};
use crate::ir::{OpKind, Program, SymbolTable};

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let calls: Vec<OpId> =
        program.post_order(program.module).filter(|&op| program.kind(op) == OpKind::Call).collect();
    let symbols = SymbolTable::new(program);
    for call in calls {
        let func = callee(program, &symbols, call)?;
        if func.is_none() || has_shardings(program, call) {
            continue;
        }
        let Some(shardings) = result_shardings(program, func) else { continue };
        for (result, sharding) in program.op_results(call).zip(shardings) {
            program.set_sharding(result, sharding);
        }
    }
    Ok(())
}

/// Whether `op` has a `sdy.sharding` attribute.
pub(super) fn has_shardings(program: &Program, op: OpId) -> bool {
    program.op_results(op).any(|result| program.sharding(result).is_some())
        || program.no_result_shardings.contains_key(&op)
}

/// The result shardings of `func`, with open ones where there is none; `None` if no result has one
/// over a mesh of more than one device.
fn result_shardings(program: &mut Program, func: FuncId) -> Option<Vec<ShardingId>> {
    let row = &program.functions[func];
    let (shardings, types) = (row.result_shardings.clone(), row.result_types.clone());
    complete_shardings(program, shardings, &types)
}

/// `shardings` with open ones in the gaps; `None` if none is over a mesh of more than one device.
pub(super) fn complete_shardings(
    program: &mut Program,
    mut shardings: Vec<ShardingId>,
    types: &[TypeId],
) -> Option<Vec<ShardingId>> {
    let mut meshes = shardings.iter().filter_map(|&id| program.mesh_of(id).get());
    let mesh = meshes.find(|&mesh| !program.mesh(mesh).is_maximal())?;
    shardings.resize(types.len(), ShardingId::NONE);
    for (sharding, &ty) in shardings.iter_mut().zip(types) {
        if sharding.is_none() {
            *sharding = program.replicated(mesh, ty, false);
        }
    }
    Some(shardings)
}
