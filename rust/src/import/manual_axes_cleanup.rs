//! `sdy-manual-axes-cleanup`: sorts the manual axes of manual computations in mesh order, and adds
//! manual axes that an in- or out-sharding lacks to its replicated axes.

use super::mistake;
use crate::axis::{sort_and_merge, AxisRef};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::index::{MeshId, OpId, ValueId};
use crate::ir::{OpKind, Payload, Program, Type};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let mut diagnostics = Vec::new();
    for op in program.ops_in_post_order(&[OpKind::ManualComputation]) {
        let values = boundary(program, op);
        if values.is_empty() {
            if has_manual_axes(program, op) && !is_body_empty(program, op) {
                let message = "op has manual_axes when there are no in/out shardings and the body \
                               is not empty. This isn't allowed at this stage";
                let hint = "inputs and outputs say over which mesh the axes are: give it one";
                diagnostics.push(mistake(program, op, Code::InvalidOp, message).with_hint(hint));
            }
            continue;
        }
        let Some(mesh) = common_mesh(program, &values) else { continue };
        sort_manual_axes(program, op, mesh);
        for value in values {
            mention_manual_axes(program, op, value, mesh);
        }
    }
    Error::check(diagnostics)
}

/// The arguments of the body of `op` and its results: the values that have in- and out-shardings.
fn boundary(program: &Program, op: OpId) -> Vec<ValueId> {
    let body = program.op_regions(op).next().map(|region| program.region_entry(region));
    let args = body.filter(|body| body.is_some()).map(|body| program.block_args(body));
    args.into_iter().flatten().chain(program.op_results(op)).collect()
}

fn has_manual_axes(program: &Program, op: OpId) -> bool {
    matches!(program.payload(op), Some(Payload::ManualComputation(axes)) if !axes.is_empty())
}

/// Whether the body has only a return.
fn is_body_empty(program: &Program, op: OpId) -> bool {
    let body = program.op_regions(op).next().map(|region| program.region_entry(region));
    let first = body.filter(|body| body.is_some()).and_then(|body| program.block_ops(body).next());
    first.is_none_or(|first| program.kind(first) == OpKind::SdyReturn)
}

/// The mesh of the shardings of `values`: the first that is not empty, else the last.
fn common_mesh(program: &Program, values: &[ValueId]) -> Option<MeshId> {
    let is_empty = |mesh: &Mesh| mesh.axes.is_empty() && mesh.device_ids.is_empty();
    let mut common: Option<MeshId> = None;
    for &value in values {
        let mesh = program.mesh_of(program.sharding(value));
        if mesh.is_some() && common.is_none_or(|common| is_empty(program.mesh(common))) {
            common = Some(mesh);
        }
    }
    common
}

fn sort_manual_axes(program: &mut Program, op: OpId, mesh: MeshId) {
    let Some(Payload::ManualComputation(axes)) = program.payload(op) else { return };
    let place = |name: &crate::index::StrId| program.mesh(mesh).axis_by_name(program.str(*name));
    if !axes.is_sorted_by_key(place) {
        let mut axes = axes.clone();
        axes.sort_by_key(place);
        program.set_payload(op, Payload::ManualComputation(axes));
    }
}

/// Adds the manual axes that the sharding of `value` lacks to its replicated axes.
fn mention_manual_axes(program: &mut Program, op: OpId, value: ValueId, mesh: MeshId) {
    let is_tensor =
        matches!(program.value_type(value), Type::RankedTensor { .. } | Type::UnrankedTensor(_));
    let Some(old) = program.shardings().get(program.sharding(value)) else { return };
    if !is_tensor {
        return;
    }
    let Some(Payload::ManualComputation(names)) = program.payload(op) else { return };
    let mesh_row = program.mesh(mesh);
    let manual = names.iter().filter_map(|&name| mesh_row.axis_by_name(program.str(name)));
    let mut used: Vec<AxisRef> = old.axis_refs().collect();
    used.sort_by_key(|used| used.axis);
    let mut replicated = old.replicated.clone();
    for axis in manual {
        let start = used.partition_point(|used| used.axis < axis);
        let end = used.partition_point(|used| used.axis <= axis);
        push_unused_parts(&mut replicated, AxisRef::full(axis), &used[start..end], mesh_row);
    }
    if replicated.len() == old.replicated.len() {
        return;
    }
    sort_and_merge(&mut replicated, mesh_row);
    let new = TensorSharding { mesh, replicated, ..old.clone() };
    let new = program.intern_sharding(new);
    program.set_sharding(value, new);
}

/// Appends to `to` the parts of `axis` that overlap none of `used`.
fn push_unused_parts(to: &mut Vec<AxisRef>, axis: AxisRef, used: &[AxisRef], mesh: &Mesh) {
    let mut rest = Some(axis);
    while let Some(axis) = rest {
        let overlapping = used.iter().filter(|other| axis.overlaps(**other));
        let Some(&first) = overlapping.min_by_key(|other| other.pre_size()) else {
            to.push(axis);
            return;
        };
        to.extend(axis.prefix_without_overlap(first));
        rest = axis.suffix_without_overlap(first, mesh);
    }
}
