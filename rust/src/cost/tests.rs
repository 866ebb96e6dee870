use super::*;
use crate::index::Id;
use crate::mlir::parse;
use crate::rules::Registry;
use std::fmt::Write;

fn program(text: &str) -> Program {
    parse(text.into()).unwrap()
}

fn cost_of(text: &str) -> ProgramCost {
    program_cost(&mut program(text), &mut Registry::builtin()).unwrap()
}

fn flops(cost: &ProgramCost) -> u128 {
    cost.ops.iter().map(|row| row.work.flops * row.count).sum()
}

#[test]
fn a_dot_is_two_flops_a_pair_on_a_device() {
    let cost = cost_of(
        r#"sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                        %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
            : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }"#,
    );
    assert_eq!(flops(&cost), 2 * 4 * 4 * 16);
    assert_eq!(cost.memory.argument_bytes, 4 * 16 * 4 + 16 * 4 * 4);
    assert_eq!(cost.memory.output_bytes, 4 * 4 * 4);
    assert_eq!(cost.memory.peak_bytes, 4 * 16 * 4 + 16 * 4 * 4 + 4 * 4 * 4);
}

/// `@f0` negates; each next function calls the one before twice.
fn doubling(depth: usize) -> String {
    let ty = "tensor<8xf32>";
    let mut text = format!(
        "func.func private @f0(%a: {ty}) -> {ty} {{ %0 = stablehlo.negate %a : {ty} return %0 : {ty} }}\n"
    );
    for level in 1..=depth {
        let (name, callee) =
            (if level == depth { "@main".into() } else { format!("private @f{level}") }, level - 1);
        writeln!(
            text,
            "func.func {name}(%a: {ty}) -> {ty} {{
               %0 = func.call @f{callee}(%a) : ({ty}) -> {ty}
               %1 = func.call @f{callee}(%0) : ({ty}) -> {ty}
               return %1 : {ty}
             }}"
        )
        .unwrap();
    }
    text
}

#[test]
fn calls_cost_the_same_inlined_or_not() {
    let program = program(&doubling(6));
    for limit in [0, 10, 100, usize::MAX] {
        let cost = original_cost(&Inlined::with_limit(&program, limit), &|_| false);
        assert_eq!(flops(&cost), 8 << 6, "limit {limit}");
        // The argument, and at least one value besides.
        assert!(cost.memory.peak_bytes >= 64, "limit {limit}");
        // What is reported is of the program itself.
        assert!(cost.ops.iter().all(|row| row.op.index() < program.num_op_ids()));
        assert!(cost.memory.live.iter().all(|live| live.value.index() < program.num_value_ids()));
    }
    let inlined = original_cost(&Inlined::new(&program), &|_| false);
    assert_eq!(inlined.memory.peak_bytes, 64);
}

#[test]
fn a_call_graph_that_unfolds_exponentially_is_counted_and_not_unfolded() {
    let cost = cost_of(&doubling(100));
    assert_eq!(flops(&cost), 8 << 100);
}

#[test]
fn ops_that_lack_operands_and_results_do_no_harm() {
    let cost = cost_of(
        r#"func.func @main() {
          "stablehlo.all_gather"() : () -> ()
          "my.op"() : () -> ()
          "stablehlo.collective_permute"() : () -> ()
          return
        }"#,
    );
    assert_eq!((cost.collectives.len(), cost.uncounted.len()), (2, 1));
}
