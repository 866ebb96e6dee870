//! Replica groups of a collective that are given by mesh axes:
//!
//! `replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`.
//!
//! JAX emits them since 0.11. Axis references are attributes of `StableHLO` or, in Shardy's own
//! lowering until jaxlib 0.10, of `sdy`.

use super::escapes::unescaped;
use super::grammar::field;
use crate::axis::AxisRef;
use crate::index::OpId;
use crate::ir::Program;
use crate::mesh::Mesh;

/// The attribute of collectives with the replica groups.
pub const REPLICA_GROUPS: &str = "replica_groups";

/// The text of a collective's replica groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupsByAxes<'a> {
    /// The attribute.
    text: &'a str,
    /// The range of the mesh in `text`.
    mesh: (usize, usize),
    /// `@mesh`, or an inline mesh.
    pub mesh_text: &'a str,
}

impl<'a> GroupsByAxes<'a> {
    /// The groups of `op`; `None` if it has none, or lists device ids.
    pub fn of(program: &'a Program, op: OpId) -> Option<Self> {
        let text = resolved(program, program.attr(op, REPLICA_GROUPS)?);
        if !text.starts_with("#stablehlo.replica_group_mesh_axes<") {
            return None;
        }
        let mesh = field(text, "mesh")?;
        Some(Self { text, mesh, mesh_text: resolved(program, &text[mesh.0..mesh.1]) })
    }
    /// The name of the mesh, if it has one.
    pub fn symbol(&self) -> Option<&'a str> {
        self.mesh_text.strip_prefix('@').map(|symbol| symbol.trim_matches('"'))
    }
    /// The parts of the attribute before its mesh and after it.
    pub fn around_mesh(&self) -> (&'a str, &'a str) {
        (&self.text[..self.mesh.0], &self.text[self.mesh.1..])
    }
    /// The attribute with `mesh` as its mesh.
    pub fn with_mesh(&self, mesh: &str) -> String {
        let (before, after) = self.around_mesh();
        format!("{before}{mesh}{after}")
    }
    /// The axes, major to minor within a group, on `mesh`; `None` if it lacks an axis.
    pub fn axes(&self, mesh: &Mesh) -> Option<Vec<AxisRef>> {
        let (start, end) = field(self.text, "axes")?;
        // Names are quoted, and the text between two names has only the sub-axis of the first.
        let mut parts = self.text[start..end].split('"').skip(1);
        let mut axes = Vec::new();
        while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
            let axis = mesh.axis_by_name(&unescaped(name))?;
            let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty());
            let numbers: Vec<i64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
            let whole = mesh.axis_size(axis);
            axes.push(match numbers[..] {
                [] => AxisRef::full(axis),
                [pre_size, size] if size > 1 && is_part(pre_size, size, whole) => {
                    AxisRef::sub(axis, pre_size, size)
                }
                _ => return None,
            });
        }
        Some(axes)
    }
}

/// Whether an axis of size `whole` has the sub-axis `(pre_size)size`.
fn is_part(pre_size: i64, size: i64, whole: i64) -> bool {
    let end = pre_size.checked_mul(size);
    pre_size > 0 && size < whole && end.is_some_and(|end| end > 0 && whole % end == 0)
}

/// `text`, or its definition if it is an alias.
fn resolved<'a>(program: &'a Program, text: &'a str) -> &'a str {
    let alias = program.strings().find(text).and_then(|name| program.alias(name));
    alias.map_or(text, |span| program.text().get(span)).trim()
}
