//! Custom calls whose program of one device is given, as `custom_partitioning` of JAX gives it.
//!
//! XLA's partitioner asks the partitioner of such a call for a computation on shards and for the shardings of its operands and
//! results. It reshards the operands to these, puts the computation in the place of the call, and reshards what it returns to
//! the sharding of the call. Here the call becomes a manual computation over all axes that are not manual around it, behind
//! which its results are resharded.
//!
//! Source: XLA's `custom_partition_callback.cc`.

use crate::axis::AxisRef;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{BlockId, Id, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{NewOp, OpKind, Payload, Place, Program, ValueMap};
use crate::sharding::{DimSharding, TensorSharding};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The target of the calls of `custom_partitioning`.
pub const TARGET: &str = "CustomSPMDPartitioning";

/// The names of the axes along which each dim of a tensor is sharded.
pub type DimAxes = Vec<Vec<String>>;

/// The program of one device of a custom call.
#[derive(Clone, Debug)]
pub struct LocalProgram {
    /// A program without calls whose entry function has one manual computation: its body computes the results.
    pub program: Arc<Program>,
    /// The mesh of the shardings.
    pub mesh: MeshId,
    /// The shardings of the operands.
    pub operands: Vec<DimAxes>,
    /// The shardings of the results.
    pub results: Vec<DimAxes>,
}

/// The custom calls of a program whose program of one device is given.
pub type LocalPrograms = Vec<(OpId, LocalProgram)>;

/// The names of the axes that are manual around `op`.
pub fn manual_around(program: &Program, op: OpId) -> Vec<StrId> {
    let around = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
    let axes = around.filter_map(|op| match program.payload(op) {
        Some(Payload::ManualComputation(axes)) => Some(axes.clone()),
        _ => None,
    });
    axes.flatten().collect()
}

/// Puts the programs of one device in the places of their calls; the ops that were made, each with its call.
pub(super) fn put(program: &mut Program, given: &LocalPrograms) -> Result<FxHashMap<OpId, OpId>> {
    let mut made = FxHashMap::default();
    for (call, local) in given {
        let before = program.num_op_ids();
        if put_one(program, *call, local).is_none() {
            let message = format!(
                "'{}' op cannot be partitioned: its program of one device does more than compute shards",
                program.op_name(*call)
            );
            return Err(Diagnostic::new(Code::Unpartitionable, message)
                .at_op(program, *call)
                .into());
        }
        for op in (before..program.num_op_ids()).map(OpId::from_index) {
            program.set_cause(op, *call);
            made.insert(op, *call);
        }
    }
    Ok(made)
}

fn put_one(program: &mut Program, call: OpId, local: &LocalProgram) -> Option<()> {
    let from = &*local.program;
    let main = from.func_body(from.entry_function()?).get()?;
    let computation =
        from.block_ops(main).find(|&op| from.kind(op) == OpKind::ManualComputation)?;
    let body = from.region_entry(from.region(computation, 0)).get()?;

    let operands: Vec<ValueId> = program.operands(call).collect();
    let results: Vec<ValueId> = program.op_results(call).collect();
    let types: Vec<TypeId> = results.iter().map(|&result| program.type_of(result)).collect();
    let axes = free_axes(program, call, local.mesh);
    let at = program.before(call);
    let new = NewOp::of_kind(OpKind::ManualComputation, &operands, &types);
    let new = program.build(new.payload(Payload::ManualComputation(axes)).regions(1), at);
    let block = copied_body(program, new, from, (main, computation, body))?;
    let args: Vec<ValueId> = program.block_args(block).collect();
    for (arg, axes) in args.into_iter().zip(&local.operands) {
        let sharding = sharding_of(program, local.mesh, axes)?;
        program.set_sharding(arg, sharding);
    }
    let computed: Vec<ValueId> = program.op_results(new).collect();
    for ((&result, value), axes) in results.iter().zip(computed).zip(&local.results) {
        let sharding = sharding_of(program, local.mesh, axes)?;
        program.set_sharding(value, sharding);
        let wanted = wanted_sharding(program, result, local.mesh);
        let resharded = if is_same(program, wanted, sharding) {
            value
        } else {
            let at = program.before(call);
            let reshard = program.build_unary(OpKind::Reshard, value, wanted, at);
            program.result(reshard, 0)
        };
        if results.len() == 1 {
            program.copy_name(result, resharded);
        }
        program.replace_all_uses(result, resharded);
    }
    program.erase_op(call);
    Some(())
}

/// Gives `new`, a manual computation, the body of `computation` in `from`, behind the constants that `main` has before it.
fn copied_body(
    program: &mut Program,
    new: OpId,
    from: &Program,
    (main, computation, body): (BlockId, OpId, BlockId),
) -> Option<BlockId> {
    let inner: Vec<ValueId> = from.block_args(body).collect();
    let outer: Vec<ValueId> = from.operands(computation).collect();
    let args: Vec<ValueId> = from.block_args(main).collect();
    let mut types = vec![TypeId::NONE; args.len()];
    for (arg, operand) in inner.iter().zip(&outer) {
        if let Some(place) = args.iter().position(|arg| arg == operand) {
            types[place] = program.graft_type(from, from.type_of(*arg));
        }
    }
    // What is not used has no type in the body.
    for (index, ty) in types.iter_mut().enumerate() {
        if ty.is_none() {
            *ty = program.type_of(program.operand(new, index));
        }
    }
    if types.len() != program.num_operands(new) {
        return None;
    }
    let block = program.add_block(program.region(new, 0), &types);
    let mut map = ValueMap::default();
    for op in from.block_ops(main).take_while(|&op| op != computation) {
        program.graft_op(from, op, &mut map, Place::End(block))?;
    }
    for (arg, operand) in inner.into_iter().zip(outer) {
        let value = match args.iter().position(|&arg| arg == operand) {
            Some(place) => program.block_arg(block, place),
            None => map.get(operand)?,
        };
        map.insert(arg, value);
    }
    for op in from.block_ops(body) {
        program.graft_op(from, op, &mut map, Place::End(block))?;
    }
    Some(block)
}

/// The axes of `mesh` that are not manual around `call`.
fn free_axes(program: &mut Program, call: OpId, mesh: MeshId) -> Vec<StrId> {
    let manual = manual_around(program, call);
    let names: Vec<Box<str>> =
        program.mesh(mesh).axes.iter().map(|axis| (&*axis.name).into()).collect();
    let axes: Vec<StrId> = names.iter().map(|name| program.intern(name)).collect();
    axes.into_iter().filter(|axis| !manual.contains(axis)).collect()
}

/// The sharding over `mesh` along the axes that are called `axes`; `None` if the mesh lacks one.
fn sharding_of(program: &mut Program, mesh: MeshId, axes: &DimAxes) -> Option<ShardingId> {
    let known = program.mesh(mesh);
    let axis = |name: &String| known.axis_by_name(name).map(AxisRef::full);
    let dim = |names: &Vec<String>| {
        let axes = names.iter().map(axis).collect::<Option<Vec<AxisRef>>>()?;
        Some(DimSharding { axes, ..DimSharding::empty(true) })
    };
    let dims = axes.iter().map(dim).collect::<Option<Vec<DimSharding>>>()?;
    let sharding = TensorSharding { dims, ..TensorSharding::fully_replicated(mesh, 0, true) };
    Some(program.intern_sharding(sharding))
}

/// The sharding of `value`, a result of a call; replicated if it has none.
fn wanted_sharding(program: &mut Program, value: ValueId, mesh: MeshId) -> ShardingId {
    let own = program.sharding(value);
    if own.is_some() {
        return own;
    }
    program.replicated(mesh, program.type_of(value), true)
}

fn is_same(program: &Program, one: ShardingId, other: ShardingId) -> bool {
    let (one, other) = (&program.shardings()[one], &program.shardings()[other]);
    one.unreduced.is_empty() && one.shards_alike(Some(other))
}
