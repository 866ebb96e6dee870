//! Users' rules: the registry that Python changes, and calls of users' functions.
//!
//! Only threads that hold the GIL lock the registry, and they keep the GIL meanwhile, so that the
//! lock is free at a fork.

use super::attribute::to_python;
use super::errors::{raise_unlocated, shown};
use super::rule::PyOpShardingRule;
use super::user_code;
use crate::attribute::parse_rule;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::ir::Type;
use crate::op_sharding_rule::OpShardingRule;
use crate::rules::notation::Notation;
use crate::rules::table::FAMILIES;
use crate::rules::{Registry, SignatureView, UserRule};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The users' registrations. Runs use clones, so that rules may run programs themselves.
static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(|| Mutex::new(Registry::builtin()));

static VERSION: AtomicU64 = AtomicU64::new(0);

fn global() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the registry. Removed entries are dropped after the lock is released, since that may run
/// Python code.
pub(super) fn change(edit: impl FnOnce(&mut Registry)) {
    let mut next = global().clone();
    edit(&mut next);
    let old = std::mem::replace(&mut *global(), next);
    VERSION.fetch_add(1, Ordering::AcqRel);
    drop(old);
}

/// The number of changes of the registry so far: of rules and of data-flow edges.
#[pyfunction]
pub fn registry_version() -> u64 {
    VERSION.load(Ordering::Acquire)
}

/// The current registry.
pub fn registry() -> Registry {
    global().clone()
}

/// The registry at some point in time.
#[derive(Clone)]
pub(super) struct RulesThen {
    pub registry: Registry,
    pub version: u64,
}

impl RulesThen {
    /// The current registry.
    pub fn now() -> Self {
        Self { registry: registry(), version: registry_version() }
    }
}

/// The family of every op with a rule; `user` for ops with a user's rule.
#[pyfunction]
pub fn registered_rules(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let families = PyDict::new(py);
    for family in FAMILIES {
        for op in family.ops {
            families.set_item(op, family.name)?;
        }
    }
    for op in registry().user_rules() {
        families.set_item(op, "user")?;
    }
    Ok(families)
}

/// Sets the user's rule of an op: a string, a function as wrapped by `shardcore.rules`, or `None`
/// to remove it.
#[pyfunction]
#[pyo3(signature = (name, rule))]
pub fn set_rule(py: Python<'_>, name: &str, rule: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    if !name.contains('.') {
        let message =
            format!("\"{}\" is no op: op names have a dialect, like \"my.op\"", shown(name));
        return Err(PyValueError::new_err(message));
    }
    let rule = match rule {
        None => None,
        Some(rule) => match rule.cast::<PyString>() {
            Ok(text) => {
                let notation = text.to_str()?.parse::<Notation>();
                let notation = notation.map_err(|error| raise_unlocated(py, error.diagnostics))?;
                Some(UserRule::Notation(notation))
            }
            Err(_) if rule.is_callable() => Some(function_rule(rule.clone().unbind())),
            Err(_) => return Err(PyTypeError::new_err("a rule is a string or a function")),
        },
    };
    change(|registry| registry.set_rule(name, rule));
    Ok(())
}

fn function_rule(function: Py<PyAny>) -> UserRule {
    UserRule::function(Arc::new(move |view| {
        user_code::check_depth()?;
        user_code::attach(|py| {
            let answer = call(py, &function, view);
            answer.unwrap_or_else(|error| Err(function_error(py, &error)))
        })
    }))
}

/// Converts an exception of the user's function to an error; exceptions that end the program are
/// passed on.
pub(super) fn function_error(py: Python<'_>, error: &PyErr) -> Error {
    if let Some(interrupted) = user_code::interrupt(py, error) {
        return interrupted;
    }
    let value = error.value(py);
    if let Some(busy) = too_deep(value) {
        return busy;
    }
    let kind = error.get_type(py).name().map_or("an exception".into(), |name| name.to_string());
    let mut message = format!("the function raised {kind}: {value}");
    let line = error.traceback(py).and_then(|traceback| {
        let mut last = traceback.into_any();
        while let Ok(next) = last.getattr("tb_next") {
            if next.is_none() {
                break;
            }
            last = next;
        }
        let code = last.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let line: u32 = last.getattr("tb_lineno").ok()?.extract().ok()?;
        Some(format!(" ({file}, line {line})"))
    });
    message.push_str(&line.unwrap_or_default());
    Diagnostic::new(Code::InvalidRule, message).into()
}

/// The error of a nested run that was rejected because of its depth; the runs around it pass it on
/// unchanged.
fn too_deep(raised: &Bound<'_, pyo3::exceptions::PyBaseException>) -> Option<Error> {
    let text = |name: &str| raised.getattr(name).ok()?.extract::<String>().ok();
    if text("code")? != Code::Busy.as_str() {
        return None;
    }
    Some(Diagnostic::new(Code::Busy, text("message")?).with_hint(text("hint")?).into())
}

/// The parts of a signature that users' functions receive: name, operands, results, attributes, and
/// whether propagation is conservative.
pub(super) fn signature_arguments<'py>(
    py: Python<'py>,
    view: &SignatureView<'_>,
) -> PyResult<Bound<'py, PyTuple>> {
    let (operands, results) = tensor_types(view);
    let attributes = PyDict::new(py);
    for (name, value) in view.attributes() {
        attributes.set_item(name, to_python(py, value)?)?;
    }
    (view.name, operands, results, attributes, view.conservative).into_pyobject(py)
}

/// Calls `function` with the parts of a signature.
fn call(
    py: Python<'_>,
    function: &Py<PyAny>,
    view: &SignatureView<'_>,
) -> PyResult<Result<Option<OpShardingRule>>> {
    let answer = function.bind(py).call1(signature_arguments(py, view)?)?;
    if answer.is_none() {
        return Ok(Ok(None));
    }
    if let Ok(text) = answer.cast::<PyString>() {
        let text = text.to_str()?;
        let rule = if text.trim_start().starts_with(['#', '<']) {
            // The span is in the user's string, not in the program.
            parse_rule(text, 0).map_err(|mut error| {
                error.diagnostics.iter_mut().for_each(|diagnostic| diagnostic.span = None);
                error
            })
        } else {
            text.parse::<Notation>().and_then(|notation| notation.instantiate(view))
        };
        return Ok(rule.map(Some));
    }
    if let Ok(rule) = answer.extract::<PyOpShardingRule>() {
        return Ok(Ok(Some(rule.rule)));
    }
    let kind = answer.get_type().name()?;
    let message = format!("the function returned {kind}, not an OpShardingRule, a string or None");
    Ok(Err(Diagnostic::new(Code::InvalidRule, message).into()))
}

/// Shape and element type of each tensor; `None` for other types.
type TensorTypes = Vec<Option<(Vec<i64>, String)>>;

fn tensor_types(view: &SignatureView<'_>) -> (TensorTypes, TensorTypes) {
    let Some((program, id)) = view.source() else { return (Vec::new(), Vec::new()) };
    let signature = &program.signatures()[id];
    let tensor = |ty: &crate::index::TypeId| match &program.types()[*ty] {
        ty @ Type::RankedTensor { element, .. } => {
            let element = program.types().element_text(element, program.strings());
            Some((ty.static_shape()?, element.to_owned()))
        }
        _ => None,
    };
    let operands = signature.operand_types.iter().map(tensor).collect();
    (operands, signature.result_types.iter().map(tensor).collect())
}
