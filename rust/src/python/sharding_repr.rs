//! The `repr` of `shardcore.TensorSharding`, and its slices as Python objects.

use super::dim_sharding::list_repr;
use super::mesh::quoted;
use super::sharding_parts::Parts;
use crate::layout::Layout;
use crate::sharding::ReductionOp;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::fmt::Write as _;

/// The constructor call with `mesh`, a Python expression, and with dims, replicated and unreduced
/// axes.
pub(super) fn constructor_call(
    py: Python<'_>,
    mesh: &str,
    parts: Parts,
    mesh_name: Option<&str>,
) -> PyResult<String> {
    let Parts { dims, replicated, unreduced, reduction_op } = parts;
    let dims = dims.iter().map(|dim| match (dim.is_closed, dim.priority) {
        (true, None) => list_repr(py, &dim.axes),
        _ => dim.__repr__(py),
    });
    let mut out = format!("TensorSharding({mesh}, [");
    out += &(dims.collect::<PyResult<Vec<_>>>()?.join(", ") + "]");
    for (name, axes) in [("replicated", replicated), ("unreduced", unreduced)] {
        if !axes.is_empty() {
            let _ = write!(out, ", {name}={}", list_repr(py, &axes)?);
        }
    }
    if reduction_op != ReductionOp::Sum {
        let _ = write!(out, ", reduction_op='{}'", reduction_op.keyword());
    }
    if let Some(name) = mesh_name {
        let _ = write!(out, ", mesh_name={}", quoted(py, name)?);
    }
    Ok(out + ")")
}

/// The slices of one device as Python slices.
pub(super) fn slices<'py>(
    py: Python<'py>,
    layout: &Layout<'_>,
    shape: &[i64],
    position: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let slices = layout.slice(shape, position);
    let ranges = slices.into_iter().map(|range| {
        let number = |value: i64| isize::try_from(value).unwrap_or(isize::MAX);
        PySlice::new(py, number(range.start), number(range.end), 1)
    });
    PyTuple::new(py, ranges.collect::<Vec<_>>())
}
