//! Micro-benchmarks of the engine's stages: `cargo bench`. They take their programs from
//! `examples/gpt_step.mlir` and from generators like those in `benches/families.py`.

use divan::{black_box, Bencher};
use shardcore::context::{Context, Limits, Progress};
use shardcore::index::{FactorId, MeshId};
use shardcore::op_sharding_rule::OpShardingRule;
use shardcore::pipeline::Pipeline;
use shardcore::projection::Projection;
use shardcore::rules::Registry;
use shardcore::sharding::TensorSharding;
use shardcore::{attribute, mlir, Mesh, Program};
use std::fmt::Write;

fn main() {
    divan::main();
}

const GPT: &str = include_str!("../examples/gpt_step.mlir");
const IMPORT: &str = "builtin.module(sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,\
    sdy-import-func-calls,symbol-dce,sdy-apply-sharding-constraints,sdy-sharding-group-import,\
    sdy-pre-order-funcs)";
const PROPAGATE: &str = "builtin.module(sdy-user-priority-propagate{keep-sharding-rules=true})";
const PIPELINE: &str = "builtin.module(sdy-propagation-pipeline)";

fn parse(text: &str) -> Program {
    mlir::parse(text.into()).expect("benchmarks parse")
}

fn run(pipeline: &str, mut program: Program) -> Program {
    let mut rules = Registry::builtin();
    let mut report = |_: Progress<'_>| true;
    let limits = Limits::default();
    let mut context = Context::new(&mut rules, limits, &mut report);
    let pipeline =
        Pipeline::parse(pipeline, shardcore::shardy::Version::V0_10).expect("the pipeline exists");
    pipeline.run(&mut program, &mut context).expect("benchmarks propagate");
    program
}

/// A chain of `ops` elementwise ops, annotated at its end.
fn chain(ops: usize) -> String {
    let t = "tensor<64x64xf32>";
    let mut text = format!(
        "sdy.mesh @mesh = <[\"data\"=4, \"model\"=4]>\nfunc.func @main(%arg0: {t}) -> ({t} \
         {{sdy.sharding = #sdy.sharding<@mesh, [{{\"data\"}}, {{\"model\"}}]>}}) {{\n"
    );
    for op in 0..ops {
        let operand = if op == 0 { "%arg0".to_owned() } else { format!("%{}", op - 1) };
        let _ = writeln!(text, "  %{op} = stablehlo.negate {operand} : {t}");
    }
    let _ = writeln!(text, "  return %{} : {t}\n}}", ops - 1);
    text
}

#[divan::bench]
fn parse_gpt_step(bencher: Bencher) {
    bencher.counter(divan::counter::BytesCount::new(GPT.len())).bench(|| parse(black_box(GPT)));
}

#[divan::bench]
fn print_gpt_step(bencher: Bencher) {
    let program = run(PIPELINE, parse(GPT));
    bencher.bench(|| mlir::print(black_box(&program)));
}

#[divan::bench]
fn import_gpt_step(bencher: Bencher) {
    let program = parse(GPT);
    bencher.with_inputs(|| program.clone()).bench_values(|program| run(IMPORT, program));
}

#[divan::bench]
fn propagate_gpt_step(bencher: Bencher) {
    let program = run(IMPORT, parse(GPT));
    bencher.with_inputs(|| program.clone()).bench_values(|program| run(PROPAGATE, program));
}

#[divan::bench]
fn pipeline_gpt_step(bencher: Bencher) {
    let program = parse(GPT);
    bencher.with_inputs(|| program.clone()).bench_values(|program| run(PIPELINE, program));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn propagate_chain(bencher: Bencher, ops: usize) {
    let program = run(IMPORT, parse(&chain(ops)));
    bencher.with_inputs(|| program.clone()).bench_values(|program| run(PROPAGATE, program));
}

/// The rule of a matmul, and shardings of its tensors that use a sub-axis.
fn matmul() -> (OpShardingRule, Mesh, Vec<TensorSharding>) {
    let rule = "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=64, k=64} reduction={k}>";
    let rule = attribute::parse_rule(rule, 0).expect("the rule is well formed");
    let mesh = attribute::parse_mesh("<[\"x\"=4, \"y\"=8]>", 0).expect("the mesh is well formed");
    let mut scope = Program::default();
    let id: MeshId = attribute::MeshScope::inlined(&mut scope, mesh.clone());
    let texts = ["[{\"x\"}, {?}]", "[{?}, {\"y\":(1)2, ?}]", "[{?}, {?}]"];
    let parse = |text: &&str| {
        let text = format!("<mesh<[\"x\"=4, \"y\"=8]>, {text}>");
        attribute::parse_sharding(&text, 0, &mut scope).expect("the sharding is well formed")
    };
    let shardings: Vec<_> = texts.iter().map(parse).collect();
    debug_assert!(shardings.iter().all(|sharding| sharding.mesh == id));
    (rule, mesh, shardings)
}

#[divan::bench]
fn project_to_factors(bencher: Bencher) {
    let (rule, mesh, shardings) = matmul();
    bencher.bench(|| Projection::build(&rule, shardings.iter().map(Some), &mesh, false));
}

#[divan::bench]
fn project_back(bencher: Bencher) {
    let (rule, mesh, shardings) = matmul();
    let mut table = Projection::build(&rule, shardings.iter().map(Some), &mesh, false);
    let axes = table.tensors[0].factor(FactorId::new(0)).map(|cell| cell.axes.clone());
    table.expand(FactorId::new(0), &axes.unwrap_or_default(), |_| {});
    let mesh_id = shardings[0].mesh;
    bencher.bench(|| {
        let result = &table.tensors[2];
        result.to_sharding(&rule.results[0], &rule.factor_sizes, mesh_id, black_box(&mesh))
    });
}
