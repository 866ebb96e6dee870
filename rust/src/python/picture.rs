//! Pictures of shardings, which Python draws.

use super::sharding::PyTensorSharding;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The picture of `sharding` on a tensor of shape `shape`.
pub(super) fn picture<'py>(
    py: Python<'py>,
    sharding: Option<PyTensorSharding>,
    shape: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("shardcore.report.picture")?.call_method1("picture", (sharding, shape))
}
