//! Lists of some ops of a module, for programs that are too large to look at each op in Python.

use super::module::PyModule;
use super::op::PyOp;
use super::room::room_for_objects;
use crate::index::{OpId, ShardingId, StrId, TypeId};
use crate::ir::Program;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The names of the ops of `module`, each once.
#[pyfunction]
pub(super) fn op_names(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<Vec<String>> {
    let program = module.get().program(py)?;
    let ids: FxHashSet<StrId> = PyOp::ids(&program).map(|(_, op)| program.op_name_id(op)).collect();
    Ok(ids.into_iter().map(|id| program.str(id).to_owned()).collect())
}

/// The ops of `module` that have one of `names`, in the order of `Module.ops`.
#[pyfunction]
pub(super) fn ops_named(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    names: Vec<String>,
) -> PyResult<Vec<PyOp>> {
    let program = module.get().program(py)?;
    let ids: FxHashSet<StrId> = names.iter().filter_map(|name| program.find_name(name)).collect();
    listed(py, module, |op| ids.contains(&program.op_name_id(op)))
}

/// The ops of `module` with a result of which a device holds at least `least_bytes`, in the order of `Module.ops`.
#[pyfunction]
pub(super) fn ops_of_size(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    least_bytes: u128,
) -> PyResult<Vec<PyOp>> {
    let program = module.get().program(py)?;
    let mut known = FxHashMap::default();
    listed(py, module, |op| is_of_size(&program, op, least_bytes, &mut known))
}

/// The ops of `module` for which `is_listed`.
fn listed(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    mut is_listed: impl FnMut(OpId) -> bool,
) -> PyResult<Vec<PyOp>> {
    let module = module.get();
    let program = module.program(py)?;
    let ops: Vec<_> = PyOp::ids(&program).filter(|&(_, op)| is_listed(op)).collect();
    room_for_objects(py, ops.len(), "listing the ops")?;
    Ok(PyOp::of(&program, &module.names.of(&program), ops))
}

/// Whether `op` has a result of which a device holds at least `least_bytes`. `known` are types and shardings seen before.
fn is_of_size(
    program: &Program,
    op: OpId,
    least_bytes: u128,
    known: &mut FxHashMap<(TypeId, ShardingId), bool>,
) -> bool {
    program.op_results(op).into_iter().any(|value| {
        let (ty, sharding) = (program.type_of(value), program.visible_sharding(value));
        let is_large = || {
            let shape = program.local_shape(ty, sharding.as_deref())?;
            Some(program.tensor_bytes(ty, &shape)? >= least_bytes)
        };
        match program.visible_sharding_id(value) {
            Some(id) => *known.entry((ty, id)).or_insert_with(|| is_large().unwrap_or(false)),
            None => is_large().unwrap_or(false),
        }
    })
}
