//! What a program costs one device: work, traffic, collectives, memory.
//!
//! The program is one with explicit collectives: every op computes on what its device holds. Its values have
//! global shapes, and shardings that say which part is local.
//!
//! 0. [`inline`]: calls become what they call, which [`calls`] knows.
//! 1. [`tensors`]: what a device holds of each value.
//! 2. [`work`]: flops of each op, by family; [`works`] looks them up by signature and local shapes.
//! 3. [`execution`]: how often each block runs: calls, [`trips`] of loops, branches.
//! 4. [`fusion`]: what is written to memory at all.
//! 5. [`memory`]: what is live, and the peak, in the better of two orders ([`schedule`]).
//! 6. [`collectives`]: what is moved, along which axes ([`groups`]), and why.
//!
//! Time is not a matter of this module: `python/shardcore/costs` knows hardware.
//!
//! All sums are 128 bits wide and saturate. All of it is linear in the program, but for values that are
//! captured by nested regions, which cost their depth.

mod buffers;
pub mod calls;
pub mod collectives;
pub mod donation;
pub mod execution;
pub mod fusion;
pub mod groups;
pub mod inline;
pub mod memory;
pub mod schedule;
pub mod tensors;
pub mod trips;
pub mod work;
pub mod works;

#[cfg(test)]
mod tests;

use crate::context::RuleSource;
use crate::error::Result;
use crate::index::{OpId, StrId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::partition::resolve_permutation_factors::halo_exchanges;
use collectives::{collective, Collective};
use execution::{Execution, Loop};
use fusion::Fusion;
use inline::Inlined;
use memory::{Liveness, Memory};
use rustc_hash::FxHashMap;
use schedule::Schedule;
use work::{Movement, Work};
use works::{Outcome, Works};

/// Ops that cost the same: same name, place in the source, element type and figures.
#[derive(Clone, Debug)]
pub struct OpRow {
    /// The first such op.
    pub op: OpId,
    /// The element type of its first operand, or of its result if it has no tensor operand.
    pub element: StrId,
    /// Work of one of them.
    pub work: Work,
    /// Bytes that one of them reads and writes.
    pub traffic: u128,
    /// How often such ops run.
    pub count: u128,
    /// How often they would run if each loop ran its body once.
    pub once: u128,
    /// Whether it is a collective.
    pub is_collective: bool,
}

/// Ops that have no cost.
#[derive(Clone, Debug)]
pub struct Uncounted {
    /// The first such op.
    pub op: OpId,
    /// Its name, with the target for a custom call.
    pub name: String,
    /// Why it has none.
    pub reason: &'static str,
    /// How often such ops run.
    pub count: u128,
}

/// What a program costs one device.
#[derive(Clone, Debug, Default)]
pub struct ProgramCost {
    /// Work and traffic, in order of first appearance.
    pub ops: Vec<OpRow>,
    /// The collectives, in program order.
    pub collectives: Vec<Collective>,
    /// Ops that are not counted, in order of first appearance.
    pub uncounted: Vec<Uncounted>,
    /// The loops, in program order.
    pub loops: Vec<Loop>,
    /// Memory.
    pub memory: Memory,
}

type RowKey<'a> = (StrId, &'a str, StrId, Work, u128);

/// What `program`, which has explicit collectives, costs one device. Ops and values are its own, or, where
/// calls were inlined, those that were cloned.
pub fn program_cost(program: &mut Program, rules: &mut dyn RuleSource) -> Result<ProgramCost> {
    rules.prepare(program, false)?;
    let halos = halo_exchanges(program, rules);
    Ok(original_cost(&Inlined::new(program), &|op| halos.contains(&op)))
}

/// The cost of `inlined` in terms of the program that it was made from.
fn original_cost(inlined: &Inlined<'_>, exchanges_halos: &dyn Fn(OpId) -> bool) -> ProgramCost {
    let exchanges_halos = |op| exchanges_halos(inlined.original_op(op));
    let mut cost = inlined_cost(&inlined.program, &exchanges_halos);
    for row in &mut cost.ops {
        row.op = inlined.original_op(row.op);
    }
    for row in &mut cost.uncounted {
        row.op = inlined.original_op(row.op);
    }
    for row in &mut cost.loops {
        row.op = inlined.original_op(row.op);
    }
    for row in &mut cost.collectives {
        row.op = inlined.original_op(row.op);
        row.operand = inlined.original_value(row.operand);
        row.result = inlined.original_value(row.result);
        row.cause = row.cause.map(|op| inlined.original_op(op));
    }
    let memory = &mut cost.memory;
    memory.peak_op = memory.peak_op.map(|op| inlined.original_op(op));
    for live in &mut memory.live {
        live.value = inlined.original_value(live.value);
    }
    cost
}

/// The same for a program whose calls are inlined.
fn inlined_cost(program: &Program, exchanges_halos: &dyn Fn(OpId) -> bool) -> ProgramCost {
    let mut cost = ProgramCost::default();
    let Some(entry) = program.entry_function() else { return cost };
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let mut functions: Vec<OpId> =
        execution.functions.iter().map(|&func| program.func_op(func)).collect();
    let mut fusion = Fusion::new(program, &mut works, &functions);
    let mut rows: FxHashMap<RowKey<'_>, usize> = FxHashMap::default();
    let mut unknown: FxHashMap<(StrId, String, &'static str), usize> = FxHashMap::default();
    let depth_first = Schedule::depth_first(program, &mut works.tensors, &functions);
    // Callers first: the entry function is the first that a reader expects.
    functions.reverse();
    for func in functions {
        for op in program.pre_order(func).skip(1) {
            let times = execution.times(program.parent_block(op));
            if execution.times_once(program.parent_block(op)) == 0
                || program.has_traits(op, OpTraits::TERMINATOR)
            {
                continue;
            }
            let outcome = works.of(op);
            let mut work = Work::default();
            let mut is_collective = false;
            match outcome {
                Outcome::Counted(counted) => work = counted,
                Outcome::Collective(sums) => {
                    (work, is_collective) = (sums, true);
                    cost.collectives.push(collective(program, &mut works, &execution, op));
                }
                Outcome::Inside => {
                    if !is_missing_callee(program, &execution, op) {
                        continue;
                    }
                    let name = program.op_name(op).to_owned();
                    cost.note_unknown(
                        &mut unknown,
                        (op, program.op_name_id(op)),
                        name,
                        "what it calls is not there",
                        times,
                    );
                    continue;
                }
                Outcome::Unknown(reason) => {
                    let target =
                        works.target(op).filter(|_| program.kind(op) == OpKind::CustomCall);
                    let name = match target {
                        Some(target) => format!("{} @{target}", program.op_name(op)),
                        None => program.op_name(op).to_owned(),
                    };
                    cost.note_unknown(
                        &mut unknown,
                        (op, program.op_name_id(op)),
                        name,
                        reason,
                        times,
                    );
                }
            }
            if exchanges_halos(op) {
                let name = program.op_name(op).to_owned();
                cost.note_unknown(
                    &mut unknown,
                    (op, program.op_name_id(op)),
                    name,
                    "what it exchanges with neighbours along a sharded dim",
                    times,
                );
            }
            let traffic = fusion.traffic(program, &mut works, op);
            if works.movement(op) == Movement::Alias || (work == Work::default() && traffic == 0) {
                continue;
            }
            let element = element(program, &mut works, op);
            let place = program.text().get(program.loc(op));
            let key = (program.op_name_id(op), place, element, work, traffic);
            let index = *rows.entry(key).or_insert_with(|| {
                let row = OpRow { op, element, work, traffic, count: 0, once: 0, is_collective };
                cost.ops.push(row);
                cost.ops.len() - 1
            });
            let row = &mut cost.ops[index];
            row.count = row.count.saturating_add(times);
            row.once = row.once.saturating_add(execution.times_once(program.parent_block(op)));
        }
    }
    let mut memory = |schedule| {
        Liveness::new(program, &mut works, &mut fusion, &execution, &schedule).memory(entry)
    };
    let in_order = memory(Schedule::of_the_program());
    let depth_first = memory(depth_first);
    let is_better = depth_first.peak_bytes < in_order.peak_bytes;
    cost.memory = if is_better { depth_first } else { in_order };
    cost.loops = execution.loops;
    cost
}

impl ProgramCost {
    fn note_unknown(
        &mut self,
        seen: &mut FxHashMap<(StrId, String, &'static str), usize>,
        (op, id): (OpId, StrId),
        name: String,
        reason: &'static str,
        times: u128,
    ) {
        let index = *seen.entry((id, name.clone(), reason)).or_insert_with(|| {
            self.uncounted.push(Uncounted { op, name, reason, count: 0 });
            self.uncounted.len() - 1
        });
        let count = &mut self.uncounted[index].count;
        *count = count.saturating_add(times);
    }
}

/// Whether `op` calls a function that has no body here.
fn is_missing_callee(program: &Program, execution: &Execution, op: OpId) -> bool {
    matches!(program.kind(op), OpKind::Call | OpKind::Composite)
        && execution.callee(program, op).is_none()
}

/// The element type that `op` computes in.
fn element(program: &Program, works: &mut Works<'_>, op: OpId) -> StrId {
    let operand = program.op_operands(op).first().map(|slot| slot.value);
    let value = operand.or_else(|| program.op_results(op).next());
    value.map_or(StrId::NONE, |value| works.tensors.of(value).element)
}
