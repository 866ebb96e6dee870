//! Tests of parser and printer together.

mod errors;
mod meaning;
mod printing;
mod repeated;

use super::{parse, print};
use crate::index::{Id, OpId, ValueId};
use crate::ir::{Place, Program, ValueMap};

/// Parses `text`, which is well-formed.
fn parsed(text: &str) -> Program {
    parse(text.into()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The value called `name`.
fn value(program: &Program, name: &str) -> ValueId {
    let named = |id: &ValueId| program.value_name(*id) == name;
    let placeholder = |id: &ValueId| program.printing().value_name(*id) == u32::MAX;
    program.value_ids().filter(|id| !placeholder(id)).find(named).expect("there is such a value")
}

/// The op that defines `name`.
fn op(program: &Program, name: &str) -> OpId {
    program.defining_op(value(program, name)).expect("an op defines it")
}

/// All ops but the module, in program order.
fn ops(program: &Program) -> Vec<OpId> {
    program.pre_order(program.module_op()).skip(1).collect()
}

/// Names of the users of `name`, newest first, with the number of the operand.
fn uses(program: &Program, name: &str) -> Vec<(String, usize)> {
    program
        .uses(value(program, name))
        .map(|slot| {
            let owner = program.user(slot);
            (program.op_name(owner).to_owned(), program.operand_index(slot))
        })
        .collect()
}

/// One op of nearly every syntax.
const EVERY_SYNTAX: &str = r#"!pair = tuple<tensor<2xf32>, tensor<4xi1>>
#elements = dense<[1, 2]> : tensor<2xi32>
#place = loc("model.py":7:3 to :9)
// A comment with "quotes", { and %names.
sdy.mesh @m = <["x"=2, "y"=4]> {note = "m"}
func.func private @callee(tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<2xf32>
func.func public @main(%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}]>} loc("w"),
    %arg1: tensor<2x4xf32>) -> (tensor<2xf32> {jax.result_info = "r"}) attributes {a.b} {
  %c = stablehlo.constant #elements
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, []>]>} dense<0.0> : tensor<f32>
  %1 = stablehlo.constant() <{value = dense<"0x00"> : tensor<4xi1>}> : () -> tensor<4xi1>
  %2 = stablehlo.add %arg0, %arg0 : tensor<2xf32> loc(#place)
  %3 = stablehlo.compare LT, %arg0, %2, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %4 = stablehlo.select %3, %2, %arg0 : tensor<2xi1>, tensor<2xf32>
  %5 = stablehlo.complex %4, %2 : tensor<2xcomplex<f32>>
  %6 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] {d.e = 1 : i32} : (tensor<2xf32>, tensor<2x4xf32>) -> tensor<4xf32>
  %7 = stablehlo.slice %arg1 [0:2, 0:4:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %8 = stablehlo.reduce(%arg1 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  %9:2 = stablehlo.reduce(%arg1 init: %0), (%arg1 init: %0) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<f32> loc("r"), %s: tensor<f32>) {
    %t = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %t, %s : tensor<f32>, tensor<f32>
  } loc(fused[#place, "also"])
  %10:2 = stablehlo.while(%i = %8, %j = %9#1) : tensor<2xf32>, tensor<2xf32> attributes {k.l = [1, {m = "}"}]}
  cond {
    %u = "x.any"(%i) : (tensor<2xf32>) -> tensor<i1>
    stablehlo.return %u : tensor<i1>
  } do {
    %u = func.call @callee(%j) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %u, %i : tensor<2xf32>, tensor<2xf32>
  }
  %11 = stablehlo.custom_call @target(%10#0, %c) {backend_config = "{\"a\": [1, 2}", has_side_effect = true} : (tensor<2xf32>, tensor<2xi32>) -> !pair
  %12 = stablehlo.get_tuple_element %11[0] : (!pair) -> tensor<2xf32>
  %13 = stablehlo.tuple %12, %1 : !pair
  %14:2 = stablehlo.optimization_barrier %12, %1 : tensor<2xf32>, tensor<4xi1>
  %16 = "x.unknown"(%7) <{p = array<i64: 1>}> {q} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %15 = stablehlo.convolution(%16, %16) dim_numbers = [b, f]x[o, i]->[b, f], window = {stride = []} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %17, %18 = chlo.top_k(%12, k = 1) : tensor<2xf32> -> (tensor<1xf32>, tensor<1xi32>)
  %19 = chlo.erf %12 : tensor<2xf32> -> tensor<2xf32>
  %20 = stablehlo.iota dim = 0 : tensor<2xi32>
  %21 = stablehlo.reduce_precision %12, format = e5m10 : tensor<2xf32>
  %22 = sdy.sharding_constraint %21 <@m, [{"y":(1)2}]> : tensor<2xf32>
  sdy.sharding_group %22 group_id=3 : tensor<2xf32>
  %23 = sdy.named_computation<"part">(%22) out_shardings=[<@m, [{?}]>] (%v: tensor<2xf32>) {
    sdy.return %v : tensor<2xf32>
  } {thread = "t"} : (tensor<2xf32>) -> tensor<2xf32>
  %24 = sdy.manual_computation(%23) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>] manual_axes={"x"} (%w: tensor<1xf32>) {
    %z = sdy.propagation_barrier %w allowed_direction=BACKWARD : tensor<1xf32>
    sdy.return %z : tensor<1xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  %25 = sdy.all_gather [{"x"}] %24 out_sharding=<@m, [{}]> : tensor<2xf32>
  %27 = stablehlo.constant dense<1> : tensor<i32>
  %26 = "stablehlo.case"(%27) ({
    stablehlo.return %25 : tensor<2xf32>
  }, {
    %inner = func.call @callee(%25) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %inner : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return %26 : tensor<2xf32>
}
"#;

#[test]
fn text_that_nobody_touched_comes_back() {
    assert_eq!(print(&parsed(EVERY_SYNTAX)), EVERY_SYNTAX);
    let body = without_aliases(EVERY_SYNTAX);
    let module = format!("module @name attributes {{x.y = 1 : i8}} {{\n{body}}} loc(unknown)\n");
    assert_eq!(print(&parsed(&module)), module);
}

/// `text` without alias definitions, which modules cannot hold.
fn without_aliases(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(['!', '#']));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let text = text.replace("#elements", "dense<[1, 2]> : tensor<2xi32>");
    text.replace("!pair", "tuple<tensor<2xf32>, tensor<4xi1>>").replace("#place", "\"f\"")
}

#[test]
fn regions_nest_a_thousand_levels_deep() {
    let depth = 1000;
    let heads: Vec<String> = (0..depth).map(|i| format!("%{i} = \"x.y\"() ({{\n")).collect();
    let text = format!("module {{\n{}{}}}\n", heads.concat(), "}) : () -> i32\n".repeat(depth));
    let mut program = parsed(&text);
    assert_eq!(ops(&program).len(), depth);
    assert_eq!(print(&program), text);
    let outer = ops(&program)[0];
    let clone = program.clone_op(outer, &mut ValueMap::default(), false);
    program.insert_op(clone, Place::After(outer));
    assert_eq!(ops(&parsed(&print(&program))).len(), 2 * depth);
}

#[test]
fn an_empty_module_has_a_block() {
    let generic = "\"builtin.module\"() ({\n^bb0:\n}) : () -> ()\n";
    for text in ["", "module {\n}\n", generic, "// nothing"] {
        let program = parsed(text);
        assert!(ops(&program).is_empty());
        assert_eq!(print(&program), text);
    }
    assert_eq!(parsed("").num_op_ids(), OpId::from_index(1).index());
}
