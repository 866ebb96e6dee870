//! Between what the main function returns and the shardings of its results.
//!
//! They propagate as through an identity op, before and after each greedy run, and notify nobody.

use super::direction::OpClass;
use super::engine::{sharding, Engine};
use super::kinds::identity_rule;
use super::memo::Outcome;
use super::origins::Subject;
use super::queue::NOBODY;
use super::visit::{Subset, Tables, VisitKind};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, OpId, RuleId, ShardingId, TypeId};
use crate::ir::{Direction, OpKind, Program};
use rustc_hash::FxHashMap;

/// The results of the main function.
#[derive(Default)]
pub(super) struct FuncResults {
    results: Vec<FuncResult>,
    /// Number of changes of shardings when nothing was to be done, by run.
    settled: Vec<Option<usize>>,
}

struct FuncResult {
    index: usize,
    rule: RuleId,
    /// Shardings of value and result between which nothing propagates in any run.
    settled: (ShardingId, ShardingId),
}

/// The function that is not called by others: the only one, or that called `main`.
pub(super) fn main_function(program: &Program) -> Result<FuncId> {
    let functions = program.functions_in_order();
    if let [only] = functions[..] {
        return Ok(only);
    }
    let is_main = |func: &&FuncId| program.strings.get(program.functions[**func].name) == "main";
    functions.iter().find(is_main).copied().ok_or_else(|| {
        let message = if functions.is_empty() {
            "the module has no function"
        } else {
            "none of the functions of the module is called \"main\""
        };
        let hint = "propagation starts from the only function, or from the one called \"main\"";
        Diagnostic::new(Code::UnknownSymbol, message).with_hint(hint).into()
    })
}

impl FuncResults {
    /// Those of `func`.
    pub fn new(program: &mut Program, func: FuncId, num_runs: usize) -> Self {
        let mut results = Vec::new();
        let mut rules: FxHashMap<TypeId, Option<RuleId>> = FxHashMap::default();
        if let Some(last) = return_of(program, func) {
            let types: Vec<_> =
                program.op_operands(last).iter().map(|s| program.values[s.value].ty).collect();
            let num_results = program.functions[func].result_shardings.len();
            for (index, ty) in types.into_iter().enumerate().take(num_results) {
                // Tokens and the like are left out.
                let rule = rules.entry(ty).or_insert_with(|| identity_rule(program, ty, 1));
                if let Some(rule) = *rule {
                    results.push(FuncResult { index, rule, settled: Default::default() });
                }
            }
        }
        Self { results, settled: vec![None; num_runs] }
    }
}

fn return_of(program: &Program, func: FuncId) -> Option<OpId> {
    let body = program.functions[func].body.get()?;
    let last = program.blocks[body].last_op.get()?;
    (program.kind(last) == OpKind::FuncReturn).then_some(last)
}

impl Engine<'_> {
    /// Propagates between returned values and results of `func`.
    pub fn propagate_func_results(&mut self, func: FuncId, results: &mut FuncResults, run: usize) {
        if results.settled[run] == Some(self.stats.changes) {
            return;
        }
        let before = self.stats.changes;
        let Some(last) = return_of(self.program, func) else { return };
        for result in &mut results.results {
            let value = self.program.operand(last, result.index);
            let inside = sharding(self.program, &self.plan.edges, value);
            let outside = self.program.functions[func].result_shardings[result.index];
            let pair = (inside, outside);
            if pair == result.settled {
                continue;
            }
            let kind = VisitKind {
                rule: result.rule,
                class: OpClass::Fixed(Direction::Both),
                has_single_uses: false,
                is_elementwise: false,
                is_conservative: false,
            };
            let mut tables = Tables {
                rules: &self.program.rules,
                meshes: &self.program.meshes,
                shardings: &mut self.program.shardings,
            };
            let all = (1 << self.memo.runs().len()) - 1;
            let class = self.memo.class(tables.rules, kind);
            let (all_tensors, both) = (Subset::ALL, [inside, outside]);
            let entry = self.memo.entry(class, all_tensors, &both);
            match self.memo.outcome(&mut tables, entry, all_tensors, &both, run) {
                Outcome::Nothing(runs) if runs == all => result.settled = pair,
                Outcome::Nothing(_) => {}
                Outcome::Updates(change) => {
                    if self.recorder.is_some() {
                        let (subject, pair) = (Subject::FuncResult(func), [inside, outside]);
                        self.record_visit(subject, kind, run, &[value, value], &pair);
                    }
                    for update in self.memo.updates(change) {
                        let (index, sharding) = self.memo.update(update);
                        self.stats.updates += 1;
                        if index == 0 {
                            self.update(value, sharding, sharding, NOBODY, false);
                        } else {
                            self.set_func_result(func, result.index, sharding);
                        }
                    }
                }
            }
        }
        results.settled[run] = (before == self.stats.changes).then_some(before);
    }

    /// Sets the sharding of result `index` of `func`.
    pub fn set_func_result(&mut self, func: FuncId, index: usize, sharding: ShardingId) {
        let function = &mut self.program.functions[func];
        let old = std::mem::replace(&mut function.result_shardings[index], sharding);
        if old != sharding {
            self.stats.changes += 1;
            let op = function.op;
            self.program.mark_attrs_changed(op);
        }
    }
}
