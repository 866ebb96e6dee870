//! `sdy-sink-data-flow-edges`: moves the sharding of each data-flow edge to its owner and erases
//! the edge op.
//!
//! An op has shardings for all its results (or arguments) or for none: if some edge has a sharding,
//! owners without one become fully open.

use crate::context::Context;
use crate::error::Result;
use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::{EdgeOwners, EdgeSpec, OpKind, Program, ValueDef};
use crate::shardy::Change;

/// Which debug attributes of edges are moved to their ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebugInfo {
    /// The origins of shardings: `sdy.sharding_origins`.
    pub sharding_origins: bool,
    /// The record of propagation steps: `sdy.propagation_edges`.
    pub propagation_edges: bool,
}

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    func: OpId,
    debug_info: DebugInfo,
) -> Result<()> {
    let has_edges =
        |op: &OpId| program.kind(*op) == OpKind::DataFlowEdge || program.edge_spec(*op).is_some();
    let may_have_edges = program.has_edge_specs()
        || program.has_any(&EdgeSpec::KINDS)
        || program.has_any(&[OpKind::DataFlowEdge]);
    if !may_have_edges {
        return Ok(());
    }
    let ops: Vec<OpId> = program.pre_order(func).filter(has_edges).collect();
    for op in ops {
        if program.kind(op) == OpKind::DataFlowEdge {
            program.replace_all_uses(program.result(op, 0), program.operand(op, 0));
            program.erase_op(op);
            continue;
        }
        let Some(spec) = context.rules.edges(program, op) else { continue };
        for (owners, prefix) in
            owner_groups(program, spec, op).into_iter().zip(["block_arg", "result"])
        {
            sink_shardings(program, op, owners.iter().copied());
            if debug_info.sharding_origins {
                sink_attr(program, op, &owners, prefix, ("sharding_origins", "{}"));
            }
            if debug_info.propagation_edges {
                let nothing = "#sdy.propagation_edges<[]>";
                sink_attr(program, op, &owners, prefix, ("propagation_edges", nothing));
            }
        }
    }
    Ok(())
}

/// Collects the attributes `sdy.<name>` of the edges that `owners` own in an attribute of `op`.
/// Since [`Change::DebugInfoOfAllEdges`], edges without the attribute are listed as `nothing`.
fn sink_attr(
    program: &mut Program,
    op: OpId,
    owners: &[ValueId],
    prefix: &str,
    (name, nothing): (&str, &str),
) {
    let attr = format!("sdy.{name}");
    let missing = program.shardy().has(Change::DebugInfoOfAllEdges).then_some(nothing);
    let of_edge = |&owner: &ValueId| {
        let edge = program.data_flow_edge(owner)?;
        program.attr(edge, &attr).filter(|value| !value.is_empty()).or(missing)
    };
    let values: Vec<&str> = owners.iter().filter_map(of_edge).collect();
    let list = format!("[{}]", values.join(", "));
    program.set_attr(op, &format!("sdy.{prefix}_{name}"), &list);
}

/// The owners of `op`'s edges, grouped by kind.
fn owner_groups(program: &Program, spec: &EdgeSpec, op: OpId) -> Vec<Vec<ValueId>> {
    let (mut args, mut results) = (Vec::new(), Vec::new());
    for group in spec.groups.iter() {
        let owners = (0..group.num_edges(program, op)).filter_map(|i| group.owner(program, op, i));
        match group.owners {
            EdgeOwners::BlockArgs(_) => args.extend(owners),
            EdgeOwners::Results => results.extend(owners),
        }
    }
    vec![args, results]
}

/// Gives `owners`, arguments or results of `op`, the shardings of their edges if some edge has one;
/// owners without one become fully open.
pub fn sink_shardings(
    program: &mut Program,
    op: OpId,
    owners: impl Iterator<Item = ValueId> + Clone,
) {
    let of_edge = |program: &Program, owner: ValueId| {
        let edge = program.data_flow_edge(owner);
        edge.map_or(ShardingId::NONE, |edge| program.sharding(program.result(edge, 0)))
    };
    let mut shardings = owners.clone().map(|owner| of_edge(program, owner));
    let Some(first) = shardings.find(|sharding| sharding.is_some()) else { return };
    let mesh: MeshId = program.mesh_of(first);
    for owner in owners {
        let mut sharding = of_edge(program, owner);
        if sharding.is_none() {
            sharding = program.replicated(mesh, program.type_of(owner), false);
        }
        let is_arg = matches!(program.def(owner), ValueDef::Arg(_));
        if is_arg && program.kind(op) == OpKind::ManualComputation {
            sharding = program.with_manual_axes(op, owner, sharding);
        }
        program.set_sharding(owner, sharding);
    }
}
