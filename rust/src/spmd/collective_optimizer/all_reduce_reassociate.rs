//! `all-reduce-reassociate`: combines partial values before they are reduced over devices, so that several all-reduces or
//! reduce-scatters become one.
//!
//! `op(all_reduce(x), all_reduce(y))`, with the same reducer `op` and replica groups, becomes `all_reduce(op(x, y))`; reshapes and
//! transposes may be in between, which XLA has moved away by then. So do reduce-scatters along one dim. The collectives may not have other uses. A chain of more than two is folded
//! from its start.
//!
//! Source: XLA's `AllReduceReassociate` and `ReduceScatterReassociate`.

use super::super::devices::Devices;
use super::super::emit::Emitter;
use super::super::reducer::Reducer;
use super::{dim, is_formatting, matrix, participants, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::Program;
use rustc_hash::FxHashSet;

const SUM: &str = "stablehlo.all_reduce";
const SCATTER: &str = "stablehlo.reduce_scatter";
const DIM: &str = "scatter_dimension";

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-reduce-reassociate", 0, 1)?;
    let reductions = Names::new(program, &[SUM, SCATTER]).ops(program);
    for op in candidates(program, &reductions) {
        if let Some(reduced) = reassociated(program, op) {
            replace(program, op, reduced);
        }
    }
    Ok(())
}

/// The ops that may combine the results of two of `reductions`, or of such ops, in pre-order. The pass never changes how often a
/// value is used.
fn candidates(program: &mut Program, reductions: &[OpId]) -> Vec<OpId> {
    let names = ["add", "multiply", "maximum", "minimum", "and", "or"];
    let names = names.map(|name| format!("stablehlo.{name}"));
    let names = Names::new(program, &names.each_ref().map(String::as_str));
    let mut found = Vec::new();
    let (mut half, mut seen): (FxHashSet<OpId>, FxHashSet<OpId>) = Default::default();
    let mut open: Vec<OpId> = reductions.to_vec();
    while let Some(op) = open.pop() {
        for value in program.op_results(op).filter(|&value| program.has_one_use(value)) {
            let Some(user) = program.users(value).next() else { continue };
            if names.contain(program, user) {
                // The first time only one operand is known to be reduced.
                if !half.insert(user) && seen.insert(user) {
                    found.push(user);
                    open.push(user);
                }
            } else if is_formatting(program, user) && seen.insert(user) {
                open.push(user);
            }
        }
    }
    program.sorted_in_pre_order(&found)
}

/// The reductions over devices whose results `op` combines, if their reducer is the same op.
fn reassociated(program: &Program, op: OpId) -> Option<[OpId; 2]> {
    if program.num_operands(op) != 2 {
        return None;
    }
    let reduced = [0, 1].map(|index| reduction(program, program.operand(op, index)));
    let [one, other] = [reduced[0]?, reduced[1]?];
    let is_reduced_by_op = |it: OpId| {
        let reducer = Reducer::of_region(program, it);
        reducer.is_some_and(|reducer| reducer.op_name() == program.op_name(op))
    };
    let groups = |it: OpId| matrix(program, it, "replica_groups");
    let is_in_block = |it: OpId| program.parent_block(it) == program.parent_block(op);
    // XLA adds the other term before it scatters into the sum, so that one reduction follows the other.
    let is_scattered = |it: OpId| {
        let scatter = program.defining_op(program.operand(it, 0));
        scatter.is_some_and(|op| program.op_name(op) == "stablehlo.scatter")
    };
    let are_alike = one != other
        && is_scattered(one) == is_scattered(other)
        && program.op_name(one) == program.op_name(other)
        && [one, other].into_iter().all(|it| is_reduced_by_op(it) && is_in_block(it))
        && dim(program, one, DIM) == dim(program, other, DIM)
        && groups(one).is_some_and(|groups_of_one| Some(groups_of_one) == groups(other));
    are_alike.then_some([one, other])
}

/// The all-reduce that defines `result`, through reshapes and transposes, or the reduce-scatter that does; it has no other use.
fn reduction(program: &Program, result: ValueId) -> Option<OpId> {
    let mut value = result;
    loop {
        let op = program.defining_op(value).filter(|_| program.has_one_use(value))?;
        match program.op_name(op) {
            SUM if program.num_results(op) == 1 => return Some(op),
            SCATTER if program.num_results(op) == 1 && value == result => return Some(op),
            _ if is_formatting(program, op) => value = program.operand(op, 0),
            _ => return None,
        }
    }
}

/// Reduces the result of `op` instead of its operands, which `reduced` defined.
fn replace(program: &mut Program, op: OpId, reduced: [OpId; 2]) {
    let Some(reducer) = Reducer::of_region(program, reduced[0]) else { return };
    let name = program.op_name(reduced[0]).to_owned();
    let mut attrs = participants(program, reduced[0]);
    let dim = program.attr(reduced[0], DIM).map(|dim| (DIM, dim.to_owned()));
    attrs.extend(dim);
    let cause = program.cause(reduced[1]);
    let (old, ty) = (program.result(op, 0), program.type_of(program.result(op, 0)));
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_after(op);
    let partial = if name == SCATTER {
        let terms = reduced.map(|it| emit.program.operand(it, 0));
        emit.elementwise(reducer.op_name(), &terms)
    } else {
        for it in reduced {
            let (before, after) = (emit.program.operand(it, 0), emit.program.result(it, 0));
            emit.program.replace_all_uses(after, before);
        }
        old
    };
    let like = emit.type_of(partial);
    let new = emit.op_with_results(&name, &[partial], &[ty], &attrs);
    reducer.add_body(&mut emit, new, like);
    if let Some(cause) = cause {
        program.set_cause(new, cause);
    }
    let whole = program.result(new, 0);
    if partial == old {
        program.replace_all_uses_except(old, whole, new);
    } else {
        program.replace_all_uses(old, whole);
        program.erase_op(op);
    }
    for it in reduced {
        program.erase_op(it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// A program that combines all-reduces of its argument at random, and whether each is used once.
    fn text(mut state: u64) -> String {
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let ty = "tensor<4xf32>";
        let mut text = format!("func.func @main(%a: {ty}) -> {ty} {{\n");
        let mut open: Vec<String> = Vec::new();
        for number in 0..40 {
            let name = format!("%v{number}");
            let mut taken = |random: &mut dyn FnMut(usize) -> usize| match open.len() {
                0 => "%a".to_owned(),
                len if random(12) == 0 => open[random(len)].clone(),
                len => open.swap_remove(random(len)),
            };
            match random(5) {
                0 | 1 => {
                    let reducer = if random(8) == 0 { "maximum" } else { "add" };
                    let _ = writeln!(
                        text,
                        "{name} = \"stablehlo.all_reduce\"(%a) ({{\n\
                         ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n\
                         %s = stablehlo.{reducer} %x, %y : tensor<f32>\n\
                         stablehlo.return %s : tensor<f32> }}) {{replica_groups = \
                         dense<[[0, 1]]> : tensor<1x2xi64>}} : ({ty}) -> {ty}"
                    );
                }
                2 => {
                    let of = taken(&mut random);
                    let _ = writeln!(text, "{name} = stablehlo.reshape {of} : ({ty}) -> {ty}");
                }
                _ => {
                    let (one, other) = (taken(&mut random), taken(&mut random));
                    let op = if random(8) == 0 { "maximum" } else { "add" };
                    let _ = writeln!(text, "{name} = stablehlo.{op} {one}, {other} : {ty}");
                }
            }
            open.push(name);
        }
        text + &format!("return %a : {ty}\n}}")
    }

    #[test]
    fn candidates_are_all_that_are_found_op_by_op() {
        let mut num_found = 0;
        for seed in 0..300 {
            let program = crate::mlir::parse(text(seed).into()).unwrap();
            let (mut some, mut all) = (program.clone(), program);
            let reductions = Names::new(&some, &[SUM]).ops(&mut some);
            for op in candidates(&mut some, &reductions) {
                if let Some(reduced) = reassociated(&some, op) {
                    replace(&mut some, op, reduced);
                }
            }
            let ops: Vec<OpId> = all.pre_order(all.module_op()).collect();
            for op in ops {
                if let Some(reduced) = reassociated(&all, op) {
                    replace(&mut all, op, reduced);
                    num_found += 1;
                }
            }
            assert_eq!(crate::mlir::print(&some), crate::mlir::print(&all), "{seed}");
        }
        assert!(num_found > 300, "{num_found}");
    }
}
