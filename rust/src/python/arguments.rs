//! Converts sequences and iterables that users pass, item by item, up to a limit.
//!
//! The `__len__` of a sequence is not trusted, and an infinite iterable is rejected before it
//! exhausts memory.

use super::errors::raise_unlocated;
use super::user_code;
use crate::error::{Code, Diagnostic};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};
use std::ops::Deref;

/// The most items of a list other than of devices: axes, dims, factors, flags.
pub(super) const MAX_ITEMS: usize = 1 << 20;

/// The most device ids in a list.
pub(super) const MAX_DEVICES: usize = 1 << 24;

/// The error for more than `limit` of something.
pub(super) fn too_many(py: Python<'_>, what: &str, limit: usize) -> PyErr {
    let message = format!("more than {limit} {what}");
    raise_unlocated(py, vec![Diagnostic::new(Code::ProgramTooLarge, message)])
}

/// The items of `iterable`, called `what` in errors, each converted; at most `limit`.
pub(super) fn items<'py, T>(
    iterable: &Bound<'py, PyAny>,
    what: &str,
    limit: usize,
    convert: impl FnMut(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let items = first_items(iterable, limit + 1, convert)?;
    if items.len() > limit {
        return Err(too_many(iterable.py(), what, limit));
    }
    Ok(items)
}

/// The first `count` items of `iterable`, each converted; all if there are fewer.
pub(super) fn first_items<'py, T>(
    iterable: &Bound<'py, PyAny>,
    count: usize,
    mut convert: impl FnMut(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let py = iterable.py();
    // Iterating over an exact list or tuple runs no user code.
    let is_plain =
        iterable.is_exact_instance_of::<PyList>() || iterable.is_exact_instance_of::<PyTuple>();
    let mut next = iterable.try_iter()?;
    let mut items = Vec::new();
    while items.len() < count {
        let item = if is_plain { next.next() } else { user_code::call(py, || next.next()) };
        let Some(item) = item else { break };
        if items.len() == items.capacity() && items.try_reserve(items.len().max(4)).is_err() {
            return Err(PyMemoryError::new_err("there is no memory for so many items"));
        }
        items.push(convert(&item?)?);
        if items.len() % (1 << 16) == 0 {
            py.check_signals()?;
        }
    }
    Ok(items)
}

/// The pairs of `mapping`, each converted; at most `limit`.
pub(super) fn pairs<'py, T>(
    mapping: &Bound<'py, PyMapping>,
    what: &str,
    limit: usize,
    convert: impl FnMut(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let py = mapping.py();
    let pairs = user_code::call(py, || mapping.call_method0(intern!(py, "items")))?;
    items(&pairs, what, limit, convert)
}

/// An integer argument that is a limit, saturated to the range of `i64`.
#[derive(Clone, Copy)]
pub(super) struct Limit(pub i64);

impl Limit {
    /// The limit as a count.
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Limit {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        saturated(&object).map(Self)
    }
}

/// The integer `number`, saturated to the range of `i64`; no check accepts the ends of that range.
pub(super) fn saturated(number: &Bound<'_, PyAny>) -> PyResult<i64> {
    match number.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => {
            Ok(if number.gt(0)? { i64::MAX } else { i64::MIN })
        }
        other => other,
    }
}

/// An integer argument. If it is out of range, a `ValueError` is raised, as for other invalid
/// values of the right type.
#[derive(Clone, Copy)]
pub(super) struct Int<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Int<T>
where
    T: for<'b> FromPyObject<'b, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<T>().map(Self).map_err(|error| out_of_range(object.py(), error))
    }
}

/// `error`, or a `ValueError` if it is about an integer that does not fit.
fn out_of_range(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(py) {
        return PyValueError::new_err("the integer is out of range");
    }
    error
}

/// A list of `T`s as an argument.
pub(super) struct Items<T>(pub Vec<T>);

impl<T> Deref for Items<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, 'py, T> FromPyObject<'a, 'py> for Items<T>
where
    T: for<'b> FromPyObject<'b, 'py>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_sequence = object.hasattr(intern!(object.py(), "__getitem__"))?;
        if !is_sequence || object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>()
        {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected a sequence, not {kind}")));
        }
        let convert = |item: &Bound<'py, PyAny>| {
            item.extract::<T>().map_err(|error| out_of_range(item.py(), error.into()))
        };
        items(&object, "items", MAX_ITEMS, convert).map(Self)
    }
}
