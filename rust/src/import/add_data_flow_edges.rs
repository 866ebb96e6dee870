//! `sdy-add-data-flow-edges`: inserts an `sdy.data_flow_edge` on every value that owns a data-flow
//! edge.
//!
//! The edge op takes the sharding of the owner and represents all targets of the edge from here on.

use super::edge_ops;
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::{EdgeOwners, Program};

/// Runs the pass: inner ops first, and block arguments before results.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    for op in program.ops_with_edges_in_post_order() {
        let Some(spec) = context.rules.edges(program, op) else { continue };
        let groups: Vec<Vec<ValueId>> =
            spec.groups.iter().map(|group| owners(program, op, group.owners)).collect();
        for group in groups {
            edge_ops::add_data_flow_edges(program, group.into_iter());
        }
    }
    Ok(())
}

/// The values of `op` that own edges.
pub(super) fn owners(program: &Program, op: OpId, owners: EdgeOwners) -> Vec<ValueId> {
    match owners {
        EdgeOwners::Results => program.op_results(op).collect(),
        EdgeOwners::BlockArgs(region) => {
            let region = program.op_regions(op).nth(region as usize);
            let block = region.and_then(|region| program.region_entry(region).get());
            block.map_or_else(Vec::new, |block| program.block_args(block).collect())
        }
    }
}
