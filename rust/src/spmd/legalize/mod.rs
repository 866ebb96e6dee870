//! Replaces ops of which partitioning knows no way by ops of which it knows some, as XLA does before it partitions.
//!
//! Shardy has no sharding rule for these ops, so that shardings do not propagate through them; those that values have
//! nevertheless stay as they are. What stands here is the op in other words:
//!
//! - [`dynamism`]: ops whose result has a static shape and whose sizes are operands.
//! - [`deprecated`]: `einsum`, `unary_einsum`, `torch_index_select` and `broadcast`.
//! - `map` stays, with the rule of elementwise ops.
//!
//! Source: the passes `stablehlo-canonicalize-dynamism` and `stablehlo-legalize-deprecated-ops` of `StableHLO`.

mod deprecated;
mod dynamism;

use super::outcome::Outcome;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FactorId, Id, OpId, StrId, TypeId, ValueId};
use crate::ir::{NewOp, Program};
use crate::rule::{OpShardingRule, TensorMapping};
use crate::stablehlo::Checker;
use rustc_hash::FxHashMap;

/// Replaces an op, which has one result; `None` if it has to stay.
type Replace = fn(&mut Program, OpId) -> Option<ValueId>;

/// The ops that are replaced.
const REPLACED: &[(&str, Replace)] = &[
    ("stablehlo.broadcast", deprecated::broadcast),
    ("stablehlo.dynamic_broadcast_in_dim", dynamism::broadcast_in_dim),
    ("stablehlo.dynamic_conv", dynamism::convolution),
    ("stablehlo.dynamic_gather", dynamism::gather),
    ("stablehlo.dynamic_iota", dynamism::iota),
    ("stablehlo.dynamic_pad", dynamism::pad),
    ("stablehlo.dynamic_reshape", dynamism::reshape),
    ("stablehlo.einsum", deprecated::einsum),
    ("stablehlo.get_dimension_size", dynamism::get_dimension_size),
    ("stablehlo.real_dynamic_slice", dynamism::slice),
    ("stablehlo.set_dimension_size", dynamism::set_dimension_size),
    ("stablehlo.torch_index_select", deprecated::torch_index_select),
    ("stablehlo.unary_einsum", deprecated::unary_einsum),
];

/// Whether ops called `name` are replaced, or get a rule.
pub(super) fn is_legalized(name: &str) -> bool {
    name == MAP || REPLACED.iter().any(|(replaced, _)| *replaced == name)
}

const MAP: &str = "stablehlo.map";

/// The ops that were made, each with the op that it replaces or is a part of.
pub(super) struct Legalized(FxHashMap<OpId, OpId>);

impl Legalized {
    /// Makes `outcomes` those of the ops that were replaced.
    pub(super) fn name_replaced(&self, outcomes: &mut [Outcome]) {
        for outcome in outcomes.iter_mut().filter(|_| !self.0.is_empty()) {
            outcome.op = self.0.get(&outcome.op).copied().unwrap_or(outcome.op);
        }
    }
}

/// Replaces ops of `program` that have no sharding rule.
pub(super) fn run(program: &mut Program, context: &mut Context<'_>) -> Result<Legalized> {
    let mut replaced = FxHashMap::default();
    let names: FxHashMap<StrId, Option<Replace>> = REPLACED
        .iter()
        .map(|&(name, replace)| (name, Some(replace)))
        .chain([(MAP, None)])
        .filter_map(|(name, replace)| Some((program.find_name(name)?, replace)))
        .collect();
    if names.is_empty() {
        return Ok(Legalized(replaced));
    }
    context.rules.prepare(program, false)?;
    for op in program.op_ids() {
        let Some(&replace) = names.get(&program.op_name_id(op)) else { continue };
        let is_replaced = !program.is_erased(op)
            && context.rules.rule(program, op).is_none()
            && program.num_results(op) == 1
            && is_reduced(program, program.result(op, 0));
        match replace {
            _ if !is_replaced => {}
            Some(replace) => replaced.extend(replaced_by(program, op, replace)),
            None => give_pointwise_rule(program, op),
        }
    }
    Ok(Legalized(replaced))
}

/// Whether `value` has no sums left to be added up.
fn is_reduced(program: &Program, value: ValueId) -> bool {
    let sharding = program.shardings().get(program.sharding(value));
    sharding.is_none_or(|sharding| sharding.unreduced.is_empty())
}

/// Replaces `op`; the ops that were made for it.
fn replaced_by(program: &mut Program, op: OpId, replace: Replace) -> Vec<(OpId, OpId)> {
    let before = program.num_op_ids();
    let value = replace(program, op);
    let made: Vec<OpId> = (before..program.num_op_ids()).map(OpId::from_index).collect();
    let Some(value) = value else { return Vec::new() };
    if !are_valid(program, &made) {
        // Constants that contradict the type of the result: what the op computes is not known.
        let block = program.parent_block(op);
        for &new in made.iter().rev() {
            if program.parent_block(new) == block {
                program.erase_op(new);
            }
        }
        return Vec::new();
    }
    let result = program.result(op, 0);
    program.set_sharding(value, program.sharding(result));
    program.copy_name(result, value);
    program.replace_all_uses(result, value);
    program.erase_op(op);
    for &new in &made {
        program.set_cause(new, op);
    }
    made.into_iter().map(|new| (new, op)).collect()
}

/// Whether `ops` are as their definitions say.
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
