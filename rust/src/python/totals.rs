//! Totals of a program as plain data.

use crate::ir::Program;
use crate::sharding_totals::{ProgramTotals, Totals};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// `totals` as `{"values": ..., "axes": [...]}`.
pub(super) fn totals_dict<'py>(
    py: Python<'py>,
    program: &Program,
    totals: &ProgramTotals,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("values", totals.all.values)?;
    dict.set_item("sharded_values", totals.all.sharded_values)?;
    dict.set_item("is_saturated", totals.all.bytes == u128::MAX)?;
    let sets: [(&str, &Totals); 3] =
        [("", &totals.all), ("argument_", &totals.arguments), ("result_", &totals.results)];
    for (prefix, set) in sets {
        dict.set_item(format!("{prefix}bytes"), set.bytes)?;
        dict.set_item(format!("{prefix}bytes_per_device"), set.bytes_per_device)?;
    }
    let axes = PyList::empty(py);
    for axis_use in &totals.axes {
        let row = &program.meshes()[axis_use.mesh];
        let axis = &row.mesh.axes[axis_use.axis];
        let item = PyDict::new(py);
        item.set_item("mesh", row.symbol.map(|symbol| program.str(symbol)))?;
        item.set_item("name", &*axis.name)?;
        item.set_item("size", axis.size)?;
        item.set_item("values", axis_use.values)?;
        item.set_item("arguments", axis_use.arguments)?;
        axes.append(item)?;
    }
    dict.set_item("axes", axes)?;
    Ok(dict)
}
