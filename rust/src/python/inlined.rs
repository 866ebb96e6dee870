//! Completes a program whose calls are inlined first.
//!
//! Shardings propagate into a function once for all of its calls, so that values of a call are resharded where calls
//! differ, and stay without sharding where the function knows less than its caller. Inlined, each call has shardings of
//! its own.

use super::completion::Request;
use super::module::PyModule;
use super::room::{copy, room_for_copy};
use super::rules::registry;
use super::work::run;
use crate::context::RuleSource;
use crate::cost::inline::{Inlined, Originals};
use crate::import::{hlo_form, hlo_order};
use crate::index::ShardingId;
use crate::ir::{OpKind, Program};
use crate::pipeline::{Completion, Pipeline};
use crate::sharding::TensorSharding;
use pyo3::prelude::*;

impl Request {
    /// The program completed once its calls are inlined, with arguments and results as in `completed`; `None` if no call
    /// of `completed` is resharded.
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
        if !place_ports(&mut program, completed) {
            return Ok(None);
        }
        self.finish(py, program).map(Some)
    }
    /// The program completed as XLA does: calls are inlined, and ops are in the order that HLO gives them. Arguments and
    /// results are placed as in `completed`.
    pub fn complete_as_xla(
        &self,
        py: Python<'_>,
        completed: &Program,
    ) -> PyResult<(PyModule, Originals)> {
        room_for_copy(py, &self.before)?;
        let (mut program, mut originals) = Inlined::new(&self.before).into_parts();
        hlo_form::run(&mut program, &mut originals);
        hlo_order::run(&mut program);
        registry().legalizing_chlo().sign(&mut program);
        let found = self.finish(py, copy(py, &program)?)?;
        if same_ports(&*found.program(py)?, completed) || !place_ports(&mut program, completed) {
            return Ok((found, originals));
        }
        Ok((self.finish(py, program)?, originals))
    }
    /// `program` with its shardings completed, and CHLO sharded as what XLA legalizes it to.
    fn finish(&self, py: Python<'_>, mut program: Program) -> PyResult<PyModule> {
        let how = Completion { collectives: false, ..self.options.how };
        let pipeline = Pipeline::propagation(how)
            .map_err(|error| super::errors::raise_unlocated(py, error.diagnostics))?;
        let rules = registry().legalizing_chlo();
        let limits = (self.options.limits(), false);
        run(py, &pipeline, rules, &mut program, &self.filename, limits, None)?;
        Ok(PyModule::new(program, self.filename.clone()))
    }
}

/// Whether arguments and results of the entry functions are sharded alike.
fn same_ports(program: &Program, other: &Program) -> bool {
    let ports = |program: &Program| {
        let func = program.entry_function()?;
        let axes = |id: ShardingId| {
            let sharding =
                program.shardings().get(id).filter(|sharding| !sharding.has_no_axes())?;
            Some(sharding.dims.iter().map(|dim| dim.axes.clone()).collect::<Vec<_>>())
        };
        let args = 0..program.func_args(func).len();
        let args = args.map(|index| axes(program.func_arg_sharding(func, index)));
        let results = program.func_results(func).iter().map(|port| axes(port.sharding));
        Some(args.chain(results).collect::<Vec<_>>())
    };
    ports(program) == ports(other)
}

/// Whether a value is resharded for a call, or behind one.
fn has_resharded_calls(program: &Program) -> bool {
    let is_call = |op| matches!(program.kind(op), OpKind::Call | OpKind::Composite);
    program.ops_of(&[OpKind::Reshard]).into_iter().any(|op| {
        let before = program.defining_op(program.operand(op, 0));
        before.is_some_and(is_call) || program.users(program.result(op, 0)).any(is_call)
    })
}

/// Gives arguments and results of the entry function of `program` the shardings that they have in `completed`, closed;
/// those without sharding are replicated. False if there is no entry function, or no mesh.
fn place_ports(program: &mut Program, completed: &Program) -> bool {
    let entries = program.entry_function().zip(completed.entry_function());
    let Some((func, known)) = entries else { return false };
    let shardings: Vec<&TensorSharding> =
        completed.shardings().ids().map(|id| &completed.shardings()[id]).collect();
    let Some(mesh) = shardings.first().map(|sharding| sharding.mesh) else { return false };
    let given = |id: ShardingId, rank: usize| match completed.shardings().get(id) {
        Some(sharding) => sharding.closed(),
        None => TensorSharding::fully_replicated(mesh, rank, true),
    };
    for index in 0..program.func_results(func).len() {
        let port = &completed.func_results(known)[index];
        let Some(rank) = completed.types()[port.ty].rank() else { continue };
        let sharding = program.intern_sharding(given(port.sharding, rank));
        program.set_func_result_sharding(func, index, sharding);
    }
    let Some(body) = program.func_body(func).get() else { return false };
    for index in 0..program.func_args(func).len() {
        let ty = completed.func_args(known)[index].ty;
        let Some(rank) = completed.types()[ty].rank() else { continue };
        let sharding = given(completed.func_arg_sharding(known, index), rank);
        let sharding = program.intern_sharding(sharding);
        let arg = program.block_arg(body, index);
        program.set_sharding(arg, sharding);
    }
    true
}
