//! Programs that make no sense, each with what is said about it and where.

use super::verify;
use crate::mlir;

/// What is said about `text`, and the text that it is said of.
fn found(text: &str) -> Vec<(String, String)> {
    let shown = |span: Option<crate::error::Span>| {
        span.map_or(String::new(), |span| text[span.start as usize..span.end as usize].to_owned())
    };
    let diagnostics = match mlir::parse(text.into()) {
        Ok(program) => verify(&program),
        Err(error) => error.diagnostics,
    };
    diagnostics.into_iter().map(|d| (d.message, shown(d.span))).collect()
}

fn check(body: &str, expected: &[(&str, &str)]) {
    let meshes = "sdy.mesh @m = <[\"a\"=2, \"b\"=4]>\nsdy.mesh @n = <[\"c\"=2]>\nsdy.mesh @d = <[], device_ids=[1]>\n";
    let text = format!("{meshes}{body}");
    let found = found(&text);
    let found: Vec<_> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn shardings_fit_their_values() {
    check(
        r#"func.func @f(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, %t: !stablehlo.token {sdy.sharding = #sdy.sharding<@m, []>})
            -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, []>}) {
          %0 = stablehlo.add %x, %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}]>]>} : tensor<8xf32>
          %1 = stablehlo.custom_call @g(%x) {sdy.sharding = #sdy.sharding_per_value<[<@d, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
          %2 = sdy.sharding_constraint %0 <@m, [{}, {"b"}]> : tensor<8xf32>
          return %0, %1 : tensor<8xf32>, tensor<8xf32>
        }"#,
        &[
            ("the sharding has 2 dims, and the tensor has 1", r#"#sdy.sharding<@m, [{"a"}, {}]>"#),
            ("the sharding has 0 dims, and the tensor has 1", "#sdy.sharding<@m, []>"),
            (
                "the sharding has 2 dims, and the tensor has 1",
                "#sdy.sharding_per_value<[<@m, [{}, {}]>]>",
            ),
            ("the sharding has 2 dims, and the tensor has 1", r#"<@m, [{}, {"b"}]>"#),
        ],
    );
}

#[test]
fn rules_fit_their_ops() {
    check(
        r"func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.abs %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=0}>} : tensor<8xf32>
          %1 = stablehlo.abs %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
          return %1 : tensor<8xf32>
        }",
        &[
            (
                "stablehlo.abs: dim 0 of operand 0 has size 8, and its factors i have 0",
                "#sdy.op_sharding_rule<([i])->([i]) {i=0}>",
            ),
            (
                "stablehlo.abs: dim 0 of result 0 has size 8, and its factors i have 0",
                "#sdy.op_sharding_rule<([i])->([i]) {i=0}>",
            ),
        ],
    );
}

fn manual(attributes: &str, inner: &str, expected: &[(&str, &str)]) {
    check(
        &format!(
            r#"func.func @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
          %0 = sdy.manual_computation(%x) {attributes} (%y: {inner}) {{
            %1 = stablehlo.abs %y {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"b"}}, {{}}]>]>}} : {inner}
            sdy.return %1 : {inner}
          }} : (tensor<8x8xf32>) -> tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"#
        ),
        expected,
    );
}

#[test]
fn manual_computations() {
    let both = r#"in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>]"#;
    manual(&format!(r#"{both} manual_axes={{"a"}}"#), "tensor<4x8xf32>", &[]);
    manual(
        &format!(r#"{both} manual_axes={{"a"}}"#),
        "tensor<8x8xf32>",
        &[
            (
                "sdy.manual_computation: operand 0: inside it is tensor<8x8xf32>, and without the \
                 manual axes it is tensor<4x8xf32>",
                r#"[<@m, [{"a"}, {}]>]"#,
            ),
            (
                "sdy.manual_computation: result 0: inside it is tensor<8x8xf32>, and without the \
                 manual axes it is tensor<4x8xf32>",
                r#"[<@m, [{"a"}, {}]>]"#,
            ),
        ],
    );
    manual(
        &format!(r#"{both} manual_axes={{"q"}}"#),
        "tensor<8x8xf32>",
        &[("manual axis \"q\" is not in the mesh", r#"{"q"}"#)],
    );
    manual(
        &format!(r#"{both} manual_axes={{"a", "b"}}"#),
        "tensor<4x8xf32>",
        &[(
            "stablehlo.abs: axis \"b\" is manual around it",
            r#"#sdy.sharding_per_value<[<@m, [{"b"}, {}]>]>"#,
        )],
    );
    let mixed = r#"in_shardings=[<@m, [{"b", "a"}, {}]>] out_shardings=[<@n, [{}, {}]>]"#;
    manual(
        &format!(r#"{mixed} manual_axes={{"a"}}"#),
        "tensor<8x8xf32>",
        &[
            (
                "sdy.manual_computation: operand 0: manual axes stand before free ones, but in dim \
                 0 \"a\" stands after \"b\"",
                r#"[<@m, [{"b", "a"}, {}]>]"#,
            ),
            (
                "sdy.manual_computation: its in_shardings and out_shardings are over different \
                 meshes",
                r#"{"a"}"#,
            ),
        ],
    );
}

fn one_op(sharding: &str, op: &str, expected: &[(&str, &str)]) {
    check(
        &format!(
            "func.func @f(%x: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}) -> \
             tensor<8x8xf32> {{\n  %0 = {op} : tensor<8x8xf32>\n  return %0 : tensor<8x8xf32>\n}}"
        ),
        expected,
    );
}

#[test]
fn collectives() {
    one_op(r#"[{"a"}, {}]"#, r#"sdy.all_gather [{"a"}, {}] %x out_sharding=<@m, [{}, {}]>"#, &[]);
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_gather [{}, {"a"}] %x out_sharding=<@m, [{}, {}]>"#,
        &[("sdy.all_gather: dim 0 of its sharding should be {\"a\"}, not {}", "<@m, [{}, {}]>")],
    );
    one_op(
        r#"[{"a"}, {"b"}]"#,
        r#"sdy.all_gather [{}, {"b":(1)2}] %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "sdy.all_gather: dim 1 of its operand's sharding does not end with \"b\":(1)2",
            r#"<@m, [{"a"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {"b":(1)2}]"#,
        r#"sdy.all_slice [{}, {"b":(2)2}] %x out_sharding=<@m, [{"a"}, {"b"}]>"#,
        &[],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_to_all [{"a"}: 0->1] %x out_sharding=<@m, [{}, {"a"}]>"#,
        &[],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_to_all [{"a"}: 0->2] %x out_sharding=<@m, [{}, {"a"}]>"#,
        &[("sdy.all_to_all: there is no dim 2: its tensor has 2", r#"<@m, [{}, {"a"}]>"#)],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.collective_permute %x out_sharding=<@m, [{"b"}, {}]>"#,
        &[(
            "sdy.collective_permute: dim 0 has 4 shards, and its operand 2",
            r#"<@m, [{"b"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_reduce {"a"} %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "sdy.all_reduce: its operand is sharded over, or replicated along, {\"a\"}",
            r#"<@m, [{"a"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.reduce_scatter [{}, {"b"}] %x out_sharding=<@m, [{"a"}, {"b"}]>"#,
        &[],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.sharded_to_unreduced [{"a"}, {}] %x out_sharding=<@m, [{}, {}], unreduced={"a"}>"#,
        &[],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.replicated_to_unreduced {"b"} %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "sdy.replicated_to_unreduced: its sharding should be unreduced over {\"b\"}: its \
             operand's axes and its own",
            r#"<@m, [{"a"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_reduce {"c"} %x out_sharding=<@n, [{}, {}]>"#,
        &[(
            "sdy.all_reduce: the mesh of its result is not the mesh of its operand",
            "<@n, [{}, {}]>",
        )],
    );
}

#[test]
fn edges_and_barriers() {
    one_op(
        "[{}, {}]",
        "sdy.propagation_barrier %x allowed_direction=BOTH",
        &[(
            "sdy.propagation_barrier: a barrier that lets BOTH directions through does nothing",
            "sdy.propagation_barrier",
        )],
    );
    check(
        r"func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
          %0 = sdy.data_flow_edge %x : tensor<8xf32>
          return %0, %x : tensor<8xf32>, tensor<8xf32>
        }",
        &[(
            "sdy.data_flow_edge: the value that an edge is for has no other use",
            "sdy.data_flow_edge",
        )],
    );
}

#[test]
fn recorded_edges_fit_their_ops() {
    let edges = |inside: &str| format!("#sdy.propagation_edges<[{inside}]>");
    let step = |flow: &str| edges(&format!("{{step-1 = [{{{flow}}}]}}"));
    let of = |attr: &str| {
        format!(
            r#"func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.add %x, %x {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"a"}}]>]>, {attr}}} : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"#
        )
    };
    let one = |text: String, message: &str| {
        let message = format!("stablehlo.add: {message}");
        check(&of(&format!("sdy.propagation_edges = {text}")), &[(&message, &text)]);
    };
    one(
        step(r#""a" = operand-2 -> [result-0]"#),
        "expected a value ref to have an operand index in range [0, 2), got: 2",
    );
    one(
        step(r#""a":(1)2 = result-0 -> [result-1]"#),
        "expected a value ref to have a result index in range [0, 1), got: 1",
    );
    one(
        step(r#""z" = result-0 -> [operand-0]"#),
        "expected axis ref to be in one of the meshes, got: \"z\"",
    );
    one(
        step(r#""a" = operand-1 -> [operand-0]"#),
        "expected propagation edges attr to reference a sharding.",
    );
    one(
        "64".to_owned(),
        "should have a propagation edges attribute of type PropagationEdgesAttr for attr named \
         'sdy.propagation_edges'",
    );
    let same = step(r#""a" = operand-0 -> [operand-0]"#);
    let message = "propagation edges have a source that is the same as a target";
    check(&of(&format!("sdy.propagation_edges = {same}")), &[(message, &same)]);
    let list = format!("[{same}]");
    check(&of(&format!("sdy.result_propagation_edges = {list}")), &[(message, &list)]);
    check(
        &of("sdy.block_arg_propagation_edges = [64]"),
        &[(
            "stablehlo.add: should have a propagation edges attribute of type \
             ArrayAttr<PropagationEdgesAttr> for attr named 'sdy.result_propagation_edges' or \
             'sdy.block_arg_propagation_edges'",
            "[64]",
        )],
    );
    let sound = step(r#""a" = result-0 -> [operand-0, operand-1]"#);
    check(&of(&format!("sdy.propagation_edges = {sound}")), &[]);
}
