//! Looks up functions and values by name, `module["%12"]`, and by pytree path in the user's
//! program, `module["params['w']"]`.

use super::errors::shown;
use super::port::PyPort;
use super::user_code::{call_own, own_function};
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, StrId, ValueId};
use crate::ir::Program;
use crate::mlir::{CallSites, Denoted, QualifiedNames};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The name index of the program that was used last.
#[derive(Default)]
pub(super) struct LastNames(Mutex<Option<(Weak<Program>, Arc<Names>)>>);

impl LastNames {
    /// The names of `program`.
    pub fn of(&self, program: &Arc<Program>) -> Arc<Names> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, names)) if known.as_ptr() == Arc::as_ptr(program) => names.clone(),
            _ => {
                let names: Arc<Names> = Arc::default();
                *last = Some((Arc::downgrade(program), names.clone()));
                names
            }
        }
    }
}

/// A name index of one program, which does not change, so that looking up all values takes linear
/// time.
#[derive(Default)]
pub(super) struct Names {
    functions: OnceLock<Functions>,
    values: QualifiedNames,
    call_sites: OnceLock<Arc<CallSites>>,
    /// `shardcore.session.paths.Ports`.
    ports: OnceLock<Py<PyAny>>,
}

/// The functions of a program.
struct Functions {
    entry: Option<FuncId>,
    by_name: FxHashMap<StrId, FuncId>,
}

impl Names {
    fn functions(&self, program: &Program) -> &Functions {
        self.functions.get_or_init(|| {
            let mut by_name = FxHashMap::default();
            for function in program.functions_in_order() {
                by_name.entry(program.func_name(function)).or_insert(function);
            }
            Functions { entry: program.entry_function(), by_name }
        })
    }
    /// The call sites of the functions of `program`.
    pub fn call_sites(&self, program: &Program) -> Arc<CallSites> {
        self.call_sites.get_or_init(|| CallSites::new(program).into()).clone()
    }
    /// The arguments and results of the entry function of `program` by path,
    /// `shardcore.session.paths.Ports`.
    pub fn ports<'py>(
        &self,
        py: Python<'py>,
        program: &Arc<Program>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(ports) = self.ports.get() {
            return Ok(ports.bind(py).clone());
        }
        // No lock is held here; if two threads compute this, the first result is kept.
        let ports = (PyPort::arguments(program), PyPort::results(program));
        let made = own_function(py, "shardcore.session.paths", "Ports", ports, None)?;
        let _ = self.ports.set(made.clone().unbind());
        Ok(made)
    }
    /// The entry function.
    pub fn entry(&self, program: &Program) -> Option<FuncId> {
        self.functions(program).entry
    }
    /// The first function called `name`.
    pub fn function(&self, program: &Program, name: &str) -> Option<FuncId> {
        let name = program.strings().find(name)?;
        self.functions(program).by_name.get(&name).copied()
    }
    /// The value that `path`, `%12` or `%0 do %8`, denotes in `function`.
    pub fn find(&self, program: &Program, function: FuncId, path: &str) -> Denoted {
        self.values.find(program, function, path)
    }
    /// The shortest unambiguous name of `value`, which is in `function`: `%12`, or `@helper %12` in
    /// a function other than the entry function.
    pub fn name(&self, program: &Program, function: FuncId, value: ValueId) -> String {
        let name = self.values.name(program, value);
        self.in_function(program, function, &name)
    }
    /// `name`, the name of something in `function`, after the name of the function, unless that is
    /// the entry function.
    pub fn in_function(&self, program: &Program, function: FuncId, name: &str) -> String {
        if self.entry(program) == Some(function) {
            return name.to_owned();
        }
        format!("@{} {name}", program.str(program.func_name(function)))
    }
    /// The function in `text`, by default the entry function, and the name inside it:
    /// `@helper %12`, where the function's name may be quoted.
    ///
    /// # Errors
    ///
    /// There is no function of that name.
    pub fn split<'a>(
        &self,
        program: &Program,
        text: &'a str,
    ) -> Result<(Option<FuncId>, &'a str), &'a str> {
        let text = text.trim();
        let Some(rest) = text.strip_prefix('@') else { return Ok((self.entry(program), text)) };
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        // The function's name may contain spaces.
        let ends = [" %", " result "].into_iter().filter_map(|end| rest.find(end));
        let long = ends.min().map(|end| (rest[..end].trim(), &rest[end..]));
        let short = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        for (name, path) in quoted.into_iter().chain(long).chain([short]) {
            if let Some(function) = self.function(program, name) {
                return Ok((Some(function), path.trim()));
            }
        }
        Err(quoted.or(long).unwrap_or(short).0)
    }
}

/// The error that the name `asked` denotes `several` values; some of them are listed by unambiguous
/// names.
pub(super) fn ambiguous(asked: &str, several: &[String]) -> Diagnostic {
    let message = format!("{} denotes several values", shown(asked));
    let listed: Vec<String> = several.iter().map(|name| format!("\"{name}\"")).collect();
    let hint = format!("say which by the op that it is in: {}", listed.join(", "));
    Diagnostic::new(Code::UnknownLocation, message).with_hint(hint)
}

/// The value that `key` denotes, and its function: `%12`, `@helper %12`, a pair of both, or a
/// pytree path in the user's program.
///
/// # Errors
///
/// `KeyError` if it denotes nothing. If it denotes several values, the first is returned.
pub(super) fn called(
    key: &Bound<'_, PyAny>,
    (program, names): (&Arc<Program>, &Names),
) -> PyResult<(FuncId, ValueId)> {
    let text: String;
    let (function, path) = if let Ok(pair) = key.cast::<PyTuple>() {
        let (function, name): (String, String) = pair.extract()?;
        text = name;
        let name = function.strip_prefix('@').unwrap_or(&function);
        let function = names.function(program, name).ok_or_else(|| no_function(name))?;
        (Some(function), text.trim())
    } else {
        text = key.extract()?;
        names.split(program, &text).map_err(no_function)?
    };
    let no_entry = || PyKeyError::new_err("the module has no function");
    let function = function.ok_or_else(no_entry)?;
    let wanted = if path.starts_with('%') { path.to_owned() } else { format!("%{path}") };
    let mut found = names.find(program, function, &wanted);
    if found == Denoted::Nothing && !path.starts_with('%') {
        found = names.find(program, function, path);
        if found == Denoted::Nothing && names.entry(program) == Some(function) {
            let value = at_path(key.py(), (program, names), path)?;
            found = value.map_or(found, Denoted::Value);
        }
    }
    if let Denoted::Several(several) = found {
        found = names.find(program, function, &several[0]);
    }
    found.value().map(|value| (function, value)).ok_or_else(|| {
        let symbol = shown(program.str(program.func_name(function)));
        PyKeyError::new_err(format!("no value {} in @{symbol}", shown(&wanted)))
    })
}

fn no_function(name: &str) -> PyErr {
    PyKeyError::new_err(format!("no function @{}", shown(name)))
}

/// The argument of the entry function with the pytree path `path` in the user's program, or the
/// value that it returns as the result with that path.
///
/// # Errors
///
/// `KeyError` if there is no such path but a similar one.
fn at_path(
    py: Python<'_>,
    (program, names): (&Arc<Program>, &Names),
    path: &str,
) -> PyResult<Option<ValueId>> {
    let ports = names.ports(py, program)?;
    let found = call_own(py, || ports.call_method1("called", (path,)))?;
    let port: Option<Bound<'_, PyPort>> = found.extract()?;
    Ok(port.and_then(|port| port.get().value()))
}
