//! Shardings of block arguments that an op stores in an attribute: the owners of data-flow edges
//! that users gave to the op.
//!
//! Block arguments have no attributes. As `sdy.manual_computation` has `in_shardings`, the user
//! names an attribute of the op for them in
//! [`EdgeGroup::stored_in`](crate::ir::EdgeGroup::stored_in).
//!
//! Source: `getBlockArgumentEdgeOwnerShardings` and `setBlockArgumentEdgeOwnerShardings` of Shardy's
//! `ShardableDataFlowOpInterface`.

use crate::attribute::{read_sharding_per_value, write_sharding_per_value};
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::Program;
use crate::mlir::misfit;
use crate::sharding::TensorSharding;
use std::sync::Arc;

/// An attribute with shardings, and the block arguments that they belong to.
struct Stored {
    op: OpId,
    attribute: Arc<str>,
    values: Vec<ValueId>,
}

/// Gives block arguments the shardings that their ops store for them.
pub(super) fn read_stored(program: &mut Program) -> Result<()> {
    for stored in all(program) {
        let Stored { op, attribute, values } = stored;
        let Some(text) = program.attr(op, &attribute) else { continue };
        let text = program.resolved_alias(text).to_owned();
        let read = read_sharding_per_value(&text, 0, program)
            .map_err(|error| at_op(program, op, &attribute, error.diagnostics))?;
        if read.len() != values.len() && !read.is_empty() {
            let count = (read.len(), values.len());
            let message = format!("{} shardings of {} block arguments", count.0, count.1);
            let problem = Diagnostic::new(Code::InvalidSharding, message);
            return Err(at_op(program, op, &attribute, vec![problem]));
        }
        for (one, value) in read.into_iter().zip(values) {
            let ty = Some(program.type_of(value));
            let problems: Vec<Diagnostic> =
                one.problems.into_iter().chain(misfit(program, &one.sharding, ty)).collect();
            if !problems.is_empty() {
                return Err(at_op(program, op, &attribute, problems));
            }
            let sharding = program.intern_sharding(one.sharding);
            program.assign_sharding(value, sharding);
        }
    }
    Ok(())
}

/// Writes the shardings of block arguments into the attributes of their ops; if some argument of an
/// op has a sharding, those without one are written as open.
pub fn write_stored(program: &mut Program) {
    for stored in all(program) {
        let Stored { op, attribute, values } = stored;
        let ids: Vec<ShardingId> = values
            .iter()
            .map(|&value| program.sharding(program.shardable_value(value).unwrap_or(value)))
            .collect();
        let Some(mesh) = ids.iter().find_map(|&id| program.shardings().get(id)).map(|s| s.mesh)
        else {
            continue;
        };
        let sharding = |(&id, &value): (&ShardingId, &ValueId)| {
            let rank = program.value_type(value).rank().unwrap_or(0);
            let open = || TensorSharding::fully_replicated(mesh, rank, false);
            program.shardings().get(id).cloned().unwrap_or_else(open)
        };
        let shardings: Vec<TensorSharding> = ids.iter().zip(&values).map(sharding).collect();
        let mut text = String::from("#sdy.sharding_per_value<");
        write_sharding_per_value(&mut text, &shardings, program);
        text.push('>');
        if program.attr(op, &attribute) != Some(&text) {
            program.set_attr(op, &attribute, &text);
        }
    }
}

/// All such attributes of `program`, in program order.
fn all(program: &Program) -> Vec<Stored> {
    if !program.has_edge_specs() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for op in program.pre_order(program.module_op()) {
        let groups = program.edge_spec(op).map(|spec| spec.groups.iter());
        for group in groups.into_iter().flatten() {
            let Some(attribute) = group.stored_in.clone() else { continue };
            let owners = 0..group.num_edges(program, op);
            let values = owners.filter_map(|index| group.owner(program, op, index)).collect();
            found.push(Stored { op, attribute, values });
        }
    }
    found
}

fn at_op(program: &Program, op: OpId, attribute: &str, diagnostics: Vec<Diagnostic>) -> Error {
    let placed = diagnostics.into_iter().map(|mut diagnostic| {
        diagnostic.message =
            format!("{attribute} of {}: {}", program.op_name(op), diagnostic.message);
        diagnostic.detail = None;
        diagnostic.at_op(program, op)
    });
    Error { diagnostics: placed.collect() }
}
