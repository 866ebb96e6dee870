//! Recognizes and parses the `repr` of JAX's shardings.

use super::sharding::PyTensorSharding;
use super::user_code::own_function;
use pyo3::prelude::*;

/// Whether `text` looks like `NamedSharding(...)` or `GSPMDSharding(...)`.
pub(super) fn is_pasted_from_jax(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("jax.sharding.").unwrap_or(text);
    text.starts_with("NamedSharding(") || text.starts_with("GSPMDSharding(")
}

/// The sharding in `text`, over `mesh` if it is given.
pub(super) fn pasted_from_jax(
    py: Python<'_>,
    text: &str,
    mesh: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensorSharding> {
    let read = own_function(py, "shardcore.calculus.pasted", "sharding_of", (text, mesh), None)?;
    Ok(read.extract()?)
}
