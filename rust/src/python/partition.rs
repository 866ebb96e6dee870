//! The function behind `Result.partition`.

use super::errors::raise;
use super::module::PyModule;
use super::pass_manager::limits;
use super::rules::registry;
use crate::context::{Context, Progress};
use crate::index::Id;
use crate::ir::Program;
use crate::spmd::partition;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// What devices run of `module`, whose shardings are complete: the local module; for how many devices it is; and
/// for ops of `module` their number, name and place, how they are computed and why.
#[pyfunction]
#[pyo3(signature = (module, progress = None))]
pub(super) fn partition_program<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyModule>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Py<PyModule>, i64, Bound<'py, PyList>)> {
    let (source, filename) = {
        let module = module.borrow();
        (module.program.clone(), module.filename.clone())
    };
    let mut rules = registry().legalizing_chlo();
    let mut program = Program::clone(&source);
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let mut report = |state: Progress<'_>| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (state.pass, state.fraction))?;
                }
                Ok(())
            });
            called.map_err(|error| raised = Some(error)).is_ok()
        };
        let mut context = Context::new(&mut rules, limits(None), &mut report);
        partition(&mut program, &mut context)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let text = source.text().source();
    let partitioned = outcome.map_err(|error| raise(py, &error, text, &filename))?;
    let outcomes = PyList::empty(py);
    for outcome in &partitioned.outcomes {
        let (op, kind) = (outcome.op, outcome.kind.as_str());
        let (name, place) = (source.op_name(op), source.op_location(op));
        outcomes.append((op.index(), name, place, kind, &outcome.reason))?;
    }
    let local = Py::new(py, PyModule::new(program, filename))?;
    Ok((local, partitioned.num_devices, outcomes))
}
