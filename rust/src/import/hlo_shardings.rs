//! Replaces annotations in GSPMD's notation by `sdy` shardings over one mesh.
//!
//! `python/shardcore/gspmd` converts the notation. Shardings of arguments, results and ops are
//! converted; a custom call `@Sharding` becomes an `sdy.sharding_constraint`, or an
//! `sdy.sharding_group` if it is in a shard group; manual bodies become `sdy.manual_computation`s
//! ([`hlo_manual`](super::hlo_manual)).
//!
//! Source: JAX's lowerings with and without Shardy.

use super::hlo_annotations::{Annotation, Site, HLO_SHARDING};
use super::hlo_bodies::{Boundaries, Boundary};
use super::hlo_manual::make_manual_computations;
use crate::attribute::parse_sharding;
use crate::error::Result;
use crate::index::{FuncId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Payload, Place, Program, SymbolTable};
use crate::mesh::Mesh;

/// The `sdy` shardings of an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// For each value a sharding in the syntax of `sdy`, if any.
    pub shardings: Vec<Option<String>>,
    /// For each value its shard group, if any.
    pub groups: Vec<Option<i64>>,
    /// The manual axes, if the annotation starts a manual body.
    pub manual_axes: Vec<String>,
}

/// The symbol of the mesh, if the program has only one; replica groups refer to it.
pub fn only_mesh(program: &Program) -> Option<StrId> {
    let symbols: Vec<StrId> = program.meshes().iter().filter_map(|mesh| mesh.symbol).collect();
    <[StrId; 1]>::try_from(symbols).ok().map(|[only]| only)
}

/// A new symbol for a mesh: `mesh`, with a suffix if that is taken.
pub fn mesh_symbol(program: &mut Program) -> StrId {
    let wanted = program.intern("mesh");
    SymbolTable::new(program).reserve(program, wanted, FuncId::NONE)
}

/// Replaces `annotations` by `meanings`, whose shardings are over `mesh`. The mesh is called
/// `symbol` and is added if the program lacks it.
pub fn apply(
    program: &mut Program,
    annotations: &[Annotation],
    meanings: &[Meaning],
    mesh: Mesh,
    symbol: StrId,
) -> Result<()> {
    if program.mesh_by_symbol(symbol).is_none() {
        let at = InsertPoint::at(Place::Start(program.module_block()));
        program.create_mesh(symbol, mesh, at);
    }
    let mut boundaries = Boundaries::default();
    for (annotation, meaning) in annotations.iter().zip(meanings) {
        let mut shardings = Vec::with_capacity(meaning.shardings.len());
        for text in &meaning.shardings {
            shardings.push(match text {
                Some(text) => {
                    let sharding = parse_sharding(text, 0, program)?;
                    program.intern_sharding(sharding)
                }
                None => ShardingId::NONE,
            });
        }
        let first = shardings.first().copied().unwrap_or_default();
        let group = meaning.groups.first().copied().flatten();
        match annotation.site {
            Site::Argument(func, index) => set_argument(program, func, index, first, group),
            Site::Result(func, index) => set_result(program, func, index, first),
            Site::Op(op) => set_results(program, op, shardings, &meaning.groups),
            Site::Constraint(op) => constrain(program, op, first, group),
            Site::ToShards(op) => {
                let axes = meaning.manual_axes.iter().map(|axis| program.intern(axis));
                let boundary = Boundary { is_start: true, sharding: first, axes: axes.collect() };
                boundaries.insert(op, boundary);
            }
            Site::ToFull(op) => {
                let boundary = Boundary { is_start: false, sharding: first, axes: Vec::new() };
                boundaries.insert(op, boundary);
            }
        }
    }
    make_manual_computations(program, &boundaries)
}

fn set_argument(
    program: &mut Program,
    func: FuncId,
    index: usize,
    sharding: ShardingId,
    group: Option<i64>,
) {
    program.retain_arg_attrs(func, index, |name| name != HLO_SHARDING);
    let Some(body) = program.func_body(func).get() else {
        program.set_declared_arg_sharding(func, index, sharding);
        return;
    };
    if let Some(arg) = program.block_args(body).nth(index) {
        program.set_sharding(arg, sharding);
        join(program, arg, group);
    }
}

fn set_result(program: &mut Program, func: FuncId, index: usize, sharding: ShardingId) {
    program.retain_result_attrs(func, index, |name| name != HLO_SHARDING);
    program.set_func_result_sharding(func, index, sharding);
}

fn set_results(
    program: &mut Program,
    op: OpId,
    shardings: Vec<ShardingId>,
    groups: &[Option<i64>],
) {
    program.remove_attr(op, HLO_SHARDING);
    if program.num_results(op) == 0 {
        program.set_no_result_shardings(op, shardings);
        return;
    }
    let results: Vec<ValueId> = program.op_results(op).collect();
    for (index, result) in results.into_iter().enumerate() {
        program.set_sharding(result, shardings.get(index).copied().unwrap_or_default());
        join(program, result, groups.get(index).copied().flatten());
    }
}

/// Replaces a custom call `@Sharding`.
fn constrain(program: &mut Program, call: OpId, sharding: ShardingId, group: Option<i64>) {
    let (input, result) = (program.operand(call, 0), program.result(call, 0));
    if sharding.is_none() {
        // It constrains nothing, or only adds its operand to a group.
        program.replace_all_uses(result, input);
        if let Some(group) = group {
            join_group(program, input, group, program.before(call));
        }
        program.erase_op(call);
        return;
    }
    program.rename_ops(&[call], "sdy.sharding_constraint");
    program.forget_text(call);
    program.replace_attrs(call, &[]);
    program.set_sharding(result, sharding);
    join(program, result, group);
}

/// Adds `value` to `group`.
fn join(program: &mut Program, value: ValueId, group: Option<i64>) {
    let Some(group) = group else { return };
    let at = InsertPoint::at(program.place_after_value(value));
    join_group(program, value, group, at);
}

fn join_group(program: &mut Program, value: ValueId, group: i64, at: InsertPoint) {
    let member = NewOp::of_kind(OpKind::ShardingGroup, &[value], &[]);
    program.build(member.payload(Payload::ShardingGroup(group)), at);
}
