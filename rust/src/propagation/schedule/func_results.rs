//! Propagation between the values that the main function returns and the shardings of its results.
//!
//! Shardings propagate between them as through an identity op, before and after each greedy run.
//! This does not queue ops.

use super::network::Network;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, OpId, ShardingId, TypeId, ValueId};
use crate::ir::{Direction, OpKind, Program};
use crate::propagation::memo::{Memo, Outcome, SpecClassId};
use crate::propagation::observe::{Cause, Clock, Slot};
use crate::propagation::origins::Subject;
use crate::propagation::plan::specs::identity_rule;
use crate::propagation::plan::WIDE;
use crate::propagation::visit::direction::OpClass;
use crate::propagation::visit::{Subset, VisitSpec};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The results of the main function.
#[derive(Clone)]
pub struct FuncResults {
    func: FuncId,
    /// The op that returns them.
    last: Option<OpId>,
    results: Vec<FuncResult>,
    /// The reader that lists changes of returned values, if there are many.
    reader: Option<usize>,
    /// The results to visit, if changes are listed.
    pending: Vec<u32>,
    /// For each kind of run the time at which no result was left to visit.
    settled: Vec<Option<Clock>>,
}

#[derive(Clone, Copy)]
struct FuncResult {
    /// The spec of its visits; `None` for types without shardings, such as tokens.
    visit: Option<(VisitSpec, SpecClassId)>,
    /// Shardings of value and result for which a visit changes nothing in any run.
    settled: [ShardingId; 2],
}

/// The main function: the only one, or the one called `main`.
pub fn main_function(program: &Program) -> Result<FuncId> {
    let functions = program.functions_in_order();
    if let [only] = functions[..] {
        return Ok(only);
    }
    let is_main = |func: &&FuncId| program.str(program.func_name(**func)) == "main";
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
    /// Prepares the results of `func`.
    pub fn new(program: &mut Program, func: FuncId, memo: &mut Memo) -> Self {
        let mut results = Vec::new();
        let mut visits: FxHashMap<TypeId, Option<(VisitSpec, SpecClassId)>> = FxHashMap::default();
        let last = return_of(program, func);
        if let Some(last) = last {
            let types: Vec<_> =
                program.operands(last).map(|value| program.type_of(value)).collect();
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

/// The spec of visits of a returned value of this type and its result.
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
    Some((spec, memo.class(program.rules(), spec)))
}

fn return_of(program: &Program, func: FuncId) -> Option<OpId> {
    let body = program.func_body(func).get()?;
    let last = program.last_op(body).get()?;
    (program.kind(last) == OpKind::FuncReturn).then_some(last)
}

impl FuncResults {
    /// Propagates between returned values and results of the main function.
    pub fn propagate(&mut self, network: &mut Network<'_>, memo: &mut Memo, run: usize) {
        let before = network.state.clock();
        let Some(last) = self.last else { return };
        if self.settled[run] == Some(before) {
            return;
        }
        let mut todo = self.todo(network, last).into_iter().peekable();
        // Results whose value changes meanwhile, because the value is returned several times.
        let mut more: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut last_index = None;
        loop {
            let is_in_order =
                |&first: &u32| more.peek().is_none_or(|&Reverse(other)| first <= other);
            let next = todo.next_if(is_in_order).or_else(|| more.pop().map(|Reverse(next)| next));
            let Some(index) = next else { break };
            if last_index == Some(index) || self.visit(network, memo, (last, index as usize), run) {
                continue;
            }
            last_index = Some(index);
            self.pending.push(index);
            if let Some(reader) = self.reader {
                for changed in network.state.readers.changed(reader) {
                    if changed > index {
                        more.push(Reverse(changed));
                    } else if changed < index {
                        self.pending.push(changed);
                    }
                }
            }
        }
        self.settled[run] = (before == network.state.clock()).then_some(before);
    }

    /// Propagates between the result at `index` and the value that is returned as it.
    pub fn visit_at(
        &mut self,
        network: &mut Network<'_>,
        memo: &mut Memo,
        index: usize,
        run: usize,
    ) {
        if let Some(last) = self.last {
            self.visit(network, memo, (last, index), run);
        }
    }
    /// The values that are returned as the results.
    pub fn values(&self, program: &Program) -> Vec<ValueId> {
        let values = self.last.map(|last| program.operands(last).take(self.results.len()));
        values.into_iter().flatten().collect()
    }

    /// The results to visit, in order.
    fn todo(&mut self, network: &mut Network<'_>, last: OpId) -> Vec<u32> {
        let mut todo = std::mem::take(&mut self.pending);
        let len = self.results.len();
        let state = &mut network.state;
        if len <= WIDE {
            todo.clear();
            todo.extend(0..len as u32);
            return todo;
        }
        let reader = *self.reader.get_or_insert_with(|| {
            let values = state.program().operands(last);
            let holders: Vec<Option<ValueId>> =
                values.take(len).map(|value| state.plan.edges.holder_of(value)).collect();
            let reader = state.readers.add(holders.into_iter());
            state.readers.add_func_results(reader, self.func);
            reader
        });
        todo.extend(state.readers.changed(reader));
        todo.sort_unstable();
        todo.dedup();
        todo
    }

    /// Visits one result and its value; true if no kind of run would change anything.
    fn visit(
        &mut self,
        network: &mut Network<'_>,
        memo: &mut Memo,
        (last, index): (OpId, usize),
        run: usize,
    ) -> bool {
        let FuncResult { visit, settled } = self.results[index];
        let Some((spec, class)) = visit else { return true };
        let state = &mut network.state;
        let value = state.program().operand(last, index);
        let slot = Slot::FuncResult(self.func, index);
        let both = [state.sharding(value), state.sharding_at(slot)];
        if both == settled {
            return true;
        }
        let entry = memo.entry(class, Subset::ALL, &both);
        match memo.outcome(&mut state.tables(), entry, Subset::ALL, &both, run) {
            Outcome::Nothing(runs) => {
                let is_settled = runs == memo.all_runs();
                if is_settled {
                    self.results[index].settled = both;
                }
                is_settled
            }
            Outcome::Updates(list) => {
                let subject = Subject::FuncResult(self.func);
                state.record_visit((subject, spec, memo.run(run)), &[value; 2], &both);
                state.set_cause(Cause::FuncResult(index));
                for update in memo.updates(list) {
                    match memo.update(update) {
                        (0, sharding) => network.update(value, sharding, sharding, None),
                        (_, sharding) => network.update_func_result(slot, sharding),
                    }
                }
                false
            }
        }
    }
}
