//! Meshes in the replica groups of collectives.
//!
//! `replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<...>, axes = [...]>`
//! gives groups of devices by axes of a mesh. Lifting gives that mesh a name too, and inlining
//! replaces the name by the mesh. As in the reference, a mesh in this form gets a new op even if
//! there is an equal mesh.

use super::lift_inlined_meshes::{device_id_elements, mesh_ops, Lifting};
use crate::attribute::{parse_mesh, write_string};
use crate::index::{OpId, StrId};
use crate::ir::Program;
use crate::mesh::{Mesh, MeshAxis};
use crate::mlir::{field, GroupsByAxes, REPLICA_GROUPS};
use crate::shardy::Change;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The collectives in the order in which the reference visits them before [`Change::ReplicaGroupsInOrder`].
const COLLECTIVES: [&str; 5] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.reduce_scatter",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
];

/// Replaces the meshes in the replica groups of all collectives by their names.
pub(super) fn lift(program: &mut Program, lifting: &mut Lifting) {
    let names: Vec<StrId> =
        COLLECTIVES.iter().filter_map(|name| program.strings().find(name)).collect();
    if names.is_empty() {
        return;
    }
    let place = |op: OpId| names.iter().position(|&name| program.op_name_id(op) == name);
    let mut ops: Vec<(usize, OpId)> = program
        .post_order(program.module_op())
        .filter_map(|op| place(op).map(|place| (place, op)))
        .collect();
    if !program.shardy().has(Change::ReplicaGroupsInOrder) {
        ops.sort_by_key(|&(place, _)| place);
    }
    for (_, op) in ops {
        if let Some(text) = with_named_mesh(program, lifting, op) {
            program.set_attr(op, REPLICA_GROUPS, &text);
        }
    }
}

/// Replaces the names of meshes in the replica groups of all ops by the meshes.
pub(super) fn inline(program: &mut Program) {
    let ops: Vec<OpId> = program.post_order(program.module_op()).collect();
    let described: FxHashMap<StrId, String> = mesh_ops(program)
        .into_iter()
        .filter_map(|(_, id)| {
            let mesh = &program.meshes()[id];
            Some((mesh.symbol?, description(program.mesh(id))))
        })
        .collect();
    for op in ops {
        if let Some(text) = with_described_mesh(program, &described, op) {
            program.set_attr(op, REPLICA_GROUPS, &text);
        }
    }
}

/// The replica groups of `op` with its mesh in place of the mesh's name, if it has one.
fn with_described_mesh(
    program: &Program,
    described: &FxHashMap<StrId, String>,
    op: OpId,
) -> Option<String> {
    let groups = GroupsByAxes::of(program, op)?;
    let mesh = described.get(&program.strings().find(groups.symbol()?)?)?;
    Some(groups.with_mesh(mesh))
}

/// `mesh` as an attribute of `StableHLO`.
fn description(mesh: &Mesh) -> String {
    let mut text = String::from("#stablehlo.mesh<axes = [");
    for (index, axis) in mesh.axes.iter().enumerate() {
        text.push_str(if index == 0 { "<name = " } else { ", <name = " });
        write_string(&mut text, &axis.name);
        let _ = write!(text, ", size = {}>", axis.size);
    }
    text.push(']');
    if !mesh.device_ids.is_empty() {
        let _ = write!(text, ", device_ids = {}", device_id_elements(mesh));
    }
    text.push('>');
    text
}

/// The replica groups of `op` after lifting, if they change.
fn with_named_mesh(program: &mut Program, lifting: &mut Lifting, op: OpId) -> Option<String> {
    let groups = GroupsByAxes::of(program, op)?;
    if let Some(symbol) = groups.symbol() {
        let name = lifting.kept_name(program.strings().find(symbol)?)?;
        return Some(groups.with_mesh(&format!("@{}", program.str(name))));
    }
    let value = groups.mesh_text.to_owned();
    let (before, after) = groups.around_mesh();
    let (before, after) = (format!("{before}@"), after.to_owned());
    let loc = program.loc(op);
    let name = if let Some(mesh) = value.strip_prefix("#sdy.mesh") {
        lifting.name_of_mesh(program, parse_mesh(mesh, 0).ok()?, loc)
    } else {
        let mesh = described_mesh(&value)?;
        lifting.name_of_description(program, value.replace(char::is_whitespace, ""), mesh, loc)
    };
    Some(before + program.str(name) + &after)
}

/// The mesh described by `#stablehlo.mesh<axes = [<name = "x", size = 2>, ...]>`; its device ids
/// are dropped.
fn described_mesh(text: &str) -> Option<Mesh> {
    let (start, end) = field(text, "axes")?;
    let mut axes = Vec::new();
    for axis in text[start..end].split_inclusive('>').filter(|part| part.ends_with('>')) {
        let value = |name| field(axis, name).map(|(start, end)| &axis[start..end]);
        let name = value("name")?.trim_matches('"').into();
        axes.push(MeshAxis { name, size: value("size")?.parse().ok()? });
    }
    Some(Mesh::new(axes, Vec::new()))
}
