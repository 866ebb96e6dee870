//! Meshes from a grid of devices and the names of its axes, as `jax.sharding.Mesh` takes them.

use super::arguments::{items, saturated, too_many, MAX_DEVICES, MAX_ITEMS};
use super::errors::raise_unlocated;
use super::user_code;
use crate::error::{Code, Diagnostic};
use crate::mesh::MeshAxis;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The axes and the device ids of `devices`, nested sequences or an array with one level for each
/// of `names`. A device is a number, or an object with a number as `id`.
pub(super) fn axes_and_ids(
    py: Python<'_>,
    devices: &Bound<'_, PyAny>,
    names: &Bound<'_, PyAny>,
) -> PyResult<(Vec<MeshAxis>, Vec<i64>)> {
    let names: Vec<String> = if names.is_instance_of::<PyString>() {
        vec![names.extract()?]
    } else {
        items(names, "axis_names", MAX_ITEMS, |name| name.extract())?
    };
    let mut sizes = Vec::new();
    let mut level = vec![devices.clone()];
    for name in &names {
        let mut next = Vec::new();
        let mut size = None;
        for row in &level {
            let found = row_of(py, row, name)?;
            let size = *size.get_or_insert(found.len());
            if size != found.len() {
                let other = found.len();
                let message =
                    format!("rows of {size} and of {other} devices along axis \"{name}\"");
                return Err(mistake(py, message));
            }
            next.extend(found);
            if next.len() > MAX_DEVICES {
                return Err(too_many(py, "devices", MAX_DEVICES));
            }
        }
        sizes.push(size.unwrap_or(0));
        level = next;
    }
    let ids = level.iter().map(|device| device_id(py, device)).collect::<PyResult<Vec<_>>>()?;
    let axes = names.into_iter().zip(sizes).map(|(name, size)| MeshAxis {
        name: name.into(),
        size: i64::try_from(size).unwrap_or(i64::MAX),
    });
    Ok((axes.collect(), ids))
}

/// The devices, or rows of devices, in `row` along the axis `name`.
fn row_of<'py>(
    py: Python<'py>,
    row: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    items(row, "devices", MAX_DEVICES, |item| Ok(item.clone())).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            return mistake(py, format!("the devices have no dim for axis \"{name}\""));
        }
        error
    })
}

fn device_id(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(id) = saturated(device) {
        return Ok(id);
    }
    if device.try_iter().is_ok() {
        return Err(mistake(py, "the devices have more dims than there are axis names".to_owned()));
    }
    match user_code::call(py, || device.getattr("id")) {
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => {
            let kind = device.get_type().name()?;
            let message = format!("a device is a number or has one as id, not {kind}");
            Err(PyTypeError::new_err(message))
        }
        id => saturated(&id?),
    }
}

fn mistake(py: Python<'_>, message: String) -> PyErr {
    let hint = "give one level of devices for each name: devices=((0, 1), (2, 3)), axis_names=(\"X\", \"Y\")";
    raise_unlocated(py, vec![Diagnostic::new(Code::InvalidMesh, message).with_hint(hint)])
}
