//! The function behind `Result.partition`.

use super::arguments::Items;
use super::errors::raise;
use super::module::PyModule;
use super::pass_manager::{limits, work};
use super::rule::PyOpShardingRule;
use super::rules::registry;
use crate::cost::inline::Inlined;
use crate::import::symbol_dce;
use crate::index::{Id, SignatureId};
use crate::ir::Program;
use crate::spmd::custom_calls::{ShardRule, ShardRules};
use crate::spmd::{improve, partition, Policy, Results};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Signature, rule, target and attributes.
type ShardRuleArguments = (usize, PyOpShardingRule, Option<String>, Vec<(String, String)>);

fn shard_rule(
    (signature, rule, target, attributes): ShardRuleArguments,
) -> (SignatureId, ShardRule) {
    let rule = rule.rule;
    (SignatureId::from_index(signature), ShardRule { rule, target, attributes })
}

/// What devices run of `module`, whose shardings are complete: the local module; for how many devices it is; and
/// for ops of `module` their number, name and place, how they are computed and why.
/// `shard_rules` are what users say of custom calls: signature, rule, the target of shards, attributes.
/// Under the policy `least` the passes of [`improve`] run on the local module. With `keep_results` results stay as they are
/// computed until some op needs them otherwise, and calls are inlined, so that what they take and return does too.
#[pyfunction]
#[pyo3(signature = (module, progress = None, shard_rules = None, policy = "least", keep_results = false))]
pub(super) fn partition_program<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyModule>,
    progress: Option<Py<PyAny>>,
    shard_rules: Option<Items<ShardRuleArguments>>,
    policy: &str,
    keep_results: bool,
) -> PyResult<(Py<PyModule>, i64, Bound<'py, PyList>)> {
    let (source, filename) = (module.get().program(py)?, module.get().filename.clone());
    let rules = registry().legalizing_chlo();
    let mut inlined = keep_results.then(|| Inlined::with_limit(&source, source.num_op_ids()));
    let mut program = match &mut inlined {
        Some(inlined) => inlined.take_program(),
        None => Program::clone(&source),
    };
    let shard_rules = shard_rules.map_or_else(ShardRules::default, |Items(rules)| {
        rules.into_iter().map(shard_rule).collect()
    });
    let results = if keep_results { Results::AsComputed } else { Results::AsSharded };
    let chosen = if policy == "xla" { Policy::Xla } else { Policy::FewestBytes };
    let improve = policy == "least";
    let outcome = work(py, rules, limits(None), progress.as_ref(), |context| {
        if keep_results {
            symbol_dce::run(&mut program, context)?;
        }
        let partitioned = partition(&mut program, context, shard_rules, (chosen, results))?;
        if improve {
            improve::run(&mut program, context)?;
        }
        Ok(partitioned)
    })?;
    let text = source.text().source();
    let partitioned = outcome.map_err(|error| raise(py, &error, text, &filename))?;
    let outcomes = PyList::empty(py);
    for outcome in &partitioned.outcomes {
        let op = inlined.as_ref().map_or(outcome.op, |inlined| inlined.original_op(outcome.op));
        let kind = outcome.kind.as_str();
        let (name, place) = (source.op_name(op), source.op_location(op));
        outcomes.append((op.index(), name, place, kind, &*outcome.reason))?;
    }
    let local = Py::new(py, PyModule::new(program, filename))?;
    Ok((local, partitioned.num_devices, outcomes))
}
