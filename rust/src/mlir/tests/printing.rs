//! Edits that are spliced into the text.

use super::super::{parse, print, print_in_pieces};
use super::{op, ops, parsed, value, EVERY_SYNTAX};
use crate::index::ValueId;
use crate::ir::{NewOp, OpKind, Place, Program, ValueMap};
use crate::sharding::TensorSharding;
use std::fmt::Write;

/// The structure of the program, without its text.
fn outline(program: &Program) -> Vec<(String, Vec<usize>, usize)> {
    let all = ops(program);
    let order: std::collections::HashMap<ValueId, usize> = all
        .iter()
        .flat_map(|&op| {
            let args = program
                .op_regions(op)
                .flat_map(|region| program.region_blocks(region).collect::<Vec<_>>())
                .flat_map(|block| program.block_args(block).collect::<Vec<_>>());
            args.chain(program.op_results(op)).collect::<Vec<_>>()
        })
        .enumerate()
        .map(|(place, value)| (value, place))
        .collect();
    let operands = |op| program.operands(op).map(|value| order[&value]).collect();
    all.iter()
        .map(|&op| (program.op_name(op).to_owned(), operands(op), program.num_results(op)))
        .collect()
}

#[test]
fn every_op_can_get_an_attribute() {
    let mut program = parsed(EVERY_SYNTAX);
    let before = outline(&program);
    for op in ops(&program) {
        program.set_attr(op, "x.touched", "\"}\"");
    }
    let text = print(&program);
    let again = parsed(&text);
    assert_eq!(outline(&again), before);
    for op in ops(&again) {
        let is_implied = again.printing().op(op).span.is_empty();
        assert!(
            is_implied || again.attr(op, "x.touched") == Some("\"}\""),
            "{}",
            again.op_name(op)
        );
    }
}

#[test]
fn every_value_can_lose_its_name() {
    let mut program = parsed(EVERY_SYNTAX);
    let before = outline(&program);
    for value in program.value_ids().collect::<Vec<_>>() {
        program.forget_name(value);
    }
    let text = print(&program);
    assert_eq!(outline(&parsed(&text)), before);
    assert!(!text.contains("%arg"));
    assert_eq!(print(&program), text);
}

#[test]
fn a_sharding_goes_into_the_dictionary_and_nothing_else_changes() {
    let text = r#"module {
  sdy.mesh @m = <["x"=2]>
  // Kept.
  func.func @f(%arg0:  tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add   %arg0, %arg0 : tensor<2xf32> loc("a") // as it is
    %1 = "stablehlo.negate"(%0) {b = 1} : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
"#;
    let mut program = parsed(text);
    let mesh = program.meshes().ids().next().unwrap();
    let open = program.intern_sharding(TensorSharding::fully_replicated(mesh, 1, false));
    for name in ["%arg0", "%0", "%1"] {
        let value = value(&program, name);
        program.set_sharding(value, open);
    }
    let per_value = "sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}]>]>";
    let expected = text
        .replace(
            "tensor<2xf32>) -> tensor<2xf32> {",
            "tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{?}]>}) -> tensor<2xf32> {",
        )
        .replace("%arg0, %arg0 :", &format!("%arg0, %arg0 {{{per_value}}} :"))
        .replace("{b = 1}", &format!("{{b = 1, {per_value}}}"));
    assert_eq!(print(&program), expected);
}

#[test]
fn results_of_functions_get_parentheses_with_their_attributes() {
    let text = "sdy.mesh @m = <[\"x\"=2]>\nfunc.func private @f() -> tensor<2xf32>\n";
    let mut program = parsed(text);
    let mesh = program.meshes().ids().next().unwrap();
    let closed = program.intern_sharding(TensorSharding::fully_replicated(mesh, 1, true));
    let function = program.func_ids().next().unwrap();
    program.set_func_result_sharding(function, 0, closed);
    let dict = "{sdy.sharding = #sdy.sharding<@m, [{}]>}";
    assert_eq!(
        print(&program),
        text.replace("-> tensor<2xf32>", &format!("-> (tensor<2xf32> {dict})"))
    );
}

#[test]
fn moved_erased_and_new_ops_are_printed_where_they_are() {
    let text = r#"func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.abs %a : tensor<2xf32>
  %1 = stablehlo.negate %a : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
sdy.mesh @m = <["x"=2]>
"#;
    let mut program = parsed(text);
    let (abs, negate) = (op(&program, "%0"), op(&program, "%1"));
    program.move_op(negate, Place::Before(abs));
    let (zero, one) = (value(&program, "%0"), value(&program, "%1"));
    program.replace_all_uses(zero, one);
    program.erase_op(abs);
    let ty = program.type_of(one);
    let reshard = program.create_op(NewOp::new("sdy.reshard", &[one], &[ty]));
    let mesh = program.meshes().ids().next().unwrap();
    let open = program.intern_sharding(TensorSharding::fully_replicated(mesh, 1, false));
    let result = program.result(reshard, 0);
    program.set_sharding(result, open);
    program.insert_op(reshard, Place::After(negate));
    program.replace_all_uses_except(one, result, reshard);
    let name = program.value_name(result);
    let expected = format!(
        r#"func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {{
  %1 = stablehlo.negate %a : tensor<2xf32>
  {name} = sdy.reshard %1 <@m, [{{?}}]> : tensor<2xf32>
  %2 = stablehlo.add {name}, {name} : tensor<2xf32>
  return %2 : tensor<2xf32>
}}
sdy.mesh @m = <["x"=2]>
"#
    );
    assert_eq!(print(&program), expected);
}

#[test]
fn clones_beside_their_original_get_other_names() {
    let text = r#"func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "x.region"() ({
    %1 = stablehlo.abs %a : tensor<2xf32>
    "x.yield"(%1) : (tensor<2xf32>) -> ()
  }) : () -> tensor<2xf32>
  %2 = stablehlo.abs %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"#;
    let mut program = parsed(text);
    let outer = op(&program, "%2");
    let inner = op(&program, "%1");
    // The clone of the outer op is before it, so that the inner op is in its scope.
    let clone = program.clone_op(outer, &mut ValueMap::default(), true);
    program.insert_op(clone, Place::Before(outer));
    program.move_op(outer, Place::Before(inner));
    let again = parse(print(&program).as_str().into()).expect("names differ");
    assert_eq!(ops(&again).len(), ops(&program).len());
}

#[test]
fn short_names_get_their_dialect_outside_of_functions() {
    let text = r#"func.func private @g()
func.func @f() {
  call @g() : () -> ()
  %0 = sdy.named_computation<"n">() () {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    sdy.return %1 : tensor<i32>
  } : () -> tensor<i32>
  return
}
"#;
    let mut program = parsed(text);
    let call = ops(&program).into_iter().find(|&op| program.kind(op) == OpKind::Call).unwrap();
    let constant = op(&program, "%1");
    program.move_op(call, Place::Before(constant));
    assert!(print(&program).contains("func.call @g()"));
}

/// Texts that are passed on in pieces, some in the middle of an op, some in one copy.
#[test]
fn pieces_are_the_whole() {
    let pieces = |program: &Program| {
        let mut pieces = Vec::new();
        let last = print_in_pieces(program, &mut |piece| pieces.push(piece.to_owned()));
        pieces.push(last);
        pieces
    };
    let mut text = String::from("func.func @main(%arg0: tensor<8xf32>) {\n");
    for op in 0..40_000 {
        let dict = "{s = \"\u{e9}\u{2211}\"}";
        let _ = writeln!(text, "  %{op} = stablehlo.negate %arg0 {dict} : tensor<8xf32>");
    }
    text.push_str("  return\n}\n");
    let mut program = parsed(&text);
    let untouched = pieces(&program);
    assert!(untouched.len() > 2);
    assert_eq!(untouched.concat(), text);
    for op in ops(&program).into_iter().skip(2).step_by(3) {
        program.set_attr(op, "x.touched", "1");
    }
    assert_eq!(pieces(&program).concat(), print(&program));
    let body = program.func_body(program.functions_in_order()[0]);
    let arg = program.block_args(body).next().unwrap();
    let ty = program.type_of(arg);
    let mut last = program.block_ops(body).next().unwrap();
    for _ in 0..40_000 {
        let new = program.create_op(NewOp::new("test.made", &[arg], &[ty]));
        program.insert_op(new, Place::After(last));
        last = new;
    }
    assert_eq!(pieces(&program).concat(), print(&program));
}
