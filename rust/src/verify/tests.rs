//! Tests of invalid programs: the message of each error and its place in the text.

use super::{definition_of, own_check, verify, OpKind, Version};
use crate::mlir;

/// The messages of the errors in `text`, each with the part of the text at its span.
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
            (
                "'func.func' op arg 0 - sharding doesn't match tensor rank: 2 != 1",
                r#"#sdy.sharding<@m, [{"a"}, {}]>"#,
            ),
            // The sharding is on another line than the function's name.
            ("'func.func' op result 1 - sharding doesn't match tensor rank: 0 != 1", "func.func"),
            (
                "'stablehlo.add' op result - sharding doesn't match tensor rank: 2 != 1",
                "#sdy.sharding_per_value<[<@m, [{}, {}]>]>",
            ),
            (
                "'sdy.sharding_constraint' op sharding doesn't match tensor rank: 2 != 1",
                r#"<@m, [{}, {"b"}]>"#,
            ),
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
                "'stablehlo.abs' op dim 0 of operand 0 has size 8, and its factors i have 0",
                "#sdy.op_sharding_rule<([i])->([i]) {i=0}>",
            ),
            (
                "'stablehlo.abs' op dim 0 of result 0 has size 8, and its factors i have 0",
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
                "'sdy.manual_computation' op operand shape, corresponding sharding, and region operand \
                 shape at index 0 must match. Expected local shape 'tensor<4x8xf32>', actual local \
                 shape 'tensor<8x8xf32>'",
                r#"[<@m, [{"a"}, {}]>]"#,
            ),
            (
                "'sdy.manual_computation' op result shape, corresponding sharding, and region result \
                 shape at index 0 must match. Expected local shape 'tensor<4x8xf32>', actual local \
                 shape 'tensor<8x8xf32>'",
                r#"[<@m, [{"a"}, {}]>]"#,
            ),
        ],
    );
    manual(
        &format!(r#"{both} manual_axes={{"q"}}"#),
        "tensor<8x8xf32>",
        &[("'sdy.manual_computation' op unknown manual axis: \"q\"", r#"{"q"}"#)],
    );
    manual(
        &format!(r#"{both} manual_axes={{"a", "b"}}"#),
        "tensor<4x8xf32>",
        &[(
            "'stablehlo.abs' op result - operates on axis \"b\" which is already bound by a parent \
             sdy.manual_computation op",
            r#"#sdy.sharding_per_value<[<@m, [{"b"}, {}]>]>"#,
        )],
    );
    let mixed = r#"in_shardings=[<@m, [{"b", "a"}, {}]>] out_shardings=[<@n, [{}, {}]>]"#;
    manual(
        &format!(r#"{mixed} manual_axes={{"a"}}"#),
        "tensor<8x8xf32>",
        &[
            (
                "'sdy.manual_computation' op operand sharding at index 0 must have all manual axes come \
                 before free axes in its dimension sharding at index 0. Saw manual axis \"a\" after \
                 free axis \"b\"",
                r#"[<@m, [{"b", "a"}, {}]>]"#,
            ),
            (
                "'sdy.manual_computation' op all in and out shardings must be bound to the same mesh \
                 or an empty mesh.",
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
        &[("'sdy.all_gather' op result sharding doesn't match expected sharding [\"a\"] on dimension 0", "<@m, [{}, {}]>")],
    );
    one_op(
        r#"[{"a"}, {"b"}]"#,
        r#"sdy.all_gather [{}, {"b":(1)2}] %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "'sdy.all_gather' op can't apply gathering axis \"b\":(1)2 to operand sharding on dimension 1",
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
        &[(
            "'sdy.all_to_all' op target dimension 2 is out of range [0, 2)",
            r#"<@m, [{}, {"a"}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.collective_permute %x out_sharding=<@m, [{"b"}, {}]>"#,
        &[(
            "'sdy.collective_permute' op sharded size of result doesn't match operand on dimension 0: 4 != 2",
            r#"<@m, [{"b"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_reduce {"a"} %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "'sdy.all_reduce' op reduction axis \"a\" overlaps with operand dimension sharding or \
             replicated axes",
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
            "'sdy.replicated_to_unreduced' op out_unreduced_axes should be in_unreduced_axes + r2u_axes",
            r#"<@m, [{"a"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}]"#,
        r#"sdy.all_reduce {"c"} %x out_sharding=<@n, [{}, {}]>"#,
        &[("'sdy.all_reduce' op result mesh does not match operand mesh", "<@n, [{}, {}]>")],
    );
    one_op(
        r#"[{"a"}, {}], unreduced=max{"b"}"#,
        r#"sdy.all_reduce {"b"} %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[(
            "'sdy.all_reduce' op cannot reduce 'max' unreduced axes. Expected 'sum'.",
            r#"<@m, [{"a"}, {}]>"#,
        )],
    );
    one_op(
        r#"[{"a"}, {}], unreduced=max{"b"}"#,
        r#"sdy.all_reduce max {"b"} %x out_sharding=<@m, [{"a"}, {}]>"#,
        &[],
    );
    one_op(
        r#"[{}, {}], unreduced=max{"b"}"#,
        r#"sdy.reshard %x <@m, [{}, {}], unreduced={"a", "b"}>"#,
        &[(
            "'sdy.reshard' op cannot change the reduction operator of kept unreduced axes from max to sum.",
            r#"<@m, [{}, {}], unreduced={"a", "b"}>"#,
        )],
    );
}

#[test]
fn edges_and_barriers() {
    one_op(
        "[{}, {}]",
        "sdy.propagation_barrier %x allowed_direction=BOTH",
        &[(
            "'sdy.propagation_barrier' op cannot specify `BOTH` as the direction. Not blocking \
             propagation direction makes the op redundant.",
            "sdy.propagation_barrier",
        )],
    );
    check(
        r"func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
          %0 = sdy.data_flow_edge %x : tensor<8xf32>
          return %0, %x : tensor<8xf32>, tensor<8xf32>
        }",
        &[(
            "'sdy.data_flow_edge' op expected input of sdy.data_flow_edge to have a single user",
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
        let message = format!("'stablehlo.add' op {message}");
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
            "'stablehlo.add' op should have a propagation edges attribute of type \
             ArrayAttr<PropagationEdgesAttr> for attr named 'sdy.result_propagation_edges' or \
             'sdy.block_arg_propagation_edges'",
            "[64]",
        )],
    );
    let sound = step(r#""a" = result-0 -> [operand-0, operand-1]"#);
    check(&of(&format!("sdy.propagation_edges = {sound}")), &[]);
}

#[test]
fn what_a_signature_says_all_of_has_no_own_checks() {
    for name in crate::stablehlo::names() {
        let definition = definition_of(&name, Version::NEWEST);
        let looks_around = definition.is_some_and(|definition| definition.looks_around);
        assert!(looks_around || own_check(OpKind::from_name(&name)).is_none(), "{name}");
    }
}
