//! Text and verification of the `sdy` dialect's attributes: meshes, shardings, axis lists, rules.
//!
//! Everything that a user wrote as `#sdy...<...>` is read here, with or without its name in front,
//! verified, and printed exactly as the reference prints it. Parsers take the text of one whole
//! attribute and the offset of that text in the program's, so that errors point at the right bytes.
//! They never panic and never recurse, whatever the text.
//!
//! Shardings hold meshes and axes by id, so reading one takes a [`MeshScope`] to look names up in.
//! `verify_*` functions work on values wherever they come from and say everything that is wrong.
//!
//! Source: Shardy's attribute definitions, their assembly formats and verifiers.

mod array;
mod axis;
mod cursor;
mod form;
mod lone;
mod mesh;
mod parameter;
mod problem;
mod propagation_edges;
mod quote;
mod rule;
mod rule_check;
mod rule_reader;
mod sharding;
mod sharding_rules;
#[cfg(test)]
mod sharding_tests;

pub use array::split_array;
pub use axis::{
    parse_all_to_all, parse_axes_per_dim, parse_axis_list, parse_free_axis, parse_manual_axes,
    unknown_axis, write_all_to_all, write_axes, write_axes_per_dim, write_axis, write_axis_list,
    write_free_axis, write_manual_axes, AllToAllParam,
};
pub use cursor::{is_no_token, names_itself, Cursor, Wrapping};
pub use form::{syntax_error, Form};
pub use lone::LoneScope;
pub use mesh::{drop_default_device_ids, parse_mesh, verify_mesh, write_mesh, MAX_DEVICES};
pub use problem::{Part, Problem};
pub use propagation_edges::{
    last_step, parse_propagation_edges, verify_propagation_edges, write_propagation_edges,
    AxisPropagation, EdgeValueRef, PropagationStep,
};
pub use quote::{write_key, write_string, write_symbol};
pub use rule::{factor_symbol, write_rule};
pub use rule_check::{verify_rule, verify_rule_ranks, verify_rule_shapes};
pub use rule_reader::{parse_lone_rule, parse_rule, read_rule, ReadRule};
pub use sharding::{
    parse_dim, parse_sharding, read_lone_sharding, read_sharding_per_value, write_dim,
    write_sharding, write_sharding_of, write_sharding_per_value, ReadSharding,
};
pub use sharding_rules::{rank_problem, verify_axes, verify_sharding};

use crate::error::{Code, Diagnostic};
use crate::index::MeshId;
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::rule::OpShardingRule;
use crate::sharding::TensorSharding;
use crate::suggest;

/// `<["x"=2, "y"=4], device_ids=[...]>`; callers put `#sdy.mesh` in front where needed.
pub fn print_mesh(mesh: &Mesh) -> String {
    let mut out = String::new();
    write_mesh(&mut out, mesh);
    out
}

/// `<@mesh, [{"x"}, {?}], replicated={"y"}>`; callers put `#sdy.sharding` in front where needed.
pub fn print_sharding(sharding: &TensorSharding, scope: &dyn MeshScope) -> String {
    let mut out = String::new();
    write_sharding(&mut out, sharding, scope);
    out
}

/// `[<@mesh, [{"x"}]>, <@mesh, [{}]>]`; the full form is `#sdy.sharding_per_value<[...]>`.
pub fn print_sharding_per_value<'a>(
    shardings: impl IntoIterator<Item = &'a TensorSharding>,
    scope: &dyn MeshScope,
) -> String {
    let mut out = String::new();
    write_sharding_per_value(&mut out, shardings, scope);
    out
}

/// `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>`.
pub fn print_rule(rule: &OpShardingRule) -> String {
    let mut out = String::new();
    write_rule(&mut out, rule);
    out
}

/// What names in an attribute stand for.
pub trait MeshScope {
    /// The mesh called `symbol` (without `@`).
    fn by_symbol(&mut self, symbol: &str) -> Option<MeshId>;
    /// The id of an inlined mesh.
    fn inlined(&mut self, mesh: Mesh) -> MeshId;
    /// The mesh of `id`.
    fn mesh(&self, id: MeshId) -> &Mesh;
    /// The symbol of `id`, `None` for an inlined mesh.
    fn symbol(&self, id: MeshId) -> Option<&str>;
    /// The symbols of meshes, for hints; of the first ones if there are very many.
    fn symbols(&self) -> Vec<&str> {
        Vec::new()
    }
    /// The text of attribute alias `name` (with `#`), and where it stands.
    fn alias(&self, _name: &str) -> Option<(String, u32)> {
        None
    }
    /// The complaint that there is no mesh called `symbol`.
    fn unknown_mesh(&self, symbol: &str) -> Diagnostic {
        let mut message = "unknown mesh: ".to_owned();
        write_symbol(&mut message, symbol);
        let mut diagnostic = Diagnostic::new(Code::UnknownMesh, message);
        diagnostic.hint = suggest::hint(symbol, self.symbols(), |name| format!("@{name}"));
        diagnostic
    }
}

impl MeshScope for Program {
    fn by_symbol(&mut self, symbol: &str) -> Option<MeshId> {
        self.mesh_by_symbol(self.strings.find(symbol)?)
    }
    fn inlined(&mut self, mesh: Mesh) -> MeshId {
        self.meshes.inlined(&mesh)
    }
    fn mesh(&self, id: MeshId) -> &Mesh {
        &self.meshes[id].mesh
    }
    fn symbol(&self, id: MeshId) -> Option<&str> {
        self.meshes[id].symbol.map(|symbol| self.strings.get(symbol))
    }
    fn symbols(&self) -> Vec<&str> {
        let symbols = self.meshes.ids().filter_map(|id| self.symbol(id));
        symbols.take(suggest::MAX_CANDIDATES).collect()
    }
    fn alias(&self, name: &str) -> Option<(String, u32)> {
        let span = *self.aliases.get(&self.strings.find(name)?)?;
        Some((self.text.get(span).to_owned(), span.start))
    }
}
