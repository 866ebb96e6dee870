//! The function behind `Result.partition`.

use super::arguments::Items;
use super::errors::raise;
use super::module::PyModule;
use super::pass_manager::{limits, work};
use super::rule::PyOpShardingRule;
use super::rules::registry;
use crate::cost::inline::Inlined;
use crate::cost::traffic::traffic;
use crate::import::symbol_dce;
use crate::index::{Id, OpId, SignatureId};
use crate::ir::Program;
use crate::spmd::custom_calls::{ShardRule, ShardRules};
use crate::spmd::outcome::Outcome;
use crate::spmd::{improve, partition, Partitioned, Policy, Results};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Signature, rule, target and attributes.
type ShardRuleArguments = (usize, PyOpShardingRule, Option<String>, Vec<(String, String)>);

fn shard_rule(
    (signature, rule, target, attributes): ShardRuleArguments,
) -> (SignatureId, ShardRule) {
    let rule = rule.rule;
    (SignatureId::from_index(signature), ShardRule { rule, target, attributes })
}

/// What became of the ops of a program, which is told when somebody asks.
#[pyclass(name = "Outcomes", module = "shardcore", frozen)]
pub struct PyOutcomes {
    source: Arc<Program>,
    outcomes: Vec<Outcome>,
}

#[pymethods]
impl PyOutcomes {
    /// For each op its name and place, how it is computed and why: of what was noted of it what takes most.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut places: FxHashMap<OpId, usize> = FxHashMap::default();
        let mut of_ops: Vec<&Outcome> = Vec::new();
        for outcome in &self.outcomes {
            let place = *places.entry(outcome.op).or_insert(of_ops.len());
            match of_ops.get_mut(place) {
                Some(known) if known.kind < outcome.kind => *known = outcome,
                Some(_) => {}
                None => of_ops.push(outcome),
            }
        }
        let rows = PyList::empty(py);
        for outcome in of_ops {
            let (name, place) =
                (self.source.op_name(outcome.op), self.source.op_location(outcome.op));
            rows.append((name, outcome.kind.as_str(), &*outcome.reason, place))?;
        }
        Ok(rows)
    }
}

/// What devices run of `module`, whose shardings are complete: the local module; for how many devices it is; and
/// what became of the ops of `module`.
/// `shard_rules` are what users say of custom calls: signature, rule, the target of shards, attributes.
/// Under the policy `least` the passes of [`improve`] run on the local module. With `keep_results` results stay as they are
/// computed until some op needs them otherwise, and calls are inlined, so that what they take and return does too.
#[pyfunction]
#[pyo3(signature = (module, progress = None, shard_rules = None, policy = "least", keep_results = false))]
pub(super) fn partition_program(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    progress: Option<Py<PyAny>>,
    shard_rules: Option<Items<ShardRuleArguments>>,
    policy: &str,
    keep_results: bool,
) -> PyResult<(Py<PyModule>, i64, PyOutcomes)> {
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
    let chosen = match policy {
        "xla" => Policy::Xla,
        "shardy" => Policy::Shardy,
        _ => Policy::FewestBytes,
    };
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
    let Partitioned { num_devices, mut outcomes } =
        outcome.map_err(|error| raise(py, &error, text, &filename))?;
    if let Some(inlined) = &inlined {
        for outcome in &mut outcomes {
            outcome.op = inlined.original_op(outcome.op);
        }
    }
    drop(inlined);
    let local = Py::new(py, PyModule::new(program, filename))?;
    Ok((local, num_devices, PyOutcomes { source, outcomes }))
}

/// What the collectives of `module`, the program of one device, move: for those that are alike their kind, how many
/// devices talk to each other, the bytes of the gathered array, and how often they run.
#[pyfunction]
pub(super) fn collective_traffic(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
) -> PyResult<Vec<(&'static str, i64, u128, u128)>> {
    let (program, filename) = (module.get().program(py)?, module.get().filename.clone());
    let mut rules = registry().legalizing_chlo();
    let found = py.detach(|| traffic(&program, &mut rules));
    let rows = found.map_err(|error| raise(py, &error, program.text().source(), &filename))?;
    Ok(rows.iter().map(|row| (row.kind.as_str(), row.devices, row.bytes, row.count)).collect())
}
