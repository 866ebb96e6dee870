//! Text and verification of the `sdy` dialect's attributes: meshes, shardings, axis lists, rules.
//!
//! All `#sdy...<...>` attributes are parsed here, with or without their names, verified, and
//! printed exactly as by the reference. Parsers take the text of one whole attribute and its offset
//! in the program's text, for the spans of errors. They never panic and are not recursive.
//!
//! Shardings refer to meshes and axes by id, so parsing one takes a [`MeshScope`] to look names up
//! in. `verify_*` functions work on values from any source and return all errors.
//!
//! Source: Shardy's attribute definitions, their assembly formats and verifiers.

mod array;
mod axis;
mod cursor;
mod digit_groups;
mod form;
mod mesh;
mod named_axes;
mod parameter;
mod problem;
mod propagation_edges;
mod quote;
mod rule;
mod rule_check;
mod rule_reader;
mod scope;
mod sharding;
mod sharding_rules;
#[cfg(test)]
mod sharding_tests;
mod standalone_scope;
mod too_new;

pub use array::split_array;
pub use axis::{
    parse_all_to_all, parse_axes_per_dim, parse_axis_list, parse_free_axis, parse_manual_axes,
    unknown_axis, write_all_to_all, write_axes, write_axes_per_dim, write_axis, write_axis_list,
    write_free_axis, write_manual_axes, AllToAllParam,
};
pub use cursor::{is_no_token, names_itself, Cursor, Wrapping};
pub use digit_groups::{parse_digit_groups, write_digit_groups};
pub use form::{syntax_error, Form};
pub use mesh::{
    drop_default_device_ids, parse_mesh, parse_mesh_dictionary, verify_mesh, write_mesh,
    MAX_DEVICES,
};
pub use problem::{Part, Problem};
pub use propagation_edges::{
    last_step, parse_propagation_edges, verify_propagation_edges, write_propagation_edges,
    AxisPropagation, EdgeValueRef, PropagationStep,
};
pub use quote::{write_key, write_string, write_symbol};
pub use rule::{factor_symbol, write_rule};
pub use rule_check::{verify_rule, verify_rule_ranks, verify_rule_shapes};
pub use rule_reader::{parse_lone_rule, parse_rule, read_rule, ReadRule};
pub use scope::MeshScope;
pub use sharding::{
    parse_dim, parse_sharding, parse_sharding_per_value, read_lone_sharding,
    read_sharding_per_value, write_dim, write_sharding, write_sharding_of,
    write_sharding_per_value, ReadSharding,
};
pub use sharding_rules::{not_maximal, rank_problem, verify_axes, verify_sharding};
pub use standalone_scope::StandaloneScope;
pub use too_new::too_new;

use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;
use crate::sharding::TensorSharding;

/// `<["x"=2, "y"=4], device_ids=[...]>`; callers add `#sdy.mesh` if needed.
pub fn print_mesh(mesh: &Mesh) -> String {
    let mut out = String::new();
    write_mesh(&mut out, mesh);
    out
}

/// `<@mesh, [{"x"}, {?}], replicated={"y"}>`; callers add `#sdy.sharding` if needed.
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
