//! Inserts the gathers of operands of ops that XLA does not partition.
//!
//! An op without a sharding rule is not partitioned, and neither is an FFT, although its rule allows sharded
//! batch dims: XLA gathers their operands, and each device keeps its shards of the results. Shardy's explicit
//! collectives do not include these gathers, so they are inserted into the copy of the program that is counted.

use super::collectives::is_sdy_collective;
use super::work::{Family, Measure};
use crate::axis::AxisRef;
use crate::context::RuleSource;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, OpKind, OpTraits, Payload, Place, Program};
use crate::mlir::op_attribute;
use rustc_hash::FxHashMap;

/// Custom calls that are annotations of shardings.
const ANNOTATIONS: [&str; 3] = ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"];

/// Ops on tuples or on single shards, whose operands are not gathered.
const HANDED_OVER: [&str; 9] = [
    "stablehlo.async_done",
    "stablehlo.async_start",
    "stablehlo.get_dimension_size",
    "stablehlo.get_tuple_element",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.send",
    "stablehlo.tuple",
];

/// Gathers the operands of the ops of `program` that are not partitioned, and slices their results.
pub fn gather_operands(program: &mut Program, rules: &dyn RuleSource) {
    let ops: Vec<OpId> = program.pre_order(program.module_op()).skip(1).collect();
    for op in ops {
        if is_computed_whole(program, rules, op) {
            gather_operands_of(program, op);
            slice_results_of(program, op);
        }
    }
}

fn is_computed_whole(program: &mut Program, rules: &dyn RuleSource, op: OpId) -> bool {
    if program.num_operands(op) == 0
        || program.has_traits(op, OpTraits::TERMINATOR)
        || matches!(program.kind(op), OpKind::Func | OpKind::Call | OpKind::Composite)
        || is_sdy_collective(program.kind(op))
        || program.edge_spec(op).is_some()
    {
        return false;
    }
    let name = program.op_name(op);
    if name.starts_with("sdy.") || HANDED_OVER.contains(&name) {
        return false;
    }
    let is_flow = matches!(
        Family::of(name).map(|family| family.measure),
        Some(Measure::Inside | Measure::Collective)
    );
    let is_whole = name == "stablehlo.fft" || (!is_flow && rules.rule(program, op).is_none());
    is_whole && !is_annotation(program, op)
}

fn is_annotation(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::CustomCall
        && op_attribute(program, op, "call_target_name")
            .and_then(|target| target.as_str().map(|target| ANNOTATIONS.contains(&target)))
            .unwrap_or(false)
}

/// The axes of each dim of `sharding`; `None` where no dim has any, or the mesh is a single device.
fn axes_per_dim(program: &Program, sharding: ShardingId) -> Option<Vec<Vec<AxisRef>>> {
    let row = program.shardings().get(sharding)?;
    let is_sharded = row.dims.iter().any(|dim| !dim.axes.is_empty());
    (is_sharded && !program.mesh(row.mesh).is_maximal())
        .then(|| row.dims.iter().map(|dim| dim.axes.clone()).collect())
}

fn gather_operands_of(program: &mut Program, op: OpId) {
    let mut gathered: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    for slot in program.op_uses(op) {
        let operand = program.used_value(slot);
        if let Some(&known) = gathered.get(&operand) {
            program.set_operand(slot, known);
            continue;
        }
        let sharding = program.sharding_of(operand);
        let Some(axes) = axes_per_dim(program, sharding) else { continue };
        let whole = replicated_like(program, operand, sharding);
        let payload = Some(Payload::AxesPerDim(axes));
        let at = InsertPoint { place: Place::Before(op), loc: program.value_loc(operand) };
        let result = program.create_sdy_op(OpKind::AllGather, operand, whole, payload, at);
        program.note_cause(result, op);
        program.set_operand(slot, result);
        gathered.insert(operand, result);
    }
}

fn slice_results_of(program: &mut Program, op: OpId) {
    let at = program.after(op);
    for result in program.op_results(op) {
        let sharding = program.sharding_of(result);
        let Some(axes) = axes_per_dim(program, sharding) else { continue };
        let whole = replicated_like(program, result, sharding);
        let payload = Some(Payload::AxesPerDim(axes));
        let sliced = program.create_sdy_op(OpKind::AllSlice, result, sharding, payload, at);
        program.note_cause(sliced, op);
        if let Some(user) = program.defining_op(sliced) {
            program.replace_all_uses_except(result, sliced, user);
        }
        program.set_sharding(result, whole);
    }
}

/// The sharding of `value`, which has `sharding`, without axes.
fn replicated_like(program: &mut Program, value: ValueId, sharding: ShardingId) -> ShardingId {
    let (mesh, ty) = (program.mesh_of(sharding), program.type_of(value));
    program.replicated(mesh, ty, true)
}
