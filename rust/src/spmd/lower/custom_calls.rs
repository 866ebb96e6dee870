//! Computes custom calls of known targets, or with partition rules, on shards.

use super::super::custom_calls::{batched, method_of, ShardMethod, ShardRule};
use super::super::custom_partitioning::{is_partitioned_call, rule_hint, shown};
use super::super::strategy::Strategy;
use super::{LocalValue, Lowering};
use crate::attribute::write_string;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::lower::op_with_rule::OpWithRule;
use std::rc::Rc;

/// The target of `op`, a custom call.
pub(super) fn target(program: &Program, op: OpId) -> String {
    let target = op_attribute(program, op, "call_target_name");
    target.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

impl Lowering<'_, '_, '_> {
    /// Whether `op` is a custom call of target `Sharding` whose result has the type of its operand: a sharding constraint.
    pub(super) fn is_sharding_call(&self, op: OpId) -> bool {
        let program = &*self.emit.program;
        if program.kind(op) != OpKind::CustomCall || target(program, op) != "Sharding" {
            return false;
        }
        program.num_operands(op) == 1
            && program.num_results(op) == 1
            && self.global_type(program.operand(op, 0)) == program.type_of(program.result(op, 0))
    }
    /// Fails if `op`, a custom call, has to be computed on shards and there is no rule for that.
    pub(super) fn check_custom_call(&mut self, op: OpId) -> Result<()> {
        let target = target(self.emit.program, op);
        if target.to_ascii_lowercase().contains("callback") {
            let why = format!("custom call target \"{target}\" calls back into the host");
            return Err(self.refusal(op, &why, "take the callback out of the program"));
        }
        if self.custom_call_rule(op).is_some() || (self.is_in_manual() && self.is_whole(op)) {
            return Ok(());
        }
        if is_partitioned_call(self.emit.program, op) {
            let what = shown(self.emit.program, op);
            let message = format!("{what} cannot be partitioned: it has no sharding rule");
            let problem = Diagnostic::new(Code::Unpartitionable, message);
            let program = &*self.emit.program;
            let values = program.operands(op).chain(program.op_results(op));
            let shapes: Vec<_> =
                values.map(|value| self.shape_of(self.global_type(value))).collect();
            let hint = rule_hint(&shapes, program.num_operands(op));
            return Err(problem.at_op(self.emit.program, op).with_hint(hint).into());
        }
        let why = format!("nothing is known of custom call target \"{target}\"");
        let hint = format!(
            "say how it is computed on shards: shardcore.partition_rule(\"{target}\", \"...\")"
        );
        Err(self.refusal(op, &why, &hint))
    }
    /// Whether the operands and results of `op` are replicated: inside a manual computation, along the axes that are
    /// not manual.
    fn is_whole(&mut self, op: OpId) -> bool {
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let mut placements: Vec<_> =
            operands.into_iter().map(|value| self.held(value).placement).collect();
        placements.extend(results.into_iter().map(|value| self.target(value)));
        placements.into_iter().all(|placement| self.placements[placement].is_replicated())
    }
    /// The rule by which `op`, a custom call, is computed on shards; `None` if there is none.
    pub(super) fn custom_call_rule(&self, op: OpId) -> Option<Rc<OpShardingRule>> {
        if let Some(own) = self.shard_rule(op) {
            return Some(Rc::new(own.rule.clone()));
        }
        let program = &*self.emit.program;
        match method_of(&target(program, op))? {
            ShardMethod::OpWithRule => {
                let id = self.context.rules.rule(program, op);
                id.get().map(|id| Rc::new(program.rules()[id].clone()))
            }
            ShardMethod::Batched { operand, inner } => {
                let global = |value: ValueId| self.shape_of(self.global_type(value));
                let values = program.operands(op).chain(program.op_results(op));
                let shapes: Vec<Vec<i64>> = values.map(global).collect::<Option<_>>()?;
                let num_operands = program.operands(op).count();
                batched(&shapes, num_operands, operand, inner).map(Rc::new)
            }
        }
    }
    /// The user's partition rule of `op`.
    fn shard_rule(&self, op: OpId) -> Option<&ShardRule> {
        self.shard_rules.get(&self.emit.program.signature(op).get()?)
    }
    /// Calls the target, or the one that the partition rule names, on shards.
    pub(super) fn call_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        self.mask_terms(work, strategy, &mut operands);
        let own = self.shard_rule(work.op).cloned();
        let is_other = |own: &ShardRule| own.target.is_some() || !own.attributes.is_empty();
        let Some(own) = own.filter(|own| is_other(own) && !strategy.is_whole()) else {
            return self.in_place(work, strategy, &operands);
        };
        let attrs = self.local_attributes(work.op, own);
        let attrs: Vec<(&str, String)> =
            attrs.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        let mut types = Vec::with_capacity(work.results.len());
        for (&(global, _), &placement) in work.results.iter().zip(&strategy.results) {
            types.push(self.local_type(global, placement));
        }
        let new = self.emit.op_with_results("stablehlo.custom_call", &values, &types, &attrs);
        let results: Vec<ValueId> = self.emit.program.op_results(new).collect();
        self.replace(work, strategy, &results);
    }
    /// The attributes of `op` in the generic form, with those of `own` in place of others of the same name.
    fn local_attributes(&self, op: OpId, own: ShardRule) -> Vec<(String, String)> {
        let program = &*self.emit.program;
        let mut all = own.attributes;
        let target = own.target.unwrap_or_else(|| target(program, op));
        let mut quoted = String::new();
        write_string(&mut quoted, &target);
        all.push(("call_target_name".to_owned(), quoted));
        for attr in program.op_attrs(op) {
            let name = program.str(attr.name);
            if !name.starts_with("sdy.") && all.iter().all(|(known, _)| known != name) {
                all.push((name.to_owned(), program.text().get(attr.value).to_owned()));
            }
        }
        all
    }
}
