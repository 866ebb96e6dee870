//! `sdy-add-func-data-flow-edges`: an `sdy.func_data_flow_edge` on every argument of every function
//! but the main one, and on every result of every call.

use super::edge_ops::{has_static_shape, insert_edge};
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, OpId};
use crate::ir::{OpKind, Place, Program};

const EDGE: &str = "sdy.func_data_flow_edge";

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let main = main_function(program)?;
    for func in program.functions_in_order() {
        let body = program.functions[func].body;
        if func != main && body.is_some() {
            let mut last = OpId::NONE;
            for arg in program.block_args(body) {
                if has_static_shape(program, arg) {
                    let place = last.get().map_or(Place::Start(body), Place::After);
                    last = insert_edge(program, EDGE, arg, program.sharding(arg), place);
                }
            }
        }
    }
    let calls: Vec<OpId> =
        program.post_order(program.module).filter(|&op| program.kind(op) == OpKind::Call).collect();
    for call in calls {
        let mut last = call;
        for result in program.op_results(call) {
            if has_static_shape(program, result) {
                let sharding = program.sharding(result);
                last = insert_edge(program, EDGE, result, sharding, Place::After(last));
            }
        }
    }
    Ok(())
}

/// The only function, or the one called `main`.
fn main_function(program: &Program) -> Result<FuncId> {
    let functions = program.functions_in_order();
    if let [only] = functions[..] {
        return Ok(only);
    }
    let is_main = |&func: &FuncId| program.strings.get(program.functions[func].name) == "main";
    functions.into_iter().find(is_main).ok_or_else(|| {
        Diagnostic::new(Code::UnknownSymbol, "no function @main in this module")
            .with_hint("a module of several functions needs one that is called main")
            .into()
    })
}
