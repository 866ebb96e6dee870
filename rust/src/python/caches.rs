//! Functions behind `shardcore/caches.py`.

use crate::caches;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Empties the caches that the process keeps across programs.
#[pyfunction]
pub fn clear_caches(py: Python<'_>) {
    py.detach(caches::clear);
}

/// For each cache `(entries, max_entries)`.
#[pyfunction]
pub fn cache_sizes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let sizes = PyDict::new(py);
    for size in caches::sizes() {
        sizes.set_item(size.name, (size.entries, size.max_entries))?;
    }
    Ok(sizes)
}
