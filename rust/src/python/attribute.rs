//! Attributes as plain Python values.

use crate::mlir::AttrValue;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The most elements of a dense attribute that are converted, since a splat could become gigabytes.
/// Larger ones are returned as text.
const MAX_ELEMENTS: usize = 1 << 16;

/// `value` as plain Python: numbers, strings, lists, dictionaries; enumerations and types as strings.
pub(super) fn to_python<'py>(
    py: Python<'py>,
    value: &AttrValue<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AttrValue::Int(value) => value.into_pyobject(py)?.into_any(),
        AttrValue::Float(value) => value.into_pyobject(py)?.into_any(),
        AttrValue::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        AttrValue::Unit => true.into_pyobject(py)?.to_owned().into_any(),
        AttrValue::Str(text) | AttrValue::Symbol(text) => PyString::new(py, text).into_any(),
        AttrValue::Keyword(text) | AttrValue::Type(text) | AttrValue::Other(text) => {
            PyString::new(py, text).into_any()
        }
        AttrValue::Ints(ints) => PyList::new(py, ints.iter())?.into_any(),
        AttrValue::Array(items) | AttrValue::DenseArray(items) => list(py, items)?,
        AttrValue::Dict(fields) | AttrValue::Struct { fields, .. } => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, to_python(py, value)?)?;
            }
            dict.into_any()
        }
        AttrValue::Dense { elements, ty } => dense(py, elements, ty)?,
    })
}

fn list<'py>(py: Python<'py>, items: &[AttrValue<'_>]) -> PyResult<Bound<'py, PyAny>> {
    let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

/// The elements as nested lists, with the shape of `ty`, such as `tensor<2x3xi64>`.
fn dense<'py>(
    py: Python<'py>,
    elements: &[AttrValue<'_>],
    ty: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let body = ty.split_once('<').map_or("", |(_, body)| body);
    let shape: Vec<usize> = body.split('x').map_while(|size| size.parse().ok()).collect();
    let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
    let Some(count) = count.filter(|&count| count <= MAX_ELEMENTS) else {
        return list(py, elements);
    };
    let mut level: Vec<Bound<'py, PyAny>> = match elements {
        [splat] => vec![to_python(py, splat)?; count],
        _ if elements.len() == count => {
            elements.iter().map(|element| to_python(py, element)).collect::<PyResult<_>>()?
        }
        _ => return list(py, elements),
    };
    for &size in shape.iter().rev() {
        let rows = level.chunks(size.max(1)).map(|row| Ok(PyList::new(py, row)?.into_any()));
        level = rows.collect::<PyResult<_>>()?;
    }
    match level.pop() {
        Some(value) => Ok(value),
        None => list(py, elements),
    }
}
