//! The parts of a sharding in Python, with axes by name, and the conversion to and from a sharding.

use super::axis::PyAxisRef;
use super::dim_sharding::{resolve_all, PyDimSharding};
use super::errors::{raise_unlocated, shown};
use super::mesh_argument::MeshArgument;
use super::sharding::PyTensorSharding;
use crate::attribute::verify_sharding;
use crate::axis::AxisRef;
use crate::error::Diagnostic;
use crate::index::MeshId;
use crate::mesh::Mesh;
use crate::sharding::{ReductionOp, TensorSharding};
use crate::shardy::Version;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// The parts of a sharding without its mesh, with axes by name instead of by index.
#[derive(Default)]
pub(super) struct Parts {
    pub dims: Vec<PyDimSharding>,
    pub replicated: Vec<PyAxisRef>,
    pub unreduced: Vec<PyAxisRef>,
    pub reduction_op: ReductionOp,
}

impl Parts {
    /// The sharding over `mesh`, without a mesh id; axes that the mesh does not have are left out,
    /// with an error in `problems`.
    pub fn resolve(&self, mesh: &Mesh, problems: &mut Vec<Diagnostic>) -> TensorSharding {
        TensorSharding {
            mesh: MeshId::NONE,
            dims: self.dims.iter().map(|dim| dim.resolve(mesh, problems)).collect(),
            replicated: resolve_all(&self.replicated, mesh, problems),
            unreduced: resolve_all(&self.unreduced, mesh, problems),
            reduction_op: self.reduction_op,
        }
    }
}

/// The reduction with this name in an argument.
pub(super) fn reduction_called(name: &str) -> PyResult<ReductionOp> {
    ReductionOp::of_keyword(name).ok_or_else(|| {
        let known = ReductionOp::ALL.map(|op| format!("'{}'", op.keyword())).join(", ");
        PyValueError::new_err(format!("reduction_op is one of {known}, not {}", shown(name)))
    })
}

impl PyTensorSharding {
    /// The sharding with these parts, if it is valid.
    pub(super) fn build(py: Python<'_>, mesh: MeshArgument, parts: Parts) -> PyResult<Self> {
        let is_mesh_known = mesh.mesh.is_some();
        let of_dims = parts.dims.iter().flat_map(|dim| &dim.axes);
        let axes = of_dims.chain(&parts.replicated).chain(&parts.unreduced);
        let names = mesh.mesh.unwrap_or_else(|| Arc::new(PyDimSharding::mesh_of_names(axes)));
        let mut problems = Vec::new();
        let mut sharding = parts.resolve(&names, &mut problems).as_in_text();
        let is_part = |axis: AxisRef| axis.is_part_of(&names);
        if problems.is_empty() && sharding.axis_refs().all(is_part) {
            sharding = sharding.canonical(&names);
        }
        problems.extend(verify_sharding(&sharding, &names, None, Version::NEWEST));
        if problems.is_empty() {
            let sharding = Arc::new(sharding);
            return Ok(Self { mesh: names, is_mesh_known, symbol: mesh.symbol, sharding });
        }
        Err(raise_unlocated(py, problems))
    }
    /// Its parts.
    pub(super) fn parts(&self) -> Parts {
        let dims = self.sharding.dims.iter();
        let named = |axes: &[AxisRef]| {
            axes.iter().map(|&axis| PyAxisRef::from_axis(axis, &self.mesh)).collect()
        };
        Parts {
            dims: dims.map(|dim| PyDimSharding::from_dim(dim, &self.mesh)).collect(),
            replicated: named(&self.sharding.replicated),
            unreduced: named(&self.sharding.unreduced),
            reduction_op: self.sharding.reduction_op,
        }
    }
}
