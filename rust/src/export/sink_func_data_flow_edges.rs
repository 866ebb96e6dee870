//! `sdy-sink-func-data-flow-edges`: moves the sharding of each function data-flow edge to its operand
//! and removes the edge op.

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::sharding::TensorSharding;

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    if !program.has_any(&[OpKind::FuncDataFlowEdge]) {
        return Ok(());
    }
    let is_edge = |op: &OpId| program.kind(*op) == OpKind::FuncDataFlowEdge;
    let edges: Vec<OpId> = program.pre_order(func).filter(is_edge).collect();
    for edge in edges {
        let (operand, result) = (program.operand(edge, 0), program.result(edge, 0));
        let new = program.sharding(result);
        let old = program.sharding_of(operand);
        if new.is_some() {
            program.set_sharding_of(operand, new);
        } else if let Some(old) = program.shardings().get(old) {
            let open = TensorSharding::fully_replicated(old.mesh, old.dims.len(), false);
            let open = program.intern_sharding(open);
            program.set_sharding_of(operand, open);
        }
        program.replace_all_uses(result, operand);
        program.erase_op(edge);
    }
    Ok(())
}
