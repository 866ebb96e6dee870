//! Tests on whole programs. The rules are attributes, so that no registry is needed.

use super::observe::{Change, Clock, Observer, Slot};
use super::{propagate, propagate_observed, Options, Run, Strategy};
use crate::attribute::print_sharding;
use crate::context::{Context, Limits, Progress, RuleSource};
use crate::error::{Code, Result};
use crate::import::add_data_flow_edges;
use crate::index::{OpId, RuleId, ShardingId};
use crate::ir::{OpKind, Program};
use crate::mlir::parse;

struct Attributes;

impl RuleSource for Attributes {
    fn prepare(&mut self, _: &mut Program, _: bool) -> Result<()> {
        Ok(())
    }
    fn rule(&self, program: &Program, op: OpId) -> RuleId {
        program.op_rules().get(op)
    }
}

/// The program after adding data-flow edges and propagation.
fn propagated(text: &str, options: &Options) -> Result<Program> {
    let mut program = parse(text.into())?;
    with_context(|context| {
        add_data_flow_edges::run(&mut program, context)?;
        propagate(&mut program, context, options)
    })?;
    Ok(program)
}

/// The result of `run`, where the rules of ops are their attributes.
pub fn with_context<T>(run: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let mut report = |_: Progress<'_>| true;
    let mut rules = Attributes;
    run(&mut Context::new(&mut rules, Limits::default(), &mut report))
}

/// The shardings of the arguments of the first function, then of all results in it.
fn shardings(program: &Program) -> Vec<String> {
    let func = program.functions_in_order()[0];
    let text = |id: ShardingId| {
        program.shardings().get(id).map_or("-".to_owned(), |s| print_sharding(s, program))
    };
    let args = program.block_args(program.func_body(func));
    let ops = program.pre_order(program.func_op(func));
    let results = ops.flat_map(|op| program.op_results(op));
    args.chain(results).map(|value| text(program.sharding(value))).collect()
}

fn module(body: &str) -> String {
    format!("sdy.mesh @mesh = <[\"a\"=2, \"b\"=2, \"c\"=2]>\nfunc.func @main{body}")
}

const SAME: &str = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>";

#[test]
fn chains_propagate_both_ways() {
    let body = r#"(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.negate %arg0 {RULE} : tensor<8x8xf32>
      %1 = stablehlo.negate %0 {RULE, sdy.sharding =
        #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>} : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }"#;
    for strategy in [Strategy::Basic, Strategy::Aggressive, Strategy::BasicThenAggressive] {
        let options = Options { strategy, ..Options::default() };
        let program = propagated(&module(&body.replace("RULE", SAME)), &options).unwrap();
        assert_eq!(shardings(&program), [r#"<@mesh, [{"a", ?}, {"b", ?}]>"#; 3]);
        assert!(program.op_rules().is_empty());
    }
}

#[test]
fn dims_of_a_later_priority_wait() {
    let body = r#"(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {}]>},
        %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.add %arg0, %arg1 {sdy.sharding_rule =
        #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"#;
    let program = propagated(&module(body), &Options::default()).unwrap();
    let first = r#"<@mesh, [{"a"}, {}]>"#;
    let second = r#"<@mesh, [{"b"}, {}]>"#;
    assert_eq!(shardings(&program), [first, second, r#"<@mesh, [{"b", ?}, {?}]>"#]);
    let early = Options { up_to_priority: Some(0), ..Options::default() };
    let program = propagated(&module(body), &early).unwrap();
    assert_eq!(shardings(&program)[0], r#"<@mesh, [{}, {}], replicated={"a"}>"#);
}

#[test]
fn what_is_known_of_one_program_holds_in_another_as_far_as_it_is_the_same() {
    let body = r#"func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
        -> tensor<4x2xf32> {
      %0 = stablehlo.reshape %arg0 {sdy.sharding_rule =
        #sdy.op_sharding_rule<([ij])->([i, j]) {i=4, j=2}>} : (tensor<8xf32>) -> tensor<4x2xf32>
      return %0 : tensor<4x2xf32>
    }"#;
    // Equal shardings over meshes with other sizes, names and ids.
    let programs = [
        (r#"sdy.mesh @m = <["a"=4]>"#, r#"<@m, [{"a", ?}, {?}]>"#),
        (r#"sdy.mesh @m = <["a"=8]>"#, r#"<@m, [{"a":(1)4, ?}, {"a":(4)2, ?}]>"#),
        (r#"sdy.mesh @n = <["a"=8]> sdy.mesh @m = <["a"=4]>"#, r#"<@m, [{"a", ?}, {?}]>"#),
        (r#"sdy.mesh @m = <["b"=2, "a"=4]>"#, r#"<@m, [{"a", ?}, {?}]>"#),
        (r#"sdy.mesh @n = <["a"=4]> sdy.mesh @m = <["a"=4]>"#, r#"<@m, [{"a", ?}, {?}]>"#),
    ];
    for (meshes, expected) in programs.iter().chain(&programs) {
        let program = propagated(&format!("{meshes}\n{body}"), &Options::default()).unwrap();
        assert_eq!(shardings(&program)[1], *expected);
    }
}

#[test]
fn unused_ops_without_effects_go() {
    let body = r"(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %0 = stablehlo.negate %arg0 {RULE} : tensor<8x8xf32>
      %1 = stablehlo.negate %0 {RULE} : tensor<8x8xf32>
      %2 = stablehlo.custom_call @kept(%arg0) {has_side_effect = true} :
        (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %arg0 : tensor<8x8xf32>
    }";
    let program = propagated(&module(&body.replace("RULE", SAME)), &Options::default()).unwrap();
    let kinds: Vec<OpKind> =
        program.pre_order(program.module_op()).map(|op| program.kind(op)).collect();
    let kept = [OpKind::CustomCall, OpKind::FuncReturn];
    assert_eq!(kinds, [[OpKind::Module, OpKind::Mesh, OpKind::Func].as_slice(), &kept].concat());
}

#[test]
fn going_round_in_circles_is_an_error() {
    // Neither of the shardings that the computation declares has the manual axis c.
    let body = r#"(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8x8xf32>) {
      %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {"b", ?}]>]
          out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a", "c"} (%arg1: tensor<4x8xf32>) {
        %4 = stablehlo.negate %arg1 {sdy.sharding_rule =
          #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8}>} : tensor<4x8xf32>
        sdy.return %4 : tensor<4x8xf32>
      } : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] {sdy.sharding_rule =
        #sdy.op_sharding_rule<([j, k])->([i, j, k]) {i=8, j=8, k=8}>, sdy.sharding =
        #sdy.sharding_per_value<[<@mesh, [{}, {"a"}, {"b", "c"}]>]>} :
        (tensor<8x8xf32>) -> tensor<8x8x8xf32>
      %2:3 = stablehlo.while(%x = %arg0, %y = %arg0, %z = %0) :
          tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
        cond {
          %5 = stablehlo.custom_call @test(%x) : (tensor<8x8xf32>) -> tensor<i1>
          stablehlo.return %5 : tensor<i1>
        } do {
          stablehlo.return %x, %z, %z : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
        }
      return %2#1, %1 : tensor<8x8xf32>, tensor<8x8x8xf32>
    }"#;
    let options = Options { run_op_priority: false, ..Options::default() };
    let error = propagated(&module(body), &options).unwrap_err();
    assert_eq!(error.diagnostics[0].code, Code::NoConvergence);
}

/// An observer that records all changes.
#[derive(Default)]
struct Trace {
    changes: Vec<Change>,
    runs: Vec<(usize, i64, Run)>,
    erased: Vec<OpId>,
}

impl Observer for Trace {
    fn run_starts(&mut self, at: Clock, priority: i64, run: Run) {
        self.runs.push((at.num_changes(), priority, run));
    }
    fn changed(&mut self, change: Change) {
        assert_eq!(change.at.num_changes(), self.changes.len());
        assert_ne!(change.old, change.new);
        self.changes.push(change);
    }
    fn erased(&mut self, _: Clock, op: OpId) {
        self.erased.push(op);
    }
}

/// The shardings of all values, then those of the results of all functions.
fn all_slots(program: &Program) -> Vec<(Slot, ShardingId)> {
    let values = program.value_ids().map(|value| (Slot::Value(value), program.sharding(value)));
    let results = program.functions_in_order().into_iter().flat_map(|func| {
        let results = program.func_results(func).iter().enumerate();
        results.map(move |(index, result)| (Slot::FuncResult(func, index), result.sharding))
    });
    values.chain(results).collect()
}

#[test]
fn the_trace_leads_from_the_first_shardings_to_the_last_and_back() {
    let body = r#"(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {?}]>},
        %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>})
        -> (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"c"}]>}) {
      %0 = stablehlo.add %arg0, %arg1 {sdy.sharding_rule =
        #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
      %1:2 = stablehlo.custom_call @two(%0) {sdy.sharding_rule =
        #sdy.op_sharding_rule<([i, j])->([i, j], [i, j]) {i=8, j=8}>} :
        (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
      %2 = stablehlo.negate %1#0 {RULE} : tensor<8x8xf32>
      %3 = stablehlo.negate %1#1 {RULE} : tensor<8x8xf32>
      sdy.sharding_group %2 group_id=0 : tensor<8x8xf32>
      sdy.sharding_group %3 group_id=0 : tensor<8x8xf32>
      %4 = stablehlo.negate %2 {RULE} : tensor<8x8xf32>
      return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
    }"#;
    let mut program = parse(module(&body.replace("RULE", SAME)).into()).unwrap();
    let before = all_slots(&program);
    let mut trace = Trace::default();
    let options = Options::default();
    let (stats, _) = with_context(|context| {
        propagate_observed(&mut program, context, &options, Some(&mut trace))
    })
    .unwrap();
    let after = all_slots(&program);
    let text: Vec<String> = shardings(&program);
    assert_eq!(text[2], r#"<@mesh, [{"b", ?}, {"c", ?}]>"#);

    assert_eq!(stats.changes, trace.changes.len());
    assert_eq!(stats.greedy_runs, trace.runs.len());
    assert_eq!(trace.erased.len(), 1);
    assert!(trace.runs.iter().any(|&(at, priority, _)| priority == 1 && at > 0));
    let replayed = |mut slots: Vec<(Slot, ShardingId)>,
                    changes: &mut dyn Iterator<Item = Change>| {
        for Change { slot, old, new, .. } in changes {
            let entry = slots.iter_mut().find(|(other, _)| *other == slot).unwrap();
            assert_eq!(entry.1, old);
            entry.1 = new;
        }
        slots
    };
    assert_eq!(replayed(before.clone(), &mut trace.changes.iter().copied()), after);
    let mut back = trace.changes.iter().rev().map(|&change| {
        let Change { old, new, .. } = change;
        Change { old: new, new: old, ..change }
    });
    assert_eq!(replayed(after, &mut back), before);
}

#[test]
fn a_value_that_is_two_operands_is_looked_at_again() {
    // Both calls have equal rules, shardings and updates. But the operand that the second call has
    // twice then brings its axis to the second result as well.
    let call = |operands: &str| {
        format!(
            r#"stablehlo.custom_call @f({operands}) {{sdy.sharding_rule =
            #sdy.op_sharding_rule<([i], [j])->([i], [j]) {{i=8, j=8}}>, sdy.sharding =
            #sdy.sharding_per_value<[<@mesh, [{{"a", ?}}]>, <@mesh, [{{?}}]>]>}} :
            (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)"#
        )
    };
    let (distinct, same) = (call("%arg0, %arg1"), call("%arg2, %arg2"));
    let body = format!(
        "(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>)
            -> (tensor<8xf32>, tensor<8xf32>) {{
          %0:2 = {distinct}
          %1:2 = {same}
          return %0#0, %1#1 : tensor<8xf32>, tensor<8xf32>
        }}"
    );
    let program = propagated(&module(&body), &Options::default()).unwrap();
    let (a, open) = (r#"<@mesh, [{"a", ?}]>"#, "<@mesh, [{?}]>");
    assert_eq!(shardings(&program), [a, "-", a, a, open, a, a]);
}

#[test]
fn operands_of_wide_elementwise_ops_look_at_results() {
    // The operands cannot take the axis of the last one, because the result has another part of it
    // and cannot take it. If the visit were continued by the claims of factors alone, all operands
    // without a sharding would take it.
    let ty = "tensor<144x144xf32>";
    let operands: Vec<String> = (0..16).map(|index| format!("%arg{index}")).collect();
    let plain: Vec<String> = operands[..14].iter().map(|name| format!("{name}: {ty}")).collect();
    let plain = plain.join(", ");
    let mapping = ["[i, j]"; 16].join(", ");
    let sharding = |dims: &str| format!("{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}");
    let (b, c) = (sharding(r#"{}, {"b"}"#), sharding(r#"{"c":(1)2}, {}"#));
    let result = sharding(r#"{}, {"c":(3)4}"#);
    let text = format!(
        r#"sdy.mesh @mesh = <["b"=3, "c"=12]>
        func.func @main({plain}, %arg14: {ty} {b}, %arg15: {ty} {c}) -> ({ty} {result}) {{
          %0 = "stablehlo.add"({}) {{sdy.sharding_rule =
            #sdy.op_sharding_rule<({mapping})->([i, j]) {{i=144, j=144}}, custom>}} : ({}) -> {ty}
          return %0 : {ty}
        }}"#,
        operands.join(", "),
        [ty; 16].join(", "),
    );
    let found = shardings(&propagated(&text, &Options::default()).unwrap());
    assert!(found[..14].iter().all(|sharding| sharding == "-"), "{found:?}");
    assert_eq!(found[16], r#"<@mesh, [{?}, {"c":(3)4, ?}]>"#);
}
