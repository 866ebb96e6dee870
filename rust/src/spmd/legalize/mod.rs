//! Legalizes ops that have no strategy to ops that have one, as XLA expands ops before it partitions.
//!
//! Shardy has no sharding rule for these ops, so that shardings do not propagate through them; the shardings that their operands
//! and results have are kept. The replacements are:
//!
//! - [`dynamism`]: ops whose result has a static shape and whose sizes are operands.
//! - [`deprecated`]: `einsum`, `unary_einsum`, `torch_index_select` and `broadcast`.
//! - [`normalization`]: `batch_norm_training` and `batch_norm_grad`, as reductions and elementwise ops. XLA's partitioner
//!   replicates their operands, and expands them later; so does the policy `xla`.
//! - [`padded_windows`]: folds pads into window padding, under the policies that send the fewest bytes.
//! - [`chlo`]: `chlo.broadcast_*` and `chlo.constant_like`.
//! - `map` stays, with the rule of elementwise ops.
//!
//! Source: the passes `stablehlo-canonicalize-dynamism`, `stablehlo-legalize-deprecated-ops` and
//! `chlo-legalize-to-stablehlo` of `StableHLO`; XLA's `batchnorm_expander.cc`.

mod chlo;
mod deprecated;
mod dynamism;
mod normalization;
mod padded_windows;
mod sums;

use super::outcome::{Outcome, OutcomeKind};
use super::policy::Policy;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FactorId, Id, OpId, StrId, TypeId, ValueId};
use crate::ir::{NewOp, Program};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::stablehlo::Checker;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How an op is replaced.
#[derive(Clone, Copy)]
enum Replace {
    /// By one result; `None` if the op has to stay.
    One(fn(&mut Program, OpId) -> Option<ValueId>),
    /// By the three results of a batch normalization.
    Three(fn(&mut Program, OpId) -> Option<[ValueId; 3]>),
    /// Not at all: the op gets the sharding rule of elementwise ops.
    OpWithRule,
}
use Replace::{One, OpWithRule, Three};

/// The ops that are replaced.
const REPLACED: &[(&str, Replace)] = &[
    ("chlo.constant_like", One(chlo::constant_like)),
    ("stablehlo.batch_norm_grad", Three(normalization::grad)),
    ("stablehlo.batch_norm_training", Three(normalization::training)),
    ("stablehlo.broadcast", One(deprecated::broadcast)),
    ("stablehlo.dynamic_broadcast_in_dim", One(dynamism::broadcast_in_dim)),
    ("stablehlo.dynamic_conv", One(dynamism::convolution)),
    ("stablehlo.dynamic_gather", One(dynamism::gather)),
    ("stablehlo.dynamic_iota", One(dynamism::iota)),
    ("stablehlo.dynamic_pad", One(dynamism::pad)),
    ("stablehlo.dynamic_reshape", One(dynamism::reshape)),
    ("stablehlo.einsum", One(deprecated::einsum)),
    ("stablehlo.get_dimension_size", One(dynamism::get_dimension_size)),
    ("stablehlo.map", OpWithRule),
    ("stablehlo.real_dynamic_slice", One(dynamism::slice)),
    ("stablehlo.set_dimension_size", One(dynamism::set_dimension_size)),
    ("stablehlo.torch_index_select", One(deprecated::torch_index_select)),
    ("stablehlo.unary_einsum", One(deprecated::unary_einsum)),
];

/// Whether ops called `name` are replaced, or get a rule.
pub(super) fn is_legalized(name: &str) -> bool {
    chlo::is_broadcasting(name) || REPLACED.iter().any(|(replaced, _)| *replaced == name)
}

/// The ops that were replaced.
#[derive(Default)]
pub(super) struct Legalized {
    /// The ops that were created, each with the op that it replaces or is a part of.
    made: FxHashMap<OpId, OpId>,
    /// The pads that were folded into another op, by that op.
    pads: FxHashMap<OpId, OpId>,
}

impl Legalized {
    /// The replaced ops, where `made` says which of these were created for other ops before.
    pub(super) fn after(self, made: FxHashMap<OpId, OpId>) -> Self {
        let first = |(new, op)| (new, made.get(&op).copied().unwrap_or(op));
        let later: FxHashMap<OpId, OpId> = self.made.into_iter().map(first).collect();
        Self { made: made.into_iter().chain(later).collect(), ..self }
    }
    /// Attributes `outcomes` to the ops that were replaced: of several, the one with the most communication.
    pub(super) fn name_replaced(&self, outcomes: &mut Vec<Outcome>) {
        if self.made.is_empty() {
            return;
        }
        let mut first: FxHashMap<OpId, usize> = FxHashMap::default();
        let mut kept: Vec<Outcome> = Vec::with_capacity(outcomes.len());
        for outcome in outcomes.drain(..) {
            let Some(&op) = self.made.get(&outcome.op) else {
                kept.push(outcome);
                continue;
            };
            let outcome = Outcome { op, ..outcome };
            if let Some(&pad) = self.pads.get(&op).filter(|_| !first.contains_key(&op)) {
                kept.push(Outcome { op: pad, kind: OutcomeKind::Local, reason: Arc::default() });
            }
            let place = *first.entry(op).or_insert(kept.len());
            match kept.get_mut(place) {
                None => kept.push(outcome),
                Some(before) if before.kind < outcome.kind => *before = outcome,
                Some(_) => {}
            }
        }
        *outcomes = kept;
    }
}

/// Replaces ops of `program` that have no sharding rule.
pub(super) fn run(
    program: &mut Program,
    context: &mut Context<'_>,
    policy: Policy,
) -> Result<Legalized> {
    let mut legalized = Legalized::default();
    if policy == Policy::FewestBytes {
        fold_pads(program, &mut legalized);
    }
    let broadcasting = chlo::broadcasting_names().map(|name| (name, One(chlo::broadcasting)));
    let names: FxHashMap<StrId, Replace> = REPLACED
        .iter()
        .copied()
        .chain(broadcasting)
        .filter(|(_, replace)| !matches!(replace, Three(_)) || policy != Policy::Xla)
        .filter_map(|(name, replace)| Some((program.find_name(name)?, replace)))
        .collect();
    if names.is_empty() {
        return Ok(legalized);
    }
    context.rules.prepare(program, false)?;
    for op in program.op_ids() {
        let Some(&replace) = names.get(&program.op_name_id(op)) else { continue };
        let is_replaced = !program.is_erased(op)
            && context.rules.rule(program, op).is_none()
            && program.op_results(op).all(|value| is_reduced(program, value));
        match replace {
            _ if !is_replaced => {}
            OpWithRule => give_pointwise_rule(program, op),
            made => legalized.made.extend(replaced_by(program, op, made)),
        }
    }
    Ok(legalized)
}

/// Folds pads into the windows of the reductions that read them.
fn fold_pads(program: &mut Program, legalized: &mut Legalized) {
    let Some(name) = program.find_name("stablehlo.reduce_window") else { return };
    for op in program.op_ids() {
        let is_one = !program.is_erased(op)
            && program.op_name_id(op) == name
            && program.num_results(op) == 1
            && is_reduced(program, program.result(op, 0));
        if !is_one {
            continue;
        }
        let mut folded = None;
        let made = made_for(program, op, |program| {
            let (value, pad) = padded_windows::folded(program, op)?;
            folded = Some(pad);
            Some(vec![value])
        });
        if let Some(pad) = folded.filter(|_| !made.is_empty()) {
            program.erase_op(pad);
            legalized.pads.insert(op, pad);
            legalized.made.extend(made);
        }
    }
}

/// Whether `value` has no unreduced axes.
fn is_reduced(program: &Program, value: ValueId) -> bool {
    let sharding = program.shardings().get(program.sharding(value));
    sharding.is_none_or(|sharding| sharding.unreduced.is_empty())
}

/// Replaces `op`; returns the ops that were created for it, each with `op`.
fn replaced_by(program: &mut Program, op: OpId, replace: Replace) -> Vec<(OpId, OpId)> {
    made_for(program, op, |program| match replace {
        One(make) => make(program, op).map(|value| vec![value]),
        Three(make) => make(program, op).map(|values| values.to_vec()),
        OpWithRule => None,
    })
}

/// Replaces the results of `op` by what `make` returns, if that verifies; returns the ops that were created for it.
fn made_for(
    program: &mut Program,
    op: OpId,
    make: impl FnOnce(&mut Program) -> Option<Vec<ValueId>>,
) -> Vec<(OpId, OpId)> {
    let before = program.num_op_ids();
    let values = make(program);
    let made: Vec<OpId> = (before..program.num_op_ids()).map(OpId::from_index).collect();
    let results: Vec<ValueId> = program.op_results(op).collect();
    let values = values.filter(|values| values.len() == results.len());
    let Some(values) = values.filter(|_| are_valid(program, &made)) else {
        // Constants that contradict the type of the result: what the op computes is not known.
        let block = program.parent_block(op);
        for &new in made.iter().rev() {
            if program.parent_block(new) == block {
                program.erase_op(new);
            }
        }
        return Vec::new();
    };
    for (&result, &value) in results.iter().zip(&values) {
        program.set_sharding(value, program.sharding(result));
        if results.len() == 1 {
            // Several results share the name of their op.
            program.copy_name(result, value);
        }
        program.replace_all_uses(result, value);
    }
    program.erase_op(op);
    for &new in &made {
        program.set_cause(new, op);
    }
    made.into_iter().map(|new| (new, op)).collect()
}

/// Whether `ops` verify.
fn are_valid(program: &Program, ops: &[OpId]) -> bool {
    let mut checker = Checker::new(program);
    ops.iter().all(|&op| checker.check(op).is_ok())
}

/// Makes an op called `name` in the place of `op`.
fn build(
    program: &mut Program,
    op: OpId,
    name: &str,
    operands: &[ValueId],
    ty: TypeId,
    attrs: &[(&str, String)],
) -> ValueId {
    let mut new = NewOp::new(name, operands, &[ty]);
    for (name, value) in attrs {
        new = new.attr(name, value.as_str());
    }
    let at = program.before(op);
    program.build_value(new, at)
}

/// The rule of elementwise ops for a `map`, whose operands and result have one shape.
fn give_pointwise_rule(program: &mut Program, op: OpId) {
    let Some(shape) = program.value_type(program.result(op, 0)).static_shape() else { return };
    let has_shape = |value| program.value_type(value).static_shape().as_ref() == Some(&shape);
    if !program.operands(op).all(has_shape) {
        return;
    }
    let dims = (0..shape.len()).map(|dim| vec![FactorId::from_index(dim)]).collect();
    let mapping = TensorMapping { dims };
    let rule = OpShardingRule {
        operands: vec![mapping.clone(); program.num_operands(op)],
        results: vec![mapping],
        factor_sizes: shape,
        ..OpShardingRule::default()
    };
    let rule = program.intern_rule(rule);
    program.set_op_rule(op, rule);
}
