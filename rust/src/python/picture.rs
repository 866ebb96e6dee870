//! The data for pictures of shardings, which Python draws.

use super::sharding::PyTensorSharding;
use super::user_code::own_function;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The picture of `sharding` on a tensor of shape `shape`.
pub(super) fn picture<'py>(
    py: Python<'py>,
    sharding: Option<PyTensorSharding>,
    shape: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    own_function(py, "shardcore.report.picture", "picture", (sharding, shape), None)
}
