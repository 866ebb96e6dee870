//! `all-reduce-reassociate`: combines partial values before they are reduced over devices, so that several all-reduces become one.
//!
//! `op(all_reduce(x), all_reduce(y))`, with the same reducer `op` and replica groups, becomes `all_reduce(op(x, y))`; reshapes may
//! be in between. The all-reduces may not have other uses. A chain of more than two is folded from its start.
//!
//! Source: XLA's `AllReduceReassociate`.

use super::super::devices::Devices;
use super::super::emit::Emitter;
use super::super::reducer::Reducer;
use super::{matrix, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::Program;

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-reduce-reassociate", 0, 1)?;
    let names = ["add", "multiply", "maximum", "minimum", "and", "or"];
    let names = names.map(|name| format!("stablehlo.{name}"));
    let names = names.each_ref().map(String::as_str);
    for op in Names::new(program, &names).ops(program) {
        if let Some(reduced) = reassociated(program, op) {
            replace(program, op, reduced);
        }
    }
    Ok(())
}

/// The all-reduces whose results `op` combines, if their reducer is the same op.
fn reassociated(program: &Program, op: OpId) -> Option<[OpId; 2]> {
    if program.num_operands(op) != 2 {
        return None;
    }
    let reduced = [0, 1].map(|index| all_reduce(program, program.operand(op, index)));
    let [one, other] = [reduced[0]?, reduced[1]?];
    let is_reduced_by_op = |it: OpId| {
        let reducer = Reducer::of_region(program, it);
        reducer.is_some_and(|reducer| reducer.op_name() == program.op_name(op))
    };
    let groups = |it: OpId| matrix(program, it, "replica_groups");
    let are_alike = one != other
        && is_reduced_by_op(one)
        && is_reduced_by_op(other)
        && program.parent_block(one) == program.parent_block(op)
        && program.parent_block(other) == program.parent_block(op)
        && groups(one).is_some_and(|groups_of_one| Some(groups_of_one) == groups(other));
    are_alike.then_some([one, other])
}

/// The all-reduce that defines `value`, through reshapes; it has no other use.
fn all_reduce(program: &Program, mut value: ValueId) -> Option<OpId> {
    loop {
        let op = program.defining_op(value).filter(|_| program.has_one_use(value))?;
        match program.op_name(op) {
            "stablehlo.all_reduce" if program.num_results(op) == 1 => return Some(op),
            "stablehlo.reshape" => value = program.operand(op, 0),
            _ => return None,
        }
    }
}

/// Reduces the result of `op` instead of its operands, which `reduced` defined.
fn replace(program: &mut Program, op: OpId, reduced: [OpId; 2]) {
    let Some(reducer) = Reducer::of_region(program, reduced[0]) else { return };
    let names = ["replica_groups", "channel_handle", "use_global_device_ids"];
    let attrs = names.map(|name| (name, program.attr(reduced[0], name).map(str::to_owned)));
    let attrs: Vec<(&str, String)> =
        attrs.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    for it in reduced {
        let (before, after) = (program.operand(it, 0), program.result(it, 0));
        program.replace_all_uses(after, before);
    }
    let partial = program.result(op, 0);
    let ty = program.type_of(partial);
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_after(op);
    let new = emit.op_with_results("stablehlo.all_reduce", &[partial], &[ty], &attrs);
    reducer.add_body(&mut emit, new, ty);
    if let Some(cause) = program.cause(reduced[1]) {
        program.set_cause(new, cause);
    }
    let whole = program.result(new, 0);
    program.replace_all_uses_except(partial, whole, new);
    for it in reduced {
        program.erase_op(it);
    }
}
