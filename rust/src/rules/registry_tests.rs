//! The registry on whole programs.

use super::{Registry, UserRule};
use crate::attribute::print_rule;
use crate::context::RuleSource;
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{NewOp, Place, Program};
use crate::mlir;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn parse(ops: &str) -> Program {
    let args = "%a: tensor<4x8xf32>, %i: tensor<i32>";
    mlir::parse(format!("func.func @main({args}) {{\n{ops}\nreturn\n}}\n").into()).unwrap()
}

fn find(program: &Program, name: &str) -> Vec<OpId> {
    program.pre_order(program.module_op()).filter(|&op| program.op_name(op) == name).collect()
}

/// The rule of each op called `name`, without its attribute's name.
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
    let mut program = parse(
        "%c = stablehlo.constant dense<0> : tensor<i32>
         %u = stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
         %0 = stablehlo.dynamic_update_slice %a, %u, %c, %c : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
         %1 = stablehlo.dynamic_update_slice %a, %u, %c, %i : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>",
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
    registry.set_rule("my.op", Some(UserRule::Function(Arc::new(function))));
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
