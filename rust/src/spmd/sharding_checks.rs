//! Checks of shardings: whether their axes number distinct shards. Sub-axes of one axis that do not nest do not: in an axis of 6
//! devices two of the four pairs of values of the major 2 and the minor 2 occur on two devices each, the others on one.

use super::placement::Placement;
use super::reducer::Reducer;
use crate::attribute::print_sharding;
use crate::bitset::BitSet;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Payload, Program, ValueDef};
use crate::sharding::ReductionOp;
use crate::verify::other_reduction;
use rustc_hash::FxHashSet;

/// Whether `value` is a result of an op, or an argument of a block, that was not erased: data-flow edges of propagation may have
/// had other shardings.
fn is_in_program(program: &Program, value: ValueId) -> bool {
    let op = match program.def(value) {
        ValueDef::Result(op) => Some(op),
        ValueDef::Arg(block) => program.block_region(block).get().map(|id| program.region_op(id)),
    };
    op.is_some_and(|op| !program.is_erased(op) && program.is_linked(op))
}

/// The shardings of values, and of arguments and results of functions.
pub(super) fn used_shardings(program: &Program) -> BitSet<ShardingId> {
    let mut used = BitSet::new(program.shardings().len());
    for value in program.value_ids() {
        let id = program.sharding(value);
        // Many values share a sharding.
        if id.is_some() && !used.contains(id) && is_in_program(program, value) {
            used.insert(id);
        }
    }
    shardings_of_ports(program).for_each(|id| {
        used.insert(id);
    });
    used
}

/// The shardings of arguments and results of functions.
fn shardings_of_ports(program: &Program) -> impl Iterator<Item = ShardingId> + '_ {
    let of_func = move |func| {
        let args = 0..program.func_args(func).len();
        let args = args.map(move |index| program.func_arg_sharding(func, index));
        args.chain(program.func_results(func).iter().map(|port| port.sharding))
    };
    let functions = program.functions_in_order().into_iter();
    functions.flat_map(of_func).filter(|id| id.is_some())
}

/// The meshes that values, and arguments and results of functions are sharded over.
pub(super) fn used_meshes(program: &Program) -> BitSet<MeshId> {
    let mut used = BitSet::new(program.meshes().len());
    let meshes = program.shardings().ids().filter_map(|id| program.mesh_of(id).get());
    let mut left = meshes.collect::<FxHashSet<MeshId>>().len();
    for value in program.value_ids() {
        if left == 0 {
            return used;
        }
        let Some(mesh) = program.mesh_of(program.sharding(value)).get() else { continue };
        if !used.contains(mesh) && is_in_program(program, value) {
            left -= usize::from(used.insert(mesh));
        }
    }
    for mesh in shardings_of_ports(program).filter_map(|id| program.mesh_of(id).get()) {
        used.insert(mesh);
    }
    used
}

/// The first used sharding with sub-axes that overlap.
pub fn first_unsound(program: &Program) -> Option<ShardingId> {
    let used = used_shardings(program);
    let mut shardings = used.iter();
    shardings.find(|&id| {
        let sharding = &program.shardings()[id];
        let mesh = program.mesh(sharding.mesh);
        !mesh.is_maximal() && !Placement::of(sharding, mesh, 0).is_sound()
    })
}

/// The longest dim of a program with sharded values: padding to a multiple of the shards does not overflow.
const LONGEST: i64 = 1 << 62;

/// Whether some value is sharded.
fn has_shards(program: &Program) -> bool {
    let used = used_shardings(program);
    let mut shardings = used.iter();
    shardings.any(|id| !program.shardings()[id].has_no_axes())
}

/// An error at the first op with a tensor whose quantization scales vary along a dim: each shard would need a type of its own.
pub(super) fn check_scales(program: &Program) -> Result<()> {
    let has_scales = |value: ValueId| program.is_quantized_along_dims(program.type_of(value));
    let mut types = program.types().ids();
    if !types.any(|ty| program.is_quantized_along_dims(ty)) || !has_shards(program) {
        return Ok(());
    }
    let mut ops = program.pre_order(program.module_op());
    let found = ops
        .find(|&op| program.operands(op).any(has_scales) || program.op_results(op).any(has_scales));
    let Some(op) = found else { return Ok(()) };
    let name = program.op_name(op);
    let message = format!("'{name}' op cannot be partitioned: its scales differ along a dim");
    let problem = Diagnostic::new(Code::Unpartitionable, message).at_op(program, op);
    Err(problem.with_hint("quantize the tensor with one scale").into())
}

/// Whether `op`, a collective, reduces the results of a local reduction that has the same reducer.
fn is_of_body(program: &Program, op: OpId) -> bool {
    if !matches!(program.kind(op), OpKind::AllReduce | OpKind::ReduceScatter) {
        return false;
    }
    let operand = program.operand(op, 0);
    let Some(def) = program.defining_op(operand) else { return false };
    if !matches!(program.kind(def), OpKind::Reduce | OpKind::Scatter) {
        return false;
    }
    let index = program.op_results(def).position(|result| result == operand);
    let reducers = Reducer::each_of_region(program, def);
    let reducer = index.zip(reducers).and_then(|(index, all)| all.get(index).copied());
    match program.payload(op).map(Payload::reduction_op) {
        Some(ReductionOp::Max) => reducer == Some(Reducer::Max),
        Some(ReductionOp::Min) => reducer == Some(Reducer::Min),
        _ => false,
    }
}

/// An error if `program` has sharded values and a dim that is too long to be padded to whole shards.
pub(super) fn check_lengths(program: &Program) -> Result<()> {
    let longest = program.types().longest_dim();
    if longest >= LONGEST && has_shards(program) {
        let message = format!("a dim of {longest} elements cannot be partitioned");
        let hint = "dims have to be shorter than 2^62";
        return Err(Diagnostic::new(Code::Unpartitionable, message).with_hint(hint).into());
    }
    Ok(())
}

/// An error if a sharding of `program` has overlapping sub-axes, or unreduced axes of another reduction than a sum, or if a dim
/// is too long.
pub(super) fn check(program: &Program) -> Result<()> {
    if let Some((op, other)) = other_reduction(program, |op| is_of_body(program, op)) {
        let name = program.op_name(op);
        let message =
            format!("'{name}' op cannot be partitioned: its '{}' is left to do", other.keyword());
        let problem = Diagnostic::new(Code::Unpartitionable, message).at_op(program, op);
        return Err(problem.with_hint("leave no axes unreduced but those of sums").into());
    }
    check_lengths(program)?;
    let Some(id) = first_unsound(program) else { return Ok(()) };
    let text = print_sharding(&program.shardings()[id], program);
    let message = format!("no devices hold the shards of {text}: parts of one axis do not nest");
    let hint = "end one part of the axis where the next one begins, or a multiple of that";
    Err(Diagnostic::new(Code::Unpartitionable, message).with_hint(hint).into())
}
