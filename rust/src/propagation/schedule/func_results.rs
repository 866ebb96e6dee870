//! Between what the main function returns and the shardings of its results.
//!
//! They propagate as through an identity op, before and after each greedy run, and notify nobody.

use super::queue::NOBODY;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, OpId, ShardingId, TypeId};
use crate::ir::{Direction, OpKind, Program};
use crate::propagation::engine::{sharding, Engine};
use crate::propagation::memo::{Memo, Outcome, SpecClassId};
use crate::propagation::origins::Subject;
use crate::propagation::plan::specs::identity_rule;
use crate::propagation::plan::WIDE;
use crate::propagation::visit::direction::OpClass;
use crate::propagation::visit::{Subset, Tables, VisitSpec};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The results of the main function.
pub struct FuncResults {
    func: FuncId,
    /// The op that returns them.
    last: Option<OpId>,
    results: Vec<FuncResult>,
    /// Where changes of returned values are listed, if there are many.
    reader: Option<usize>,
    /// The results between which and their values something may propagate, if changes are listed.
    pending: Vec<u32>,
    /// Number of changes of shardings when nothing was to be done, by run.
    settled: Vec<Option<usize>>,
}

#[derive(Clone, Copy)]
struct FuncResult {
    /// How it is visited; none for tokens and the like.
    visit: Option<(VisitSpec, SpecClassId)>,
    /// Shardings of value and result between which nothing propagates in any run.
    settled: (ShardingId, ShardingId),
}

/// The function that is not called by others: the only one, or that called `main`.
pub fn main_function(program: &Program) -> Result<FuncId> {
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
    pub fn new(program: &mut Program, func: FuncId, memo: &mut Memo) -> Self {
        let mut results = Vec::new();
        let mut visits: FxHashMap<TypeId, Option<(VisitSpec, SpecClassId)>> = FxHashMap::default();
        let last = return_of(program, func);
        if let Some(last) = last {
            let types: Vec<_> =
                program.op_operands(last).iter().map(|s| program.values[s.value].ty).collect();
            let num_results = program.func_results(func).len();
            for ty in types.into_iter().take(num_results) {
                let visit = visits.entry(ty).or_insert_with(|| visit_of(program, ty, memo));
                results.push(FuncResult { visit: *visit, settled: Default::default() });
            }
        }
        let (pending, settled) = (Vec::new(), vec![None; memo.runs().len()]);
        Self { func, last, results, reader: None, pending, settled }
    }
}

/// How a value of this type and the result that it is returned as are visited.
fn visit_of(
    program: &mut Program,
    ty: TypeId,
    memo: &mut Memo,
) -> Option<(VisitSpec, SpecClassId)> {
    let spec = VisitSpec {
        rule: identity_rule(program, ty, 1)?,
        class: OpClass::Fixed(Direction::Both),
        has_single_uses: false,
        is_elementwise: false,
        is_conservative: false,
    };
    Some((spec, memo.class(&program.rules, spec)))
}

fn return_of(program: &Program, func: FuncId) -> Option<OpId> {
    let body = program.functions[func].body.get()?;
    let last = program.blocks[body].last_op.get()?;
    (program.kind(last) == OpKind::FuncReturn).then_some(last)
}

impl Engine<'_> {
    /// Propagates between returned values and results of the main function.
    pub fn propagate_func_results(&mut self, run: usize) {
        let before = self.stats.changes;
        let Some(last) = self.results.last else { return };
        if self.results.settled[run] == Some(before) {
            return;
        }
        let len = self.results.results.len();
        let mut todo = std::mem::take(&mut self.results.pending);
        if len <= WIDE {
            todo.clear();
            todo.extend(0..len as u32);
        } else {
            let reader = *self.results.reader.get_or_insert_with(|| {
                let values = self.program.op_operands(last).iter().map(|slot| slot.value);
                self.readers.add(values.take(len).map(|value| self.plan.edges.holder_of(value)))
            });
            todo.extend(self.readers.changed(reader));
            todo.sort_unstable();
            todo.dedup();
        }
        // Results whose values change meanwhile, because they stand in two places.
        let mut more: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut todo = todo.into_iter().peekable();
        let mut last_index = None;
        loop {
            let is_in_order =
                |&first: &u32| more.peek().is_none_or(|&Reverse(other)| first <= other);
            let next = todo.next_if(is_in_order).or_else(|| more.pop().map(|Reverse(next)| next));
            let Some(index) = next else { break };
            if last_index == Some(index) || self.is_result_settled(last, index as usize, run) {
                continue;
            }
            last_index = Some(index);
            let pending = &mut self.results.pending;
            pending.push(index);
            if let Some(reader) = self.results.reader {
                for changed in self.readers.changed(reader) {
                    if changed > index {
                        more.push(Reverse(changed));
                    } else if changed < index {
                        pending.push(changed);
                    }
                }
            }
        }
        self.results.settled[run] = (before == self.stats.changes).then_some(before);
    }

    /// Propagates between one result and its value; true if nothing does in any run.
    fn is_result_settled(&mut self, last: OpId, index: usize, run: usize) -> bool {
        let FuncResult { visit, settled } = self.results.results[index];
        let Some((spec, class)) = visit else { return true };
        let func = self.results.func;
        let value = self.program.operand(last, index);
        let inside = sharding(self.program, &self.plan.edges, value);
        let pair = (inside, self.program.func_results(func)[index].sharding);
        if pair == settled {
            return true;
        }
        let mut tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let all_runs = (1 << self.memo.runs().len()) - 1;
        let (all_tensors, both) = (Subset::ALL, [pair.0, pair.1]);
        let entry = self.memo.entry(class, all_tensors, &both);
        match self.memo.outcome(&mut tables, entry, all_tensors, &both, run) {
            Outcome::Nothing(runs) => {
                if runs == all_runs {
                    self.results.results[index].settled = pair;
                }
                runs == all_runs
            }
            Outcome::Updates(change) => {
                if self.recorder.is_some() {
                    self.record_visit(Subject::FuncResult(func), spec, run, &[value; 2], &both);
                }
                for update in self.memo.updates(change) {
                    let (side, sharding) = self.memo.update(update);
                    self.stats.updates += 1;
                    if side == 0 {
                        self.update(value, sharding, sharding, NOBODY, false);
                    } else {
                        self.set_func_result(func, index, sharding);
                    }
                }
                false
            }
        }
    }

    /// Sets the sharding of result `index` of `func`.
    pub fn set_func_result(&mut self, func: FuncId, index: usize, sharding: ShardingId) {
        let result = &mut self.program.func_results_mut(func)[index];
        let old = std::mem::replace(&mut result.sharding, sharding);
        if old != sharding {
            self.stats.changes += 1;
            self.program.mark_attrs_changed(self.program.functions[func].op);
            if let Some(reader) = self.results.reader.filter(|_| func == self.results.func) {
                self.readers.tensor_changed(reader, index as u32);
            }
        }
    }
}
