//! JAX's `custom_partitioning`: custom calls, all with the same target, that come with a callback or a sharding rule for their
//! partitioning.
//!
//! XLA's partitioner calls the function's `partition` callback, which returns a computation on shards and the shardings of its
//! operands and results. It reshards the operands to these, replaces the call by the computation, and reshards the results to the
//! sharding of the call. Here the call becomes a manual computation over all axes that are not manual around it:
//!
//! - [`partition_callback`]: its body is the computation that the callback returned.
//! - [`by_sharding_rule`]: its body is the call itself, on shards along the factors of its sharding rule, if there is only a rule.
//!
//! A call with neither stays, and is treated as one of an unknown target.
//!
//! Source: XLA's `custom_partition_callback.cc`.

mod by_sharding_rule;
mod manual;
mod partition_callback;

use super::custom_calls::ShardRules;
use super::replica_group_lists;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{Id, MeshId, OpId};
use crate::ir::{OpKind, Program};
use crate::mlir::{op_attribute, Origin};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The target of the calls.
const TARGET: &str = "CustomSPMDPartitioning";

/// The names of the axes along which each dim of a tensor is sharded.
pub type DimAxes = Vec<Vec<String>>;

/// The local program of a call, which its `partition` callback returned.
#[derive(Clone, Debug)]
pub struct LocalProgram {
    /// A program without calls whose entry function has one manual computation, the body of which computes the results.
    program: Program,
    /// The mesh of the shardings.
    mesh: MeshId,
    /// The shardings of the operands.
    operands: Vec<DimAxes>,
    /// The shardings of the results.
    results: Vec<DimAxes>,
}

impl LocalProgram {
    /// The local program `program`; its meshes are its own, so that replica groups are written as lists.
    pub fn new(
        mut program: Program,
        mesh: MeshId,
        operands: Vec<DimAxes>,
        results: Vec<DimAxes>,
    ) -> Self {
        replica_group_lists::list(&mut program);
        Self { program, mesh, operands, results }
    }
}

/// The local programs of calls.
pub type LocalPrograms = Vec<(OpId, LocalProgram)>;

/// The calls of `custom_partitioning` functions in `program`, in pre-order.
pub fn partitioned_calls(program: &Program) -> Vec<OpId> {
    if !program.has_any(&[OpKind::CustomCall]) {
        return Vec::new();
    }
    let ops = program.pre_order(program.module_op());
    ops.filter(|&op| is_partitioned_call(program, op)).collect()
}

/// Whether `op` is a call of a `custom_partitioning` function.
pub fn is_partitioned_call(program: &Program, op: OpId) -> bool {
    if program.kind(op) != OpKind::CustomCall {
        return false;
    }
    let target = op_attribute(program, op, "call_target_name");
    target.is_some_and(|target| target.as_str() == Some(TARGET))
}

/// The backend configuration of `call`.
pub fn key_of(program: &Program, call: OpId) -> Option<String> {
    let config = op_attribute(program, call, "backend_config")?;
    config.as_str().map(str::to_owned)
}

/// The name of the called function, if the key of `call` has it.
fn function_of(program: &Program, call: OpId) -> Option<String> {
    let key = key_of(program, call)?;
    let (name, _) = key.rsplit_once('#').filter(|(name, _)| !name.is_empty())?;
    Some(name.to_owned())
}

/// The name of `op`; for a `custom_partitioning` call with the function, since all functions have the same target.
pub fn called(program: &Program, op: OpId) -> Cow<'_, str> {
    let name = program.op_name(op);
    if !is_partitioned_call(program, op) {
        return Cow::Borrowed(name);
    }
    let function = function_of(program, op);
    Cow::Owned(format!("{name} @{}", function.as_deref().unwrap_or("custom_partitioning")))
}

/// The function of `call` in messages: its name, or the line that calls it.
pub(super) fn shown(program: &Program, call: OpId) -> String {
    if let Some(name) = function_of(program, call) {
        return format!("custom_partitioning function {name}");
    }
    match program.origin(program.text().get(program.loc(call))) {
        Some(Origin::Place(place)) => {
            format!("the custom_partitioning function called at {place}")
        }
        _ => "a custom_partitioning function".to_owned(),
    }
}

/// A hint how to give the function a sharding rule; `shapes` are those of `num_operands` operands and the results.
pub(super) fn rule_hint(shapes: &[Option<Vec<i64>>], num_operands: usize) -> String {
    let lower = "give shardcore.jax.lower the JAX function that calls it";
    let [Some(first), ..] = shapes else { return lower.to_owned() };
    let is_elementwise = shapes.iter().all(|shape| shape.as_ref() == Some(first));
    let Some(letters) = LETTERS.get(..first.len()).filter(|_| is_elementwise) else {
        return format!("give it one, def_partition(..., sharding_rule=...), or {lower}");
    };
    let list = |count: usize| vec![letters.join(" "); count].join(", ");
    let (operands, results) = (list(num_operands), list(shapes.len() - num_operands));
    format!(
        "give it one, def_partition(..., sharding_rule=\"{operands} -> {results}\") if it is elementwise, or {lower}"
    )
}

/// The names of factors in hints.
const LETTERS: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];

/// The mesh over which an operand or a result of `call` is sharded, or the first one of the program that has devices.
pub fn mesh_of(program: &Program, call: OpId) -> Option<MeshId> {
    let is_of_many = |&mesh: &MeshId| program.mesh(mesh).device_count() > 1;
    let values = program.operands(call).chain(program.op_results(call));
    let mut own = values.filter_map(|value| Some(program.visible_sharding(value)?.mesh));
    own.find(is_of_many).or_else(|| program.meshes().ids().find(is_of_many))
}

/// Replaces calls by manual computations; returns the created ops, each with its call. Calls with rules in `shard_rules` stay.
pub(super) fn put(
    program: &mut Program,
    context: &mut Context<'_>,
    programs: &LocalPrograms,
    shard_rules: &ShardRules,
) -> Result<FxHashMap<OpId, OpId>> {
    let mut made = FxHashMap::default();
    let mut note = |program: &mut Program, before: usize, call: OpId| {
        for op in (before..program.num_op_ids()).map(OpId::from_index) {
            program.set_cause(op, call);
            made.insert(op, call);
        }
    };
    for (call, local) in programs {
        let before = program.num_op_ids();
        if partition_callback::put(program, *call, local).is_none() {
            let what = shown(program, *call);
            let message = format!(
                "{what} cannot be partitioned: its partition does more than compute shards"
            );
            let problem = Diagnostic::new(Code::Unpartitionable, message).at_op(program, *call);
            return Err(problem.into());
        }
        note(program, before, *call);
    }
    let done: FxHashSet<OpId> = programs.iter().map(|(call, _)| *call).collect();
    let mut calls = partitioned_calls(program);
    calls.retain(|&call| {
        let is_ruled =
            program.signature(call).get().is_some_and(|id| shard_rules.contains_key(&id));
        !done.contains(&call) && !is_ruled
    });
    if calls.is_empty() {
        return Ok(made);
    }
    context.rules.prepare(program, false)?;
    for call in calls {
        let before = program.num_op_ids();
        if let Some(rule) = context.rules.rule(program, call).get() {
            let rule = program.rules()[rule].clone();
            by_sharding_rule::put(program, call, &rule);
        }
        note(program, before, call);
    }
    Ok(made)
}
