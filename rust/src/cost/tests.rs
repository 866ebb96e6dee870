use super::*;
use crate::mlir::parse;
use crate::rules::Registry;

fn cost_of(text: &str) -> ProgramCost {
    program_cost(&mut parse(text.into()).unwrap(), &mut Registry::builtin()).unwrap()
}

fn flops(cost: &ProgramCost) -> u128 {
    cost.ops.iter().map(|row| row.work.flops * row.count).sum()
}

#[test]
fn a_dot_is_two_flops_a_pair() {
    let cost = cost_of(
        r#"sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x4xf32>)
            -> tensor<8x4xf32> {
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
            : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }"#,
    );
    assert_eq!(flops(&cost), 2 * 4 * 4 * 16);
    assert_eq!(cost.memory.argument_bytes, 4 * 16 * 4 + 16 * 4 * 4);
}
