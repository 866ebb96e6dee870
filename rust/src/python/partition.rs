//! The function behind `Result.partition`.

use super::arguments::Items;
use super::errors::raise;
use super::local_programs::local_programs;
use super::module::PyModule;
use super::origin::{Origin, PyOrigin, SourceProgram};
use super::originals::PyOriginals;
use super::reshard_plans::PyReshardPlans;
use super::room::copy;
use super::rule::PyOpShardingRule;
use super::rule_registry::registry;
use super::work::{limits, work};
use crate::context::RuleSource;
use crate::cost::traffic::traffic;
use crate::import::symbol_dce;
use crate::index::{Id, SignatureId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::{OpKind, Program};
use crate::memoization::Taken;
use crate::pipeline::Pipeline;
use crate::spmd::custom_calls::{ShardRule, ShardRules};
use crate::spmd::{
    collective_optimizer, partition, Given, Options, Partitioned, PlanCache, Policy, Results,
    UnknownOps,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// Signature, rule, target and attributes of a custom call.
type ShardRuleArguments = (usize, PyOpShardingRule, Option<String>, Vec<(String, String)>);

fn shard_rule(
    (signature, rule, target, attributes): ShardRuleArguments,
) -> (SignatureId, ShardRule) {
    let rule = rule.rule;
    (SignatureId::from_index(signature), ShardRule { rule, target, attributes })
}

/// The per-device program of `module`, whose shardings are complete; the number of devices; and its
/// origin.
#[pyfunction]
#[pyo3(signature = (module, progress = None, shard_rules = None, policy = "least", keep_results = false,
                    replicates_unknown = false, plans = None, originals = None, improves = None,
                    looks_ahead = false, takes_source = false, local_program = None, passes = ""))]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // They are keywords in Python.
pub(super) fn partition_program(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    progress: Option<Py<PyAny>>,
    shard_rules: Option<Items<ShardRuleArguments>>,
    policy: &str,
    keep_results: bool,
    replicates_unknown: bool,
    plans: Option<PyRef<'_, PyReshardPlans>>,
    originals: Option<PyRef<'_, PyOriginals>>,
    improves: Option<bool>,
    looks_ahead: bool,
    takes_source: bool,
    local_program: Option<Py<PyAny>>,
    passes: &str,
) -> PyResult<(Py<PyModule>, i64, PyOrigin)> {
    let filename = module.get().filename.clone();
    let rules = registry().legalizing_chlo();
    let originals = originals.map(|originals| Arc::clone(&originals.0));
    let source = module.get().program(py)?;
    let text = source.text().shared_source();
    let (mut program, source, originals) = if keep_results {
        let inlined = Inlined::with_limit(&source, source.num_op_ids());
        let (program, originals) = inlined.into_parts();
        (program, SourceProgram::Kept(source), Some(Arc::new(originals)))
    } else {
        let (program, source) = given_or_copied(py, module.get(), source, takes_source)?;
        (program, source, originals)
    };
    let shard_rules = shard_rules.map_or_else(ShardRules::default, |Items(rules)| {
        rules.into_iter().map(shard_rule).collect()
    });
    if keep_results {
        let erased = work(py, registry(), limits(None), None, |context| {
            symbol_dce::run(&mut program, context)
        })?;
        erased.map_err(|error| raise(py, &error, (*text).as_ref(), &filename))?;
    }
    let local_programs = match local_program {
        Some(ask) => local_programs(py, &program, &ask)?,
        None => Vec::new(),
    };
    let given = Given { shard_rules, local_programs };
    let results = match (keep_results, looks_ahead) {
        (false, _) => Results::AsSharded,
        (true, false) => Results::AsComputed,
        (true, true) => Results::AsWanted,
    };
    let policy_of_ops = match policy {
        "xla" => Policy::Xla,
        "shardy" => Policy::Shardy,
        _ => Policy::FewestBytes,
    };
    let unknown = if replicates_unknown { UnknownOps::Replicate } else { UnknownOps::Refuse };
    let improve = improves.unwrap_or(policy == "least");
    let has_free_reshards = improve && policy_of_ops == Policy::Xla;
    let options = Options { policy: policy_of_ops, results, unknown, has_free_reshards };
    let passes = format!("builtin.module({passes})");
    let passes = Pipeline::parse(&passes, program.shardy())
        .map_err(|error| raise(py, &error, &passes, "<passes>"))?;
    let plans = plans.as_ref();
    let mut known = plans.map_or_else(|| Taken::apart(PlanCache::default()), |plans| plans.take());
    let outcome = work(py, rules, limits(None), progress.as_ref(), |context| {
        let partitioned = partition(&mut program, context, given, options, &mut known)?;
        if improve {
            // Only one of the compared plans is kept; signatures of its ops are computed when
            // needed.
            collective_optimizer::run(&mut program, context)?;
        } else {
            context.rules.sign(&mut program);
        }
        passes.run(&mut program, context)?;
        if !improve {
            context.rules.sign(&mut program);
        }
        Ok(partitioned)
    })?;
    if let Some(plans) = plans {
        plans.put(known);
    }
    let Partitioned { num_devices, mut outcomes, steps } =
        outcome.map_err(|error| raise(py, &error, (*text).as_ref(), &filename))?;
    if let Some(originals) = &originals {
        for outcome in &mut outcomes {
            outcome.op = originals.op(outcome.op);
        }
    }
    let local = Py::new(py, PyModule::new(program, filename))?;
    let origin = Origin { source, originals, outcomes, steps };
    Ok((local, num_devices, PyOrigin(Arc::new(origin))))
}

/// The program of `module` for in-place changes: the program itself, if `is_taken` and there are no
/// other references to it, or a copy. Also the source of the result.
fn given_or_copied(
    py: Python<'_>,
    module: &PyModule,
    program: Arc<Program>,
    is_taken: bool,
) -> PyResult<(Program, SourceProgram)> {
    if !is_taken {
        return Ok((copy(py, &program)?, SourceProgram::Kept(program)));
    }
    drop(program);
    match module.held.give() {
        Some(given) => {
            let again = module.share();
            Ok((given, SourceProgram::Again(Box::new(move |py| again.program(py)))))
        }
        None => given_or_copied(py, module, module.program(py)?, false),
    }
}

/// The traffic of collectives in `module`, a per-device program: for each distinct one its kind,
/// group size, bytes of the gathered array, and the number of runs.
#[pyfunction]
pub(super) fn collective_traffic(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
) -> PyResult<Vec<(&'static str, i64, u128, u128)>> {
    let mut program = module.get().program(py)?;
    if program.has_any(&[OpKind::Case, OpKind::If]) {
        // Of several branches, the one with the most work counts.
        program = signed(py, module.get())?;
    }
    let rows = py.detach(|| traffic(&program));
    Ok(rows.iter().map(|row| (row.kind.as_str(), row.devices, row.bytes, row.count)).collect())
}

/// The program of `module`, with signatures for all ops.
pub(super) fn signed(py: Python<'_>, module: &PyModule) -> PyResult<Arc<Program>> {
    let program = module.program(py)?;
    if !program.has_new_ops() {
        return Ok(program);
    }
    let mut program = Arc::unwrap_or_clone(program);
    registry().legalizing_chlo().sign(&mut program);
    Ok(Arc::new(program))
}
