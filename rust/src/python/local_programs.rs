//! The per-device programs of calls of `custom_partitioning`, which Python provides.

use super::mesh::PyMesh;
use super::module::PyModule;
use super::sharding::PyTensorSharding;
use super::user_code::call_own;
use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::{Program, Type};
use crate::mlir::Origin;
use crate::spmd::custom_partitioning::{
    key_of, mesh_of, partitioned_calls, DimAxes, LocalProgram, LocalPrograms,
};
use pyo3::prelude::*;

/// Shape, element type and sharding of a tensor.
type Tensor = (Vec<i64>, String, Option<PyTensorSharding>);

/// The module of one device, and the axes that shard each dim of its operands and results.
type Answer = Option<(Py<PyModule>, Vec<DimAxes>, Vec<DimAxes>)>;

/// The results of `ask` for the calls of `custom_partitioning` in `program`. It is called with the
/// backend configuration of a call, its operands and results, the mesh, the axes that are manual
/// around the call, and its location.
pub(super) fn local_programs(
    py: Python<'_>,
    program: &Program,
    ask: &Py<PyAny>,
) -> PyResult<LocalPrograms> {
    let mut given = LocalPrograms::new();
    for call in partitioned_calls(program) {
        if let Some(local) = local_program(py, program, call, ask)? {
            given.push((call, local));
        }
    }
    Ok(given)
}

fn local_program(
    py: Python<'_>,
    program: &Program,
    call: OpId,
    ask: &Py<PyAny>,
) -> PyResult<Option<LocalProgram>> {
    let tensors = |values: Vec<ValueId>| {
        values.into_iter().map(|value| tensor(program, value)).collect::<Option<Vec<Tensor>>>()
    };
    let operands = tensors(program.operands(call).collect());
    let results = tensors(program.op_results(call).collect());
    let (Some(operands), Some(results), Some(key), Some(mesh)) =
        (operands, results, key_of(program, call), mesh_of(program, call))
    else {
        return Ok(None);
    };
    let shared = PyMesh::from_verified(program.meshes()[mesh].mesh.clone());
    let manual = program.manual_axes_around_op(call);
    let manual: Vec<&str> = manual.into_iter().map(|axis| program.str(axis)).collect();
    let place = program.origin(program.text().get(program.loc(call))).map(Origin::into_text);
    let arguments = (key, operands, results, shared, manual, place);
    let answer: Answer = call_own(py, || ask.bind(py).call1(arguments))?.extract()?;
    let Some((module, operands, results)) = answer else { return Ok(None) };
    let inlined = Inlined::of((*module.get().program(py)?).clone()).into_parts().0;
    Ok(Some(LocalProgram::new(inlined, mesh, operands, results)))
}

/// Shape, element type and sharding of `value`; `None` if it is not a static tensor.
fn tensor(program: &Program, value: ValueId) -> Option<Tensor> {
    let ty = program.value_type(value);
    let element = match ty {
        Type::RankedTensor { element, .. } => program.str(element.text).to_owned(),
        _ => return None,
    };
    let sharding = program.visible_sharding(value);
    let sharding = sharding.map(|sharding| PyTensorSharding::of(program, &sharding));
    Some((ty.static_shape()?, element, sharding))
}
