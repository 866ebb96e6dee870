//! Meshes in the replica groups of collectives.
//!
//! `replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<...>, axes = [...]>` names
//! groups of devices by axes of a mesh; lifting gives that mesh a name too, and inlining writes it out. A mesh that is described
//! this way gets a new op even if there is an equal mesh, as in the reference.

use super::lift_inlined_meshes::{device_id_elements, mesh_ops, Lifting};
use crate::attribute::{parse_mesh, write_string};
use crate::index::{OpId, StrId};
use crate::ir::Program;
use crate::mesh::{Mesh, MeshAxis};
use crate::mlir::field;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The collectives in the order in which the reference visits them.
const COLLECTIVES: [&str; 5] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.reduce_scatter",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
];
const ATTR: &str = "replica_groups";
const BY_AXES: &str = "#stablehlo.replica_group_mesh_axes<";

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
    ops.sort_by_key(|&(place, _)| place);
    for (_, op) in ops {
        if let Some(text) = with_named_mesh(program, lifting, op) {
            program.set_attr(op, ATTR, &text);
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
            program.set_attr(op, ATTR, &text);
        }
    }
}

/// The replica groups of `op` with its mesh instead of the mesh's name, if there is one.
fn with_described_mesh(
    program: &Program,
    described: &FxHashMap<StrId, String>,
    op: OpId,
) -> Option<String> {
    let text = resolved(program, program.attr(op, ATTR)?);
    if !text.starts_with(BY_AXES) {
        return None;
    }
    let (start, end) = field(text, "mesh")?;
    let name = resolved(program, &text[start..end]).strip_prefix('@')?;
    let mesh = described.get(&program.strings().find(name.trim_matches('"'))?)?;
    Some(format!("{}{mesh}{}", &text[..start], &text[end..]))
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

/// The replica groups of `op` after lifting, if that changes them.
fn with_named_mesh(program: &mut Program, lifting: &mut Lifting, op: OpId) -> Option<String> {
    let text = resolved(program, program.attr(op, ATTR)?);
    if !text.starts_with(BY_AXES) {
        return None;
    }
    let (start, end) = field(text, "mesh")?;
    let value = resolved(program, &text[start..end]);
    let name = if let Some(name) = value.strip_prefix('@') {
        let name = program.strings().find(name.trim_matches('"'))?;
        lifting.kept_name(name)?
    } else if value.starts_with("#sdy.mesh<") {
        let mesh = parse_mesh(value.strip_prefix("#sdy.mesh")?, 0).ok()?;
        let text = text.to_owned();
        let name = lifting.name_of_mesh(program, mesh, program.loc(op));
        return Some(replaced(program.str(name), &text, (start, end)));
    } else {
        let (mesh, key) = (described_mesh(value)?, value.replace(char::is_whitespace, ""));
        let text = text.to_owned();
        let name = lifting.name_of_description(program, key, mesh, program.loc(op));
        return Some(replaced(program.str(name), &text, (start, end)));
    };
    Some(replaced(program.str(name), text, (start, end)))
}

fn replaced(name: &str, text: &str, (start, end): (usize, usize)) -> String {
    format!("{}@{name}{}", &text[..start], &text[end..])
}

/// `text`, or its definition if it is an alias.
fn resolved<'a>(program: &'a Program, text: &'a str) -> &'a str {
    let alias = program.strings().find(text).and_then(|name| program.alias(name));
    alias.map_or(text, |span| program.text().get(span)).trim()
}

/// The mesh that `#stablehlo.mesh<axes = [<name = "x", size = 2>, ...]>` describes; its device ids are
/// dropped.
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
