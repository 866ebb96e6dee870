//! Tests of what the printed text does not show: the order of uses, limits, nesting depth.

use crate::context::{Context, Limits};
use crate::error::{Code, Result};
use crate::ir::Program;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use std::fmt::Write;

fn run(program: &mut Program, passes: &str, max_ops: usize) -> Result<()> {
    let mut rules = Registry::default();
    let mut report = |_: crate::context::Progress<'_>| true;
    let limits = Limits { max_ops };
    let mut context = Context::new(&mut rules, limits, &mut report);
    Pipeline::parse(&format!("builtin.module({passes})"), program.shardy())?
        .run(program, &mut context)
}

fn after(text: &str, passes: &str) -> Program {
    let mut program = crate::mlir::parse(text.into()).unwrap();
    run(&mut program, passes, 1_000_000).unwrap();
    program
}

/// The names of the users of the only result of the first op called `name`, newest use first.
fn users(program: &Program, name: &str) -> Vec<String> {
    let mut ops = program.pre_order(program.module_op());
    let op = ops.find(|&op| program.op_name(op) == name).unwrap();
    let uses = program.uses(program.result(op, 0));
    uses.map(|slot| program.op_name(program.user(slot)).to_owned()).collect()
}

#[test]
fn constants_are_replaced_before_their_uses_are() {
    let text = r"
        func.func @main(%a: tensor<f32>) -> tensor<f32> {
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          sdy.sharding_group %c group_id=0 : tensor<f32>
          %0 = stablehlo.negate %c : tensor<f32>
          %1 = stablehlo.add %a, %c : tensor<f32>
          %2 = stablehlo.multiply %0, %1 : tensor<f32>
          %3 = stablehlo.divide %2, %c : tensor<f32>
          return %3 : tensor<f32>
        }";
    let program = after(text, "sdy-constant-or-scalar-splitter");
    // Replacing the op reversed the list; then each use that is not constant was set again.
    let order = ["stablehlo.divide", "stablehlo.add", "sdy.sharding_group", "stablehlo.negate"];
    assert_eq!(users(&program, "sdy.constant"), order);
}

#[test]
fn constants_stay_for_their_last_use() {
    let text = r"
        func.func @main() -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
          %c = stablehlo.constant dense<1.0> : tensor<8xf32>
          %twice = stablehlo.negate %c : tensor<8xf32>
          %once = stablehlo.abs %c : tensor<8xf32>
          return %twice, %once, %twice : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
        }";
    let program = after(text, "sdy-constant-or-scalar-splitter");
    let ops = program.pre_order(program.module_op()).map(|op| program.op_name(op)).skip(2);
    let (c, n) = ("sdy.constant", "stablehlo.negate");
    assert!(ops.eq([c, c, c, n, n, "stablehlo.abs", "func.return"]));
    assert_eq!(program.num_op_ids(), crate::mlir::parse(text.into()).unwrap().num_op_ids() + 3);
    let printed = crate::mlir::print(&program);
    assert!(printed.contains("%once = stablehlo.abs"));
    assert!(printed.contains("%twice = stablehlo.negate %c "));
}

#[test]
fn edges_turn_the_uses_of_their_owner_round() {
    let text = r"
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.optimization_barrier %a : tensor<8xf32>
          %1 = stablehlo.negate %0 : tensor<8xf32>
          %2 = stablehlo.add %1, %0 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }";
    let before = after(text, "");
    assert_eq!(
        users(&before, "stablehlo.optimization_barrier"),
        ["stablehlo.add", "stablehlo.negate"]
    );
    let program = after(text, "sdy-add-data-flow-edges");
    assert_eq!(users(&program, "stablehlo.optimization_barrier"), ["sdy.data_flow_edge"]);
    assert_eq!(users(&program, "sdy.data_flow_edge"), ["stablehlo.negate", "stablehlo.add"]);
}

#[test]
fn deep_call_graphs_need_no_stack() {
    const DEPTH: usize = 20_000;
    let mut text = String::new();
    for level in 0..DEPTH {
        let visibility = if level == 0 { "" } else { "private " };
        let name = if level == 0 { "main".to_owned() } else { format!("f{level}") };
        writeln!(text, "func.func {visibility}@{name}(%a: tensor<8xf32>) -> tensor<8xf32> {{")
            .unwrap();
        let calls = if level == 0 { 2 } else { usize::from(level + 1 < DEPTH) };
        for call in 0..calls {
            let callee = level + 1;
            writeln!(text, "%{call} = call @f{callee}(%a) : (tensor<8xf32>) -> tensor<8xf32>")
                .unwrap();
        }
        let returned = if calls == 0 { "a" } else { "0" };
        writeln!(text, "return %{returned} : tensor<8xf32>\n}}").unwrap();
    }
    let program = after(&text, "sdy-flatten-call-graph");
    assert_eq!(program.functions_in_order().len(), 2 * DEPTH - 1);
}

#[test]
fn what_would_grow_beyond_the_limit_is_refused() {
    let mut text = String::from(
        "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n\
         %c0 = stablehlo.constant dense<1.0> : tensor<8xf32>\n%v0 = stablehlo.abs %a : tensor<8xf32>\n",
    );
    for i in 0..200 {
        let next = i + 1;
        writeln!(text, "%c{next} = stablehlo.negate %c{i} : tensor<8xf32>").unwrap();
        writeln!(text, "%v{next} = stablehlo.add %v{i}, %c{next} : tensor<8xf32>").unwrap();
    }
    text += "return %v200 : tensor<8xf32>\n}";
    let mut program = crate::mlir::parse(text.as_str().into()).unwrap();
    let error = run(&mut program, "sdy-constant-or-scalar-splitter", 10_000).unwrap_err();
    assert_eq!(error.diagnostics[0].code, Code::ProgramTooLarge);
    assert!(program.num_op_ids() <= 10_000 + 2, "{}", program.num_op_ids());
    let grown = after(&text, "sdy-constant-or-scalar-splitter");
    assert!(grown.num_op_ids() > 20_000);
}
