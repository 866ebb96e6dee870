//! Replaces calls by the computations on shards that their `partition` callbacks returned.

use super::manual::{build, replace};
use super::{DimAxes, LocalProgram};
use crate::axis::AxisRef;
use crate::index::{MeshId, OpId, ShardingId, TypeId, ValueId};
use crate::ir::{OpKind, Place, Program, ValueMap};
use crate::sharding::{DimSharding, TensorSharding};

/// Replaces `call` by `local`; `None` if it does not fit, or has ops that refer to their own program.
pub(super) fn put(program: &mut Program, call: OpId, local: &LocalProgram) -> Option<()> {
    let from = &local.program;
    let main = from.func_body(from.entry_function()?).get()?;
    let computation =
        from.block_ops(main).find(|&op| from.kind(op) == OpKind::ManualComputation)?;
    let body = from.region_entry(from.region(computation, 0)).get()?;
    let inputs: Vec<ValueId> = from.block_args(main).collect();
    if inputs.len() != program.num_operands(call) {
        return None;
    }
    let types: Vec<TypeId> =
        inputs.iter().map(|&input| program.graft_type(from, from.type_of(input))).collect();
    let (new, block) = build(program, call, local.mesh, &types);
    // Arguments of the function are those of the body; so are constants before the computation.
    let mut map = ValueMap::default();
    for (&input, arg) in inputs.iter().zip(program.block_args(block)) {
        map.insert(input, arg);
    }
    for op in from.block_ops(main).take_while(|&op| op != computation) {
        program.graft_op(from, op, &mut map, Place::End(block))?;
    }
    for (arg, operand) in from.block_args(body).zip(from.operands(computation)) {
        let value = map.get(operand)?;
        map.insert(arg, value);
    }
    for op in from.block_ops(body) {
        program.graft_op(from, op, &mut map, Place::End(block))?;
    }
    let operands = shardings(program, local.mesh, &local.operands)?;
    let results = shardings(program, local.mesh, &local.results)?;
    replace(program, (call, new, block), local.mesh, &operands, &results);
    Some(())
}

fn shardings(program: &mut Program, mesh: MeshId, all: &[DimAxes]) -> Option<Vec<ShardingId>> {
    all.iter().map(|axes| sharding_of(program, mesh, axes)).collect()
}

/// The sharding over `mesh` along the axes named `axes`; `None` if the mesh lacks one.
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
