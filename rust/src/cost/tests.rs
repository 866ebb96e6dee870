use super::*;
use crate::axis::AxisRef;
use crate::compilers::compilation::ChipFacts;
use crate::context::RuleSource;
use crate::index::Id;
use crate::ir::Program;
use crate::mlir::parse;
use crate::rules::Registry;
use std::fmt::Write;

/// Kernels of no compiler are followed.
const CHIP: Chip = (
    Compiler::None,
    ChipFacts {
        fast_bytes: 0,
        fast_results: false,
        overlapped_bytes: None,
        flops_per_second: 1,
        bytes_per_second: 1,
        link_bytes_per_second: 1,
        combined_bytes: None,
        lanes: 128,
    },
);

fn program(text: &str) -> Program {
    parse(text.into()).unwrap()
}

fn signed(text: &str) -> Program {
    let mut program = program(text);
    Registry::builtin().sign(&mut program);
    program
}

fn local(program: &Program) -> Local<'_> {
    Local { program, source: program, originals: None }
}

fn cost_of(text: &str) -> ProgramCost {
    local_cost(local(&signed(text)), &Estimates::default(), CHIP)
}

fn flops(cost: &ProgramCost) -> u128 {
    cost.ops.iter().map(|row| row.work.flops * row.count).sum()
}

#[test]
fn a_dot_is_two_flops_a_pair() {
    let text = "func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x4xf32>) -> tensor<4x4xf32> {
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
          return %0 : tensor<4x4xf32>
        }";
    let cost = cost_of(text);
    assert_eq!(flops(&cost), 2 * 4 * 4 * 16);
    assert_eq!(cost.memory.argument_bytes, 4 * 16 * 4 + 16 * 4 * 4);
    assert_eq!(cost.memory.output_bytes, 4 * 4 * 4);
    let program = signed(text);
    let peak =
        local_peak(local(&program), &cost, (Compiler::None, ChipFacts::default()), Space::Device);
    assert_eq!(peak.bytes, 4 * 16 * 4 + 16 * 4 * 4 + 4 * 4 * 4);
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
    let program = signed(&doubling(6));
    for limit in [0, 10, 100, usize::MAX] {
        let inlined = Inlined::with_limit(&program, limit);
        let cost = inlined_cost(local(&program), &inlined, &Estimates::default(), CHIP);
        assert_eq!(flops(&cost), 8 << 6, "limit {limit}");
        // The argument, and at least one value besides.
        let peak =
            inlined_peak(&inlined, &cost, (Compiler::None, ChipFacts::default()), Space::Device);
        assert!(peak.bytes >= 64, "limit {limit}");
        // What is reported is of the program itself.
        assert!(cost.ops.iter().all(|row| row.op.index() < program.num_op_ids()));
        assert!(peak.live.iter().all(|live| live.value.index() < program.num_value_ids()));
    }
    let inlined = local_cost(local(&program), &Estimates::default(), CHIP);
    assert_eq!(
        local_peak(
            local(&program),
            &inlined,
            (Compiler::None, ChipFacts::default()),
            Space::Device
        )
        .bytes,
        64
    );
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

fn axes(mesh: &str, groups: &str, columns: usize) -> Vec<String> {
    let text = format!(
        "sdy.mesh @mesh = {mesh}
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = \"stablehlo.all_to_all\"(%a) {{split_dimension = 0 : i64, concat_dimension = 0 : i64,
              split_count = {columns} : i64, replica_groups = dense<{groups}>
              : tensor<{}x{columns}xi64>}} : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}",
        8 / columns
    );
    let program = signed(&text);
    let [row] = &local_cost(local(&program), &Estimates::default(), CHIP).collectives[..] else {
        panic!("one collective")
    };
    let mesh = program.mesh(row.mesh);
    let name = |axis: &AxisRef| match axis.sub {
        Some(sub) => format!("{}:({}){}", mesh.axis_name(axis.axis), sub.pre_size, sub.size),
        None => mesh.axis_name(axis.axis).to_owned(),
    };
    row.axes.iter().flatten().map(name).collect()
}

#[test]
fn groups_are_along_axes_and_parts_of_axes() {
    let mesh = r#"<["x"=2, "y"=4]>"#;
    assert_eq!(axes(mesh, "[[0, 4], [1, 5], [2, 6], [3, 7]]", 2), ["x"]);
    assert_eq!(axes(mesh, "[[0, 1, 2, 3], [4, 5, 6, 7]]", 4), ["y"]);
    assert_eq!(axes(mesh, "[[0, 2], [1, 3], [4, 6], [5, 7]]", 2), ["y:(1)2"]);
    assert_eq!(axes(mesh, "[[0, 4, 1, 5], [2, 6, 3, 7]]", 4), ["x", "y:(2)2"]);
    assert_eq!(axes(mesh, "[[0, 1, 2, 3, 4, 5, 6, 7]]", 8), ["x", "y"]);
    assert_eq!(axes(r#"<["x"=8]>"#, "[[0, 4, 2, 6], [1, 5, 3, 7]]", 4), ["x:(1)4"]);
    // One device of each group is elsewhere, or groups differ.
    assert!(axes(mesh, "[[0, 5], [1, 4], [2, 7], [3, 6]]", 2).is_empty());
    assert!(axes(mesh, "[[0, 4], [1, 5], [2, 3], [6, 7]]", 2).is_empty());
    assert!(axes(mesh, "[[1, 2], [3, 4], [5, 6], [7, 0]]", 2).is_empty());
}

#[test]
fn groups_of_permuted_devices_are_along_axes() {
    let mesh = r#"<["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>"#;
    assert_eq!(axes(mesh, "[[7, 3], [6, 2], [5, 1], [4, 0]]", 2), ["x"]);
    let mesh = r#"<["x"=2, "y"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>"#;
    assert_eq!(axes(mesh, "[[0, 1], [2, 3], [4, 5], [6, 7]]", 2), ["x"]);
    assert_eq!(axes(mesh, "[[0, 2, 4, 6], [1, 3, 5, 7]]", 4), ["y"]);
    assert_eq!(axes(mesh, "[[0, 1, 2, 3], [4, 5, 6, 7]]", 4), ["x", "y:(2)2"]);
    assert!(axes(mesh, "[[0, 3], [1, 2], [4, 7], [5, 6]]", 2).is_empty());
}

#[test]
fn tasks_without_work_run_in_program_order() {
    let ty = "tensor<8xf32>";
    let mut text = format!("func.func @main(%a: {ty}) -> {ty} {{\n");
    for at in 0..3 {
        writeln!(
            text,
            "%c{at} = \"stablehlo.all_reduce\"(%a) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
             ^bb0(%x: tensor<f32>, %y: tensor<f32>):
               %s = stablehlo.add %x, %y : tensor<f32>
               stablehlo.return %s : tensor<f32>
             }}) : ({ty}) -> {ty}"
        )
        .unwrap();
    }
    writeln!(
        text,
        "%f1:2 = stablehlo.optimization_barrier %c1, %c0 : {ty}, {ty}
         %f2:2 = stablehlo.optimization_barrier %c2, %c0 : {ty}, {ty}
         %sum = stablehlo.add %f1#0, %f2#0 : {ty}
         return %sum : {ty}
       }}"
    )
    .unwrap();
    let cost = cost_of(&text);
    let computations: Vec<_> =
        cost.ops.iter().map(|_| times::Computation { seconds: 1.0, is_product: false }).collect();
    let transfer = |stream| times::Transfer {
        seconds: 1.0,
        stream,
        chunks: 1.0,
        slows: 0.0,
        in_products: false,
    };
    let transfers = [transfer(1), transfer(2), transfer(3)];
    let times = times::Times {
        computations: &computations,
        transfers: &transfers,
        num_collectives: 3,
        num_streams: 4,
        pipelines_copies: false,
        contention: 0.0,
    };
    // All three end at once. The last one to run lets both barriers start, of which the second is the last that the sum waits for.
    let found = timeline::timeline(&cost.flow, &times);
    assert_eq!((found.seconds, &*found.exposed), (2.0, &[0.0, 0.0, 1.0][..]));
}

#[test]
fn reductions_of_one_signature_have_the_work_of_their_own_regions() {
    let reduce = |result: &str, body: &str| {
        format!(
            "{result} = \"stablehlo.reduce\"(%a, %z) ({{\n\
             ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n{body}\n\
             stablehlo.return %s : tensor<f32> }}) {{dimensions = array<i64: 1>}} \
             : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
        )
    };
    let ty = "tensor<f32>";
    let add = format!("%s = stablehlo.add %x, %y : {ty}");
    let tanh = format!("%s = stablehlo.tanh %y : {ty}");
    let both = format!("%t = stablehlo.tanh %y : {ty}\n%s = stablehlo.add %x, %t : {ty}");
    let work = |bodies: &[&String]| {
        let mut text = String::from("func.func @main(%a: tensor<4x8xf32>, %z: tensor<f32>) {\n");
        for (number, body) in bodies.iter().enumerate() {
            text += &reduce(&format!("%r{number}"), body);
        }
        let cost = cost_of(&(text + "return\n}"));
        let each = cost.ops.iter().map(|row| row.work.times(row.count));
        let sum = each.fold(Work::default(), Work::plus);
        (sum.flops, sum.transcendentals)
    };
    let negate = format!("%s = stablehlo.negate %y : {ty}");
    let bodies = [&add, &tanh, &both, &negate];
    let alone = bodies.map(|body| work(&[body]));
    assert!(alone[0] != alone[1] && alone[1] != alone[2] && alone[1] != alone[3]);
    let (flops, transcendentals) =
        alone.iter().fold((0, 0), |sum, work| (sum.0 + work.0, sum.1 + work.1));
    assert_eq!(work(&bodies), (flops, transcendentals));
}
