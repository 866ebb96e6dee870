//! The function behind `tests/contract/test_ops.py`.

use crate::op_table;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// For each op, how each part of the engine supports it; `None` if a part does not.
#[pyfunction]
pub fn known_ops(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for row in op_table::rows() {
        let cells = PyDict::new(py);
        cells.set_item("traits", row.traits)?;
        cells.set_item("syntax", row.syntax)?;
        cells.set_item("verification", row.verification)?;
        cells.set_item("sharding rule", row.rule)?;
        cells.set_item("cost", row.cost)?;
        cells.set_item("padding", row.padding)?;
        cells.set_item("partitioning", row.partitioning)?;
        table.set_item(row.name, cells)?;
    }
    Ok(table)
}
