//! `Origin`: the program that a per-device program was made from, and how its ops were partitioned.

use super::arguments::Int;
use crate::cost::local::Local;
use crate::index::{Id, OpId};
use crate::inlining::call_inliner::Originals;
use crate::ir::Program;
use crate::spmd::outcome::Outcome;
use crate::spmd::reshard_steps::Steps;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The results of partitioning besides the per-device program.
pub(super) struct Origin {
    /// The program of all devices.
    pub source: SourceProgram,
    /// The originals of clones, if calls were inlined before.
    pub originals: Option<Arc<Originals>>,
    /// How each op was partitioned.
    pub outcomes: Vec<Outcome>,
    /// The steps of reshards.
    pub steps: Steps,
}

/// Makes a program again.
type MakeAgain = dyn Fn(Python<'_>) -> PyResult<Arc<Program>> + Send + Sync;

/// The program of all devices.
pub(super) enum SourceProgram {
    /// It is stored.
    Kept(Arc<Program>),
    /// Its memory became the per-device program, and this function makes it again.
    Again(Box<MakeAgain>),
}

impl Origin {
    /// The program of all devices.
    pub fn source(&self, py: Python<'_>) -> PyResult<Arc<Program>> {
        match &self.source {
            SourceProgram::Kept(program) => Ok(Arc::clone(program)),
            SourceProgram::Again(make) => make(py),
        }
    }
    /// The pair of `program` and `source`, the program of all devices.
    pub fn local<'a>(&'a self, program: &'a Program, source: &'a Program) -> Local<'a> {
        Local { program, source, originals: self.originals.as_deref() }
    }
}

/// The program that a per-device program was made from.
#[pyclass(name = "Origin", module = "shardcore", frozen)]
pub struct PyOrigin(pub(super) Arc<Origin>);

#[pymethods]
impl PyOrigin {
    /// The op of the program of all devices that `op` is a clone of; `op` itself if no calls were
    /// inlined.
    fn original(&self, op: Int<usize>) -> usize {
        let op = OpId::from_index(op.0);
        self.0.originals.as_ref().map_or(op, |originals| originals.op(op)).index()
    }
    /// For each op its name and location, how it is computed, and why: the record of it that costs
    /// most.
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut places: FxHashMap<OpId, usize> = FxHashMap::default();
        let mut of_ops: Vec<&Outcome> = Vec::new();
        for outcome in &self.0.outcomes {
            let place = *places.entry(outcome.op).or_insert(of_ops.len());
            match of_ops.get_mut(place) {
                Some(known) if known.kind < outcome.kind => *known = outcome,
                Some(_) => {}
                None => of_ops.push(outcome),
            }
        }
        let rows = PyList::empty(py);
        let source = self.0.source(py)?;
        for outcome in of_ops {
            let (name, place) = (source.op_name(outcome.op), source.op_location(outcome.op));
            let number = outcome.op.index();
            rows.append((name, outcome.kind.as_str(), &*outcome.reason, place, number))?;
        }
        Ok(rows)
    }
}
