//! Tests the registry on whole programs.

use super::{Registry, UserRule};
use crate::attribute::print_rule;
use crate::context::RuleSource;
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{NewOp, Place, Program};
use crate::mlir;
use crate::shardy::Version;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn parse_as(ops: &str, shardy: Version) -> Program {
    let args = "%a: tensor<4x8xf32>, %i: tensor<i32>";
    let text = format!("func.func @main({args}) {{\n{ops}\nreturn\n}}\n");
    mlir::parse_shared(Arc::new(text), shardy).unwrap()
}

fn parse(ops: &str) -> Program {
    parse_as(ops, Version::NEWEST)
}

fn find(program: &Program, name: &str) -> Vec<OpId> {
    program.pre_order(program.module_op()).filter(|&op| program.op_name(op) == name).collect()
}

/// The rule of each op called `name`, without the attribute's name.
fn rules(registry: &mut Registry, program: &mut Program, name: &str) -> Vec<String> {
    registry.prepare(program, false).unwrap();
    let rule = |op| match registry.rule(program, op).get() {
        Some(rule) => print_rule(&program.rules()[rule]).replace("#sdy.op_sharding_rule", ""),
        None => "none".into(),
    };
    find(program, name).into_iter().map(rule).collect()
}

const SUM: &str = "%0 = stablehlo.add %a, %a : tensor<4x8xf32>";

#[test]
fn the_ops_own_rule_wins() {
    let own = "%0 = stablehlo.custom_call @foo(%a) {sdy.sharding_rule = \
               #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8}, custom>} \
               : (tensor<4x8xf32>) -> tensor<4x8xf32>";
    let found = rules(&mut Registry::builtin(), &mut parse(own), "stablehlo.custom_call");
    assert_eq!(found, ["<([i, j])->([i, j]) {i=4, j=8}, custom>"]);
}

#[test]
fn surroundings_are_looked_at() {
    // Later versions do not check whether the start indices are constants.
    let mut program = parse_as(
        "%c = stablehlo.constant dense<0> : tensor<i32>
         %u = stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
         %0 = stablehlo.dynamic_update_slice %a, %u, %c, %c : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
         %1 = stablehlo.dynamic_update_slice %a, %u, %c, %i : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>",
        Version::V0_10,
    );
    let found = rules(&mut Registry::builtin(), &mut program, "stablehlo.dynamic_update_slice");
    assert_eq!(
        found,
        [
            "<([i, k], [j, k], [], [])->([i, k]) {i=4, j=2, k=8}>",
            "<([i, k], [j, k], [], [])->([i, k]) {i=4, j=2, k=8} need_replication={j}>",
        ]
    );
}

#[test]
fn users_rules_replace_built_in_ones_until_they_are_taken_back() {
    let mut registry = Registry::builtin();
    let mut program = parse(SUM);
    let built_in = ["<([i, j], [i, j])->([i, j]) {i=4, j=8}>"];
    assert_eq!(rules(&mut registry, &mut program, "stablehlo.add"), built_in);
    let notation = "i j, i j -> i j permutation={j}".parse().unwrap();
    registry.set_rule("stablehlo.add", Some(UserRule::Notation(notation)));
    let replaced = ["<([i, j], [i, j])->([i, j]) {i=4, j=8} permutation={j}>"];
    assert_eq!(rules(&mut registry, &mut program, "stablehlo.add"), replaced);
    registry.set_rule("stablehlo.add", None);
    assert_eq!(rules(&mut registry, &mut program, "stablehlo.add"), built_in);
}

#[test]
fn functions_are_asked_once_and_checked() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let mut registry = Registry::builtin();
    let function = move |view: &super::SignatureView<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
        let notation: super::notation::Notation = "i j -> i j".parse()?;
        notation.instantiate(view).map(Some)
    };
    registry.set_rule("my.op", Some(UserRule::function(Arc::new(function))));
    let op = "%0 = \"my.op\"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>";
    for _ in 0..2 {
        let found = rules(&mut registry.clone(), &mut parse(op), "my.op");
        assert_eq!(found, ["<([i, j])->([i, j]) {i=4, j=8}>"]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);

    let other = "%0 = \"my.op\"(%i) : (tensor<i32>) -> tensor<4x8xf32>";
    let error = registry.prepare(&mut parse(other), false).unwrap_err();
    assert_eq!(error.diagnostics[0].code, Code::InvalidRule);
    assert!(error.diagnostics[0].message.starts_with("rule of my.op: "));
    assert!(error.diagnostics[0].span.is_some());
}

#[test]
fn ops_that_passes_make_have_rules_too() {
    let mut registry = Registry::builtin();
    let mut program = parse(SUM);
    registry.prepare(&mut program, false).unwrap();
    let [sum] = find(&program, "stablehlo.add")[..] else { panic!("one op") };
    let value = program.result(sum, 0);
    let ty = program.type_of(value);
    let made = program.create_op(NewOp::new("stablehlo.tanh", &[value], &[ty]));
    program.insert_op(made, Place::After(sum));
    let found = rules(&mut registry, &mut program, "stablehlo.tanh");
    assert_eq!(found, ["<([i, j])->([i, j]) {i=4, j=8}>"]);
}

#[test]
fn ragged_dots_keep_groups_and_the_ragged_dim_whole() {
    let dot = |shapes: [&str; 4], numbers: &str| {
        let [lhs, rhs, sizes, result] = shapes;
        let text = format!(
            "%c = stablehlo.constant dense<1.0> : tensor<{lhs}xf32>
             %d = stablehlo.constant dense<1.0> : tensor<{rhs}xf32>
             %e = stablehlo.constant dense<1> : tensor<{sizes}xi32>
             %0 = \"chlo.ragged_dot\"(%c, %d, %e) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}>
               : (tensor<{lhs}xf32>, tensor<{rhs}xf32>, tensor<{sizes}xi32>) -> tensor<{result}xf32>"
        );
        let mut program = parse(&text);
        rules(&mut Registry::builtin().legalizing_chlo(), &mut program, "chlo.ragged_dot").remove(0)
    };
    let free = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], \
                lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]";
    assert_eq!(
        dot(["6x4", "3x4x5", "3", "6x5"], free),
        "<([i, k], [l, k, j], [l])->([i, j]) {i=6, j=5, k=4, l=3} reduction={k} need_replication={i, l}>"
    );
    let contracting = "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], \
                       lhs_ragged_dimensions = [0]";
    assert_eq!(
        dot(["6x4", "6x5", "3", "3x4x5"], contracting),
        "<([k, i], [k, j], [l])->([l, i, j]) {i=4, j=5, k=6, l=3} need_replication={k, l}>"
    );
    let batched = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], \
                   lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], \
                   lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]";
    let rule = |sizes: &str| {
        format!(
            "<([i, j, l], [m, i, l, k], {sizes})->([i, j, k]) {{i=2, j=6, k=5, l=4, m=3}} \
             reduction={{l}} need_replication={{j, m}}>"
        )
    };
    assert_eq!(dot(["2x6x4", "3x2x4x5", "2x3", "2x6x5"], batched), rule("[i, m]"));
    assert_eq!(dot(["2x6x4", "3x2x4x5", "3", "2x6x5"], batched), rule("[m]"));
}

#[test]
fn scans_pass_the_dims_of_slices_through() {
    let scan = |dims: [&str; 2], more: &str| {
        let [input, slice] = dims.map(|dims| format!("tensor<{dims}f32>"));
        let text = format!(
            "%c = stablehlo.constant dense<1.0> : {input}
             %d = stablehlo.constant dense<1.0> : {slice}
             %0:2 = chlo.scan(%c) inits (%d) dimension=1 attributes {{{more}}} {{
             ^bb0(%p: {slice}, %q: {slice}):
               stablehlo.return %p, %q : {slice}, {slice}
             }} : ({input}, {slice}) -> ({input}, {slice})"
        );
        let mut program = parse(&text);
        rules(&mut Registry::builtin().legalizing_chlo(), &mut program, "chlo.scan").remove(0)
    };
    assert_eq!(
        scan(["8x16x32x", "8x32x"], "is_associative = true"),
        "<([i, j, k], [i, k])->([i, j, k], [i, k]) {i=8, j=16, k=32} permutation={j}>"
    );
    for sequential in ["is_associative = false", "is_reverse = true"] {
        assert_eq!(
            scan(["8x16x", "8x"], sequential),
            "<([i, j], [i])->([i, j], [i]) {i=8, j=16} need_replication={j}>"
        );
    }
}

#[test]
fn scans_of_other_shapes_have_a_factor_of_the_scanned_dim() {
    let text = "%c = stablehlo.constant dense<1.0> : tensor<8x16xf32>
                %d = stablehlo.constant dense<1.0> : tensor<4xf32>
                %0:2 = chlo.scan(%c) inits (%d) dimension=1 attributes {is_associative = true} {
                ^bb0(%p: tensor<8xf32>, %q: tensor<4xf32>):
                  stablehlo.return %p, %q : tensor<8xf32>, tensor<4xf32>
                } : (tensor<8x16xf32>, tensor<4xf32>) -> (tensor<8x16xf32>, tensor<4xf32>)";
    let found =
        rules(&mut Registry::builtin().legalizing_chlo(), &mut parse(text), "chlo.scan").remove(0);
    assert_eq!(found, "<([j, i], [k])->([l, i], [m]) {i=16, j=1, k=1, l=1, m=1} permutation={i}>");
}

#[test]
fn chlo_is_known_only_where_it_counts_as_legalized() {
    let text = "%0 = chlo.erf %a : tensor<4x8xf32> -> tensor<4x8xf32>
                %1:2 = chlo.top_k(%a, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)";
    let mut program = parse(text);
    let mut both = |registry: &mut Registry| {
        ["chlo.erf", "chlo.top_k"].map(|op| rules(registry, &mut program, op).remove(0))
    };
    let legalized = [
        "<([i, j])->([i, j]) {i=4, j=8}>",
        "<([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication={j} blocked_propagation={j}>",
    ];
    assert_eq!(both(&mut Registry::builtin()), ["none", "none"]);
    assert_eq!(both(&mut Registry::builtin().legalizing_chlo()), legalized);
    assert_eq!(both(&mut Registry::builtin()), ["none", "none"]);
}
