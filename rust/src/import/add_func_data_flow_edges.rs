//! `sdy-add-func-data-flow-edges`: inserts an `sdy.func_data_flow_edge` on every argument of every
//! function except the main one, and on every result of every call.

use super::edge_ops::{has_static_shape, insert_edge};
use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Place, Program};

const EDGE: OpKind = OpKind::FuncDataFlowEdge;

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let main = program.main_function()?;
    for func in program.functions_in_order() {
        let body = program.func_body(func);
        if func != main && body.is_some() {
            let loc = program.loc(program.func_op(func));
            let mut last = OpId::NONE;
            for arg in program.block_args(body) {
                if has_static_shape(program, arg) {
                    let place = last.get().map_or(Place::Start(body), Place::After);
                    last = insert_edge(program, (EDGE, loc), arg, program.sharding(arg), place);
                }
            }
        }
    }
    for call in program.ops_in_post_order(&[OpKind::Call]) {
        let (mut last, loc) = (call, program.loc(call));
        for result in program.op_results(call) {
            if has_static_shape(program, result) {
                let sharding = program.sharding(result);
                let place = Place::After(last);
                last = insert_edge(program, (EDGE, loc), result, sharding, place);
            }
        }
    }
    Ok(())
}
