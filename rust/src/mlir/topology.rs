//! Meshes of a pipeline: the topology of a function, and the mesh of a tensor.

use super::cursor::Cursor;
use super::grammar::{skip_attribute, skip_type};
use crate::attribute::parse_mesh;
use crate::index::{OpId, TypeId};
use crate::ir::{OpKind, Program, Type};
use crate::mesh::Mesh;

/// The attribute of a function with its topology.
pub const TOPOLOGY: &str = "topology";

/// A type of tensors on a mesh.
#[derive(Clone, Copy, Debug)]
pub struct MeshTensor<'p> {
    /// The name of the mesh.
    pub mesh: &'p str,
    /// The type of the tensor.
    pub tensor: TypeId,
    /// The sharding, `<@mesh, [{"x"}]>`.
    pub sharding: Option<&'p str>,
    /// Its memory kind.
    pub memory_kind: Option<&'p str>,
}

impl<'p> MeshTensor<'p> {
    /// The parts of type `ty`; `None` if it is another type.
    pub fn of(program: &'p Program, ty: TypeId) -> Option<Self> {
        let Type::MeshTensor { tensor, text, .. } = program.types()[ty] else { return None };
        let mut cursor = Cursor::new(program.str(text), "!mpmd.mesh_tensor<".len());
        let mesh = cursor.string().ok()?;
        cursor.expect(b',').ok()?;
        cursor.skip_space();
        skip_type(&mut cursor).ok()?;
        let mut found = Self { mesh, tensor, sharding: None, memory_kind: None };
        while cursor.eat(b',') {
            cursor.skip_space();
            let key = cursor.name();
            cursor.expect(b'=').ok()?;
            let start = cursor.pos;
            if key == "sharding" {
                cursor.skip_balanced().ok()?;
                found.sharding = Some(cursor.since(start));
            } else {
                skip_attribute(&mut cursor).ok()?;
                let text = cursor.since(start).strip_prefix('"')?;
                found.memory_kind = text.rsplit_once('"').map(|(kind, _)| kind);
            }
        }
        Some(found)
    }
}

/// The meshes of the topology of `function`, with their names; `None` if it has no topology.
pub fn topology(program: &Program, function: OpId) -> Option<Vec<(&str, Mesh)>> {
    let text = program.resolved_alias(program.attr(function, TOPOLOGY)?.trim());
    if !super::text_is_of(text, "mpmd", TOPOLOGY) {
        return None;
    }
    let mut cursor = Cursor::new(text, text.find(TOPOLOGY)? + TOPOLOGY.len());
    cursor.expect(b'<').ok()?;
    let mut meshes = Vec::new();
    loop {
        cursor.skip_space();
        let start = cursor.pos;
        if cursor.peek() == b'#' {
            skip_attribute(&mut cursor).ok()?;
        } else {
            cursor.skip_balanced().ok()?;
        }
        meshes.push(named_mesh(program, cursor.since(start))?);
        if !cursor.eat(b',') {
            return Some(meshes);
        }
    }
}

/// `<"name" : <["x"=2]>>`, or the whole attribute.
fn named_mesh<'p>(program: &'p Program, text: &'p str) -> Option<(&'p str, Mesh)> {
    let text = program.resolved_alias(text);
    let mut cursor = Cursor::new(text, text.find('"')?);
    let name = cursor.string().ok()?;
    cursor.expect(b':').ok()?;
    cursor.skip_space();
    let start = cursor.pos;
    if cursor.peek() == b'#' {
        skip_attribute(&mut cursor).ok()?;
    } else {
        cursor.skip_balanced().ok()?;
    }
    let mesh = program.resolved_alias(cursor.since(start)).trim();
    Some((name, parse_mesh(mesh, 0).ok()?))
}

/// The function that `op` is in.
pub fn function_around(program: &Program, op: OpId) -> Option<OpId> {
    let mut parents = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
    parents.find(|&op| program.kind(op) == OpKind::Func)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let text = r#"#m = #sdy.mesh<["y"=4]>
!t = tensor<8xf32>
func.func @f(%a: !mpmd<mesh_tensor<"m1",!t , sharding = <@mesh,[{"x"}]>,memory_kind="device">>)
    attributes {topology = #mpmd.topology<<"m1": <["x"=2]>>, #mpmd.named_mesh<"m2" : #m>>} {
  return
}"#;
        let program = crate::mlir::parse(text.into()).unwrap();
        let function = program.first_op(program.module_block());
        let meshes = topology(&program, function).unwrap();
        let sizes = meshes.iter().map(|(name, mesh)| (*name, mesh.axes[0].size));
        assert!(sizes.eq([("m1", 2), ("m2", 4)]));
        let id = program.functions_in_order()[0];
        let ty = program.func_args(id)[0].ty;
        let found = MeshTensor::of(&program, ty).unwrap();
        assert_eq!(program.type_text(found.tensor), "tensor<8xf32>");
        assert_eq!((found.mesh, found.memory_kind), ("m1", Some("device")));
        assert_eq!(found.sharding, Some("<@mesh, [{\"x\"}]>"));
    }
}
