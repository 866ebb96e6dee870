//! The arguments of a call of `Module.propagate`, which are stored to complete the shardings again with explicit
//! collectives.

use super::errors::{raise, raise_unlocated};
use super::module::PyModule;
use super::pass_manager::{limits, run, work};
use super::rules::registry;
use super::why::PyExplainer;
use crate::error::Error;
use crate::explain::Explained;
use crate::ir::Program;
use crate::pipeline::{Completion, Pipeline};
use crate::propagation::Strategy;
use crate::verify::verify_made;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The arguments of `Module.propagate`, and the program that it was called on.
#[derive(Clone)]
pub(super) struct Request {
    /// The program before propagation.
    pub before: Arc<Program>,
    /// The filename in its errors.
    pub filename: Arc<str>,
    /// How shardings are completed.
    pub how: Completion,
    /// Whether ops of CHLO have the rules of the ops that XLA legalizes them to.
    pub legalize_chlo: bool,
    /// The limit of the number of ops.
    pub max_ops: Option<usize>,
}

impl Request {
    /// The completed program, which is verified; with explicit collectives if `collectives`, and then not
    /// verified, and with CHLO legalized, as when XLA inserts the collectives.
    pub fn complete(
        &self,
        py: Python<'_>,
        collectives: bool,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<PyModule> {
        let pipeline = Pipeline::propagation(Completion { collectives, ..self.how })
            .map_err(|error| raise_unlocated(py, error.diagnostics))?;
        let mut rules = registry();
        if self.legalize_chlo || collectives {
            rules = rules.legalizing_chlo();
        }
        let mut program = Program::clone(&self.before);
        let limits = limits(self.max_ops);
        run(py, &pipeline, rules, &mut program, &self.filename, (limits, false), progress)?;
        if !collectives {
            self.check(py, &program)?;
        }
        Ok(PyModule::new(program, self.filename.clone()))
    }
    /// The options, by their names in Python.
    pub fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        options.set_item("up_to_priority", self.how.up_to_priority)?;
        options.set_item("keep_non_divisible_on_io", self.how.keep_non_divisible_on_io)?;
        options.set_item("dedup_functions_fully", self.how.dedup_functions_fully)?;
        options.set_item("strategy", self.how.strategy.name())?;
        options.set_item("legalize_chlo", self.legalize_chlo)?;
        options.set_item("max_ops", self.max_ops)?;
        Ok(options)
    }
    /// What it takes to explain `result`, the completed program.
    pub fn explain(&self, py: Python<'_>, result: Arc<Program>) -> PyResult<PyExplainer> {
        let mut rules = registry();
        if self.legalize_chlo {
            rules = rules.legalizing_chlo();
        }
        let mut program = Program::clone(&self.before);
        rules.install_edges(&mut program);
        let limits = limits(self.max_ops);
        let explained = work(py, rules, limits, None, |context| {
            Pipeline::explain(self.how, &mut program, context)
        })?;
        let text = self.before.text().source();
        let explanation = explained.map_err(|error| raise(py, &error, text, &self.filename))?;
        let explained = Explained::new(self.before.clone(), program, explanation);
        Ok(PyExplainer::new(explained, self.before.clone(), result))
    }
    /// Fails if `program`, a completed program, does not verify.
    pub fn check(&self, py: Python<'_>, program: &Program) -> PyResult<()> {
        let checked = py.detach(|| Error::check(verify_made(program)));
        checked.map_err(|error| raise(py, &error, program.text().source(), &self.filename))
    }
}

/// The strategy called `name`.
pub(super) fn strategy_named(name: &str) -> PyResult<Strategy> {
    Strategy::named(name).ok_or_else(|| {
        let known = Strategy::NAMES.join(", ");
        PyValueError::new_err(format!("a strategy is one of {known}, not '{name}'"))
    })
}
