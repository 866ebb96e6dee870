//! Functions and values by their names, `module["%12"]`, and by paths in the user's program, `module["params['w']"]`.

use super::port::PyPort;
use super::user_code::{call_own, own_function};
use crate::index::{FuncId, StrId, ValueId};
use crate::ir::Program;
use crate::mlir::CallSites;
use pyo3::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The names of the program that was asked for last.
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

/// The names that were asked for, so that looking up all values takes time linear in their number.
/// Belongs to one program, which stays as it is.
#[derive(Default)]
pub(super) struct Names {
    tables: Mutex<NameTables>,
    call_sites: OnceLock<Arc<CallSites>>,
    /// `shardcore.session.paths.Ports`.
    ports: OnceLock<Py<PyAny>>,
}

#[derive(Default)]
struct NameTables {
    functions: Option<Functions>,
    /// For each function that was asked for, the first value with a name of this hash.
    values: FxHashMap<FuncId, FxHashMap<u64, ValueId>>,
}

/// The functions of a program.
struct Functions {
    entry: Option<FuncId>,
    by_name: FxHashMap<StrId, FuncId>,
}

impl Names {
    fn tables(&self) -> MutexGuard<'_, NameTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Where the functions of `program` are called from.
    pub fn call_sites(&self, program: &Program) -> Arc<CallSites> {
        self.call_sites.get_or_init(|| CallSites::new(program).into()).clone()
    }
    /// The arguments and results of the entry function of `program` by their paths, `shardcore.session.paths.Ports`.
    pub fn ports<'py>(
        &self,
        py: Python<'py>,
        program: &Arc<Program>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(ports) = self.ports.get() {
            return Ok(ports.bind(py).clone());
        }
        // No lock is held meanwhile; of two threads that make one the first is kept.
        let ports = (PyPort::arguments(program), PyPort::results(program));
        let made = own_function(py, "shardcore.session.paths", "Ports", ports, None)?;
        let _ = self.ports.set(made.clone().unbind());
        Ok(made)
    }
    /// The entry function.
    pub fn entry(&self, program: &Program) -> Option<FuncId> {
        self.tables().functions(program).entry
    }
    /// The first function called `name`.
    pub fn function(&self, program: &Program, name: &str) -> Option<FuncId> {
        let name = program.strings().find(name)?;
        self.tables().functions(program).by_name.get(&name).copied()
    }
    /// The first value in `function` that is called `name`, which starts with `%`.
    pub fn find(&self, program: &Program, function: FuncId, name: &str) -> Option<ValueId> {
        let mut tables = self.tables();
        let values = tables.values.entry(function).or_insert_with(|| index(program, function));
        let first = *values.get(&FxBuildHasher.hash_one(name))?;
        if program.value_name(first) == name {
            return Some(first);
        }
        // Another name has the same hash.
        let values = program.values_of(program.func_op(function));
        values.into_iter().find(|&value| program.value_name(value) == name)
    }
}

impl NameTables {
    fn functions(&mut self, program: &Program) -> &Functions {
        self.functions.get_or_insert_with(|| {
            let mut by_name = FxHashMap::default();
            for function in program.functions_in_order() {
                by_name.entry(program.func_name(function)).or_insert(function);
            }
            Functions { entry: program.entry_function(), by_name }
        })
    }
}

fn index(program: &Program, function: FuncId) -> FxHashMap<u64, ValueId> {
    let mut values = FxHashMap::default();
    for value in program.values_of(program.func_op(function)) {
        let hash = FxBuildHasher.hash_one(&*program.value_name(value));
        values.entry(hash).or_insert(value);
    }
    values
}

/// The function and the name that `key` says: `@helper %12`, or a name alone.
pub(super) fn qualified(key: String) -> (Option<String>, String) {
    match key.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
        Some((function, name)) => (Some(function.to_owned()), name.trim().to_owned()),
        None => (None, key),
    }
}

/// The argument of the entry function that is called `path` in the user's program, or the value that it returns
/// as the result of that name.
///
/// # Errors
/// `KeyError` if `path` is near to one that there is.
pub(super) fn at_path(
    py: Python<'_>,
    (program, names): (&Arc<Program>, &Names),
    path: &str,
) -> PyResult<Option<ValueId>> {
    let ports = names.ports(py, program)?;
    let found = call_own(py, || ports.call_method1("called", (path,)))?;
    let port: Option<Bound<'_, PyPort>> = found.extract()?;
    Ok(port.and_then(|port| port.get().value()))
}
