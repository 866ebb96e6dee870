//! The options of `Module.propagate`, which sessions also have.

use super::arguments::Limit;
use super::errors::shown;
use super::rule_registry::registry;
use super::work::limits;
use crate::context::Limits;
use crate::pipeline::Completion;
use crate::propagation::Strategy;
use crate::rules::Registry;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

/// The arguments of `Module.propagate`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct RunOptions {
    /// The options of the propagation pipeline.
    pub how: Completion,
    /// Whether CHLO ops have the rules of the ops that XLA legalizes them to.
    pub legalize_chlo: bool,
    /// The limit of the number of ops.
    pub max_ops: Option<usize>,
}

impl RunOptions {
    /// The options from the keyword arguments `options` of `function`.
    ///
    /// # Errors
    ///
    /// A `TypeError` for an unknown keyword or a value of the wrong type, a `ValueError` for an
    /// unknown strategy.
    pub fn read(function: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (mut how, mut legalize_chlo, mut max_ops) = (Completion::default(), false, None);
        for (name, value) in options.into_iter().flatten() {
            match &*name.extract::<PyBackedStr>()? {
                "up_to_priority" => {
                    how.up_to_priority = limit(&value)?.map(|Limit(priority)| priority);
                }
                "keep_non_divisible_on_io" | "keep_sub_axes_on_io" => {
                    how.keep_non_divisible_on_io |= value.extract::<bool>()?;
                }
                "dedup_functions_fully" => how.dedup_functions_fully = value.extract()?,
                "legalize_chlo" => legalize_chlo = value.extract()?,
                "strategy" => how.strategy = strategy(&value)?,
                "max_ops" => max_ops = limit(&value)?.map(Limit::count),
                other => {
                    let message = format!(
                        "{function}() got an unexpected keyword argument '{}'",
                        shown(other)
                    );
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        Ok(Self { how, legalize_chlo, max_ops })
    }
    /// The options by their Python names.
    pub fn by_name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { how, legalize_chlo, max_ops } = *self;
        let options = PyDict::new(py);
        options.set_item("up_to_priority", how.up_to_priority)?;
        options.set_item("keep_non_divisible_on_io", how.keep_non_divisible_on_io)?;
        options.set_item("dedup_functions_fully", how.dedup_functions_fully)?;
        options.set_item("strategy", how.strategy.name())?;
        options.set_item("legalize_chlo", legalize_chlo)?;
        options.set_item("max_ops", max_ops)?;
        Ok(options)
    }
    /// The rules of ops.
    pub fn rules(&self) -> Registry {
        self.rules_of(registry())
    }
    /// The rules, with the users' rules in `registry`.
    pub fn rules_of(&self, registry: Registry) -> Registry {
        if self.legalize_chlo {
            return registry.legalizing_chlo();
        }
        registry
    }
    /// The limits of passes.
    pub fn limits(&self) -> Limits {
        limits(self.max_ops)
    }
}

fn limit(value: &Bound<'_, PyAny>) -> PyResult<Option<Limit>> {
    value.extract()
}

/// The strategy called `value`; the default for `None`.
fn strategy(value: &Bound<'_, PyAny>) -> PyResult<Strategy> {
    let Some(name) = value.extract::<Option<PyBackedStr>>()? else {
        return Ok(Strategy::default());
    };
    Strategy::named(&name).ok_or_else(|| {
        let known = Strategy::NAMES.join(", ");
        PyValueError::new_err(format!("a strategy is one of {known}, not '{}'", shown(&name)))
    })
}
