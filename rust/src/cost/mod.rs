//! What a program costs one device: work, traffic, collectives, memory.
//!
//! The program is one with explicit collectives: every op computes on what its device holds. Its values have
//! global shapes, and shardings that say which part is local.
//!
//! 0. [`whole`]: ops that are not partitioned get their operands gathered; [`inline`]: calls become what they
//!    call, which [`calls`] knows.
//! 1. [`tensors`]: what a device holds of each value.
//! 2. [`work`]: flops of each op, by family; [`works`] looks them up by signature and local shapes.
//! 3. [`execution`]: how often each block runs: calls, [`trips`] of loops, branches.
//! 4. [`fusion`]: what is written to memory at all.
//! 5. [`memory`]: what is live, and the peak, in the better of two orders ([`schedule`]).
//! 6. [`collectives`]: what is moved, along which axes ([`groups`]) or from one mesh to another ([`meshes`]),
//!    and why.
//!
//! [`count`] walks over the program and adds all of this up.
//!
//! Time is not a matter of this module: `python/shardcore/costs` knows hardware.
//!
//! All sums are 128 bits wide and saturate. All of it is linear in the program, but for values that are
//! captured by nested regions, which cost their depth.

mod buffers;
pub mod calls;
pub mod collectives;
mod count;
pub mod donation;
pub mod execution;
pub mod fusion;
pub mod groups;
pub mod inline;
pub mod memory;
mod meshes;
pub mod schedule;
pub mod tensors;
pub mod trips;
mod whole;
pub mod work;
pub mod works;

#[cfg(test)]
mod tests;

use crate::context::RuleSource;
use crate::error::{Result, Span};
use crate::index::{OpId, StrId};
use crate::ir::Program;
use crate::partition::resolve_permutation_factors::halo_exchanges;
use collectives::Collective;
use count::Count;
use execution::Loop;
use inline::Inlined;
use memory::Memory;
use whole::gather_operands;
use work::Work;

/// Ops that cost the same: same name, place in the source, element type and figures.
#[derive(Clone, Debug)]
pub struct OpRow {
    /// The first such op.
    pub op: OpId,
    /// Its location; where that is no place and its function was inlined, that of the call.
    pub loc: Span,
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

/// Ops with work or communication that no figure includes.
#[derive(Clone, Debug)]
pub struct Uncounted {
    /// The first such op.
    pub op: OpId,
    /// Its location, as that of an [`OpRow`].
    pub loc: Span,
    /// Its name, with the target for a custom call.
    pub name: String,
    /// What is not included, and why.
    pub reason: &'static str,
    /// Whether it is communication that is not included, rather than work.
    pub is_communication: bool,
    /// How often such ops run.
    pub count: u128,
    /// Bytes that one device holds of their operands and results, over all runs.
    pub bytes: u128,
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
    /// Whether some figure is larger than what is counted: 2^96 bytes of a tensor, a count of 2^128. It is then
    /// at least what is said.
    pub is_saturated: bool,
}

/// What `program`, which has explicit collectives, costs one device. Ops and values are its own, or, where
/// calls were inlined, those that were cloned.
pub fn program_cost(program: &mut Program, rules: &mut dyn RuleSource) -> Result<ProgramCost> {
    rules.prepare(program, false)?;
    gather_operands(program, rules);
    let halos = halo_exchanges(program, rules);
    Ok(original_cost(&Inlined::new(program), &|op| halos.contains(&op)))
}

/// The cost of `inlined` in terms of the program that it was made from.
fn original_cost(inlined: &Inlined<'_>, exchanges_halos: &dyn Fn(OpId) -> bool) -> ProgramCost {
    let exchanges_halos = |op| exchanges_halos(inlined.original_op(op));
    let mut cost = Count::of(&inlined.program, &exchanges_halos);
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
