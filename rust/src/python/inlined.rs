//! Completes the shardings of a program after inlining its calls.
//!
//! Without inlining, shardings propagate into a function once for all of its calls: values are
//! resharded where calls differ, and remain without sharding where the function knows less than its
//! caller. With inlining, each call has its own shardings.

use super::completion::Request;
use super::module::PyModule;
use super::originals::PyOriginals;
use super::room::room_for_copy;
use super::rule_registry::registry;
use super::work::run;
use super::xla_form::{as_in_xla, note_open_results, same_axes};
use crate::compilers::target::Compiler;
use crate::context::Progress;
use crate::import::hlo_captures;
use crate::index::ShardingId;
use crate::inlining::call_inliner::Inlined;
use crate::ir::{OpKind, Program};
use crate::memory;
use crate::module::Step;
use crate::pipeline::{Completion, Pipeline};
use crate::session::{annotate, placements, Target};
use crate::sharding::TensorSharding;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

impl Request {
    /// The program completed after inlining its calls, with the arguments and results placed as in
    /// `completed`; `None` if no call of `completed` is resharded.
    pub fn complete_inlined(
        &self,
        py: Python<'_>,
        completed: &Program,
    ) -> PyResult<Option<PyModule>> {
        if !has_resharded_calls(completed) {
            return Ok(None);
        }
        room_for_copy(py, &self.before)?;
        let inlined = Inlined::with_limit(&self.before, self.before.num_op_ids());
        let (mut program, _) = inlined.into_parts();
        if !place_ports(&mut program, &ports(completed)) {
            return Ok(None);
        }
        let (program, _) = self.finish(py, program)?;
        Ok(Some(PyModule::new(program, self.filename.clone())))
    }
    /// The request with composites replaced by their decompositions, and with arguments and results
    /// placed as in `completed`; `None` if there is no entry function.
    pub fn decomposed(&self, py: Python<'_>, completed: &Program) -> PyResult<Option<Self>> {
        room_for_copy(py, &self.before)?;
        let (mut program, _) = Inlined::composites(&self.before).into_parts();
        let is_placed = place_ports(&mut program, &ports(completed));
        Ok(is_placed.then(|| Self { before: Arc::new(program), ..self.clone() }))
    }
    /// The program completed as in the XLA `compiler`, and the originals of clones: calls are inlined,
    /// and ops are in HLO's order. That order may lead to other shardings of arguments and results than Shardy
    /// gives them on the program as it is; if `completed` is given, they are placed as in it.
    pub fn complete_as_xla(
        &self,
        py: Python<'_>,
        compiler: Compiler,
        completed: Option<&Program>,
    ) -> PyResult<Py<PyTuple>> {
        room_for_copy(py, &self.before)?;
        let rules = registry().legalizing_chlo();
        let (mut program, mut originals) = as_in_xla(&self.before, &rules, compiler);
        let ports = completed.map(ports);
        if let Some(ports) = &ports {
            place_ports(&mut program, ports);
        }
        let (mut found, step) = self.finish(py, program)?;
        hlo_captures::release(&mut found, &mut originals);
        let before = Arc::clone(&self.before);
        let make = move |report: &mut dyn FnMut(Progress<'_>) -> bool| {
            memory::ensure_for_program(before.num_op_ids())?;
            let (mut program, mut originals) =
                as_in_xla(&before, &step.rules.replaying(), compiler);
            if let Some(ports) = &ports {
                place_ports(&mut program, ports);
            }
            step.repeat(&mut program, report)?;
            hlo_captures::release(&mut program, &mut originals);
            Ok(program)
        };
        let module = PyModule::made_by(found, Arc::new(make), self.filename.clone());
        let module = Py::new(py, module)?;
        let made = (module, Py::new(py, PyOriginals(Arc::new(originals)))?);
        Ok(made.into_pyobject(py)?.unbind())
    }
    /// The result of [`Self::complete_as_xla`] with `completed`. `made` is the result without it,
    /// which is returned if it has the same shardings of arguments and results.
    pub fn keep_ports(
        &self,
        py: Python<'_>,
        compiler: Compiler,
        made: Py<PyTuple>,
        completed: &Program,
    ) -> PyResult<Py<PyTuple>> {
        let module = made.bind(py).get_item(0)?;
        let is_kept = same_ports(&*module.cast::<PyModule>()?.get().program(py)?, completed);
        if is_kept {
            return Ok(made);
        }
        self.complete_as_xla(py, compiler, Some(completed))
    }
    /// `program` with its shardings completed, where CHLO ops are sharded like the ops that XLA
    /// legalizes them to; and the run that did it.
    fn finish(&self, py: Python<'_>, mut program: Program) -> PyResult<(Program, Step)> {
        let how = Completion { collectives: false, ..self.options.how };
        let pipeline = Pipeline::propagation(how, program.shardy())
            .map_err(|error| super::errors::raise_unlocated(py, error.diagnostics))?;
        let (rules, limits) = (registry().legalizing_chlo().recording(), self.options.limits());
        let step = Step { pipeline: Arc::new(pipeline), rules: rules.clone(), limits };
        let with = (limits, false);
        run(py, &step.pipeline, rules, &mut program, &self.filename, with, None)?;
        Ok((program, step))
    }
}

/// Whether arguments and results of the entry functions have the same shardings.
fn same_ports(program: &Program, other: &Program) -> bool {
    same_axes(&ports(program), &ports(other))
}

/// The shardings of the arguments and the results of the entry function.
fn ports(program: &Program) -> Vec<Option<TensorSharding>> {
    let Some(func) = program.entry_function() else { return Vec::new() };
    let sharding = |id: ShardingId| program.shardings().get(id).cloned();
    let args = 0..program.func_args(func).len();
    let args = args.map(|index| sharding(program.func_arg_sharding(func, index)));
    args.chain(program.func_results(func).iter().map(|port| sharding(port.sharding))).collect()
}

/// Whether an operand or a result of a call is resharded.
fn has_resharded_calls(program: &Program) -> bool {
    let is_call = |op| matches!(program.kind(op), OpKind::Call | OpKind::Composite);
    program.ops_of(&[OpKind::Reshard]).into_iter().any(|op| {
        let before = program.defining_op(program.operand(op, 0));
        before.is_some_and(is_call) || program.users(program.result(op, 0)).any(is_call)
    })
}

/// Gives arguments and results of the entry function of `program` the shardings `ports`, as
/// [`placements`] says. Returns false if there is no entry function.
fn place_ports(program: &mut Program, ports: &[Option<TensorSharding>]) -> bool {
    let Some(func) = program.entry_function() else { return false };
    let placements = placements(program, func, ports);
    let annotations: Vec<(Target, ShardingId)> = placements
        .into_iter()
        .map(|(target, sharding)| (target, program.intern_sharding(sharding)))
        .collect();
    let is_placed = annotate(program, &annotations).is_ok();
    note_open_results(program);
    is_placed
}
