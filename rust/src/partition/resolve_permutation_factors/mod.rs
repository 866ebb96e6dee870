//! `sdy-resolve-permutation-factors`: makes shardings of dims that need a permutation of data explicit.
//!
//! A reverse is done by the devices in reverse order, see [`reverse`]; any other op gets reshards around it
//! that replicate the dims in question.
//!
//! Source: Shardy's `resolve_permutation_factors`.

mod halo;
mod reverse;

use super::insert_explicit_reshards::tensors::common_mesh;
use super::insert_explicit_reshards::{apply, Plan};
use crate::context::{Context, RuleSource};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FactorId, Id, MeshId, OpId, RuleId, ShardingId};
use crate::ir::{OpKind, OpTraits, Payload, Program, SymbolTable};
use crate::mesh::Mesh;
use crate::projection::Projection;
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;

/// The named mesh of each mesh that has been seen.
type NamedMeshes = FxHashMap<Mesh, MeshId>;

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context, enable_halo_exchange: bool) -> Result<()> {
    context.rules.prepare(program, false)?;
    let mut symbols = SymbolTable::new(program);
    let mut meshes = NamedMeshes::default();
    let ops: Vec<OpId> = program.block_ops(program.module_block()).collect();
    for op in ops {
        if let Some(&Payload::Mesh(mesh)) = program.payload(op) {
            meshes.insert(program.mesh(mesh).clone(), mesh);
        }
    }
    let ops: Vec<OpId> = program.post_order(program.module_op()).collect();
    for op in ops {
        let Some(rule) = permuting_rule(program, &*context.rules, op) else { continue };
        let is_reversed = enable_halo_exchange
            && program.op_name(op) == "stablehlo.reverse"
            && reverse::resolve(program, op, &mut symbols, &mut meshes);
        if !is_reversed {
            let rule = program.rules()[rule].clone();
            replicate(program, op, &rule)?;
        }
    }
    Ok(())
}

/// The rule of `op` if it has permutation factors.
fn permuting_rule(program: &Program, rules: &dyn RuleSource, op: OpId) -> Option<RuleId> {
    let is_candidate = program.op_name(op).starts_with("stablehlo.")
        && !program.has_traits(op, OpTraits::TERMINATOR);
    let rule = if is_candidate { rules.rule(program, op).get()? } else { return None };
    let row = &program.rules()[rule];
    (!row.is_custom && !row.permutation.is_empty()).then_some(rule)
}

/// The shardings of the operands and then of the results of `op`.
fn shardings_of(program: &mut Program, op: OpId) -> Vec<ShardingId> {
    let operands = program.operands(op);
    let values: Vec<_> = operands.chain(program.op_results(op)).collect();
    values.into_iter().map(|value| program.sharding_of(value)).collect()
}

/// Reshards operands and results of `op` so that its permutation factors are not sharded.
fn replicate(program: &mut Program, op: OpId, rule: &OpShardingRule) -> Result<()> {
    let shardings = shardings_of(program, op);
    let Some(mesh) = common_mesh(program, &shardings) else {
        return Ok(());
    };
    if program.mesh(mesh).is_maximal() {
        return Ok(());
    }
    let given = shardings.iter().map(|&id| program.shardings().get(id));
    let mut projection = Projection::build(rule, given, program.mesh(mesh), true);
    let mut updates = vec![false; shardings.len()];
    for &factor in &rule.permutation {
        if program.kind(op) == OpKind::Slice
            && !needs_communication(program, op, factor, &shardings, mesh)?
        {
            continue;
        }
        projection.update(factor, &[], |tensor| updates[tensor] = true);
    }
    if updates.contains(&true) {
        let plan = Plan::from_table(program, &projection, (&shardings, mesh), rule, &updates);
        apply(program, op, &plan);
    }
    Ok(())
}

/// Whether slice `op` along the dim with the number of `factor` moves data between shards.
fn needs_communication(
    program: &Program,
    op: OpId,
    factor: FactorId,
    shardings: &[ShardingId],
    mesh: MeshId,
) -> Result<bool> {
    let [input, output] = shardings else { return Ok(true) };
    if input != output {
        let message = "the operand and the result of a slice have different shardings";
        let hint = "insert explicit reshards first";
        let problem = Diagnostic::new(Code::InvalidSharding, message).at_op(program, op);
        return Err(problem.with_hint(hint).into());
    }
    let dim = factor.index();
    let axes = program.shardings().get(*input).and_then(|sharding| sharding.dims.get(dim));
    let shards = axes.map_or(1, |dim| crate::axis::total_size(&dim.axes, program.mesh(mesh)));
    if shards <= 1 {
        return Ok(false);
    }
    let attributes = crate::mlir::signature_attributes(program, program.signature(op));
    let number = |name: &str| {
        let list = attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        list?.as_ints()?.get(dim).copied()
    };
    if number("start_indices") != Some(0) || number("strides").unwrap_or(1) != 1 {
        return Ok(true);
    }
    let size = |value| {
        let shape = program.value_type(value).static_shape();
        shape.and_then(|shape| shape.get(dim).copied())
    };
    let (Some(input), Some(output)) = (size(program.operand(op, 0)), size(program.result(op, 0)))
    else {
        return Ok(true);
    };
    let ceil = |size: i64| size / shards + i64::from(size % shards != 0);
    Ok(ceil(input) != ceil(output))
}
