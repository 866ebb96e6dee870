//! The cost of a per-device program: work, memory traffic, collectives, memory.
//!
//! Its values have local shapes. [`local`] finds what its source program says of it: names, shardings, meshes.
//!
//! 0. [`inline`](mod@crate::inlining::call_inliner): inlines calls ([`call_graph`](mod@crate::inlining::call_graph)).
//! 1. [`tensors`](mod@crate::work::tensors): bytes of each value.
//! 2. [`ops`](mod@crate::work::ops): flops of each op; [`cached`](mod@crate::work::cached) looks them up by signature and shapes.
//! 3. [`execution`](mod@crate::work::execution): the number of runs of each block, from calls, branches, and
//!    [`trips`](mod@crate::stablehlo::trips) of loops.
//! 4. [`fusion`](mod@crate::compilers::accelerator::fusion): which values are materialized, if kernels are not modelled.
//! 5. [`host`]: copies to and from host memory, and the work of the host.
//! 6. [`memory`]: live values and the peak, in the better of two orders ([`schedule`](mod@crate::compilers::accelerator::schedule)).
//! 7. [`collectives`]: bytes sent, along which axes ([`groups`]), and the op that required it.
//! 8. [`steps`]: the ops in the order in which they run.
//! 9. [`dataflow`]: the dependences among ops, from which [`timeline`] makes a schedule, given how long each takes.
//! 10. [`combine`]: the collectives that are combined, given a byte threshold.
//!
//! [`whole_ops`] finds the global op that a local op is a part of.
//!
//! [`kernels`] has the kernels of a compiler; if they are modelled, times and traffic are those of kernels.
//!
//! [`count`] walks over the program and sums all of these; [`traffic`] sums only the bytes of collectives.
//!
//! `python/shardcore/costs` computes how long an op or a collective takes on given hardware.
//!
//! All sums are 128 bits wide and saturate. All of it takes linear time in the program, except for values that
//! are captured by nested regions, which take time in proportion to the nesting depth.

mod buffers;
pub mod collectives;
pub mod combine;
mod count;
pub mod dataflow;
pub mod donation;
pub mod groups;
pub mod host;
pub mod kernels;
pub mod local;
pub mod memory;
mod priority_queue;
pub mod steps;
mod stream;
mod task_kinds;
pub mod timeline;
pub mod times;
pub mod traffic;
pub mod whole_ops;

#[cfg(test)]
mod tests;

use crate::compilers::accelerator::fusion::Fusion;
use crate::compilers::accelerator::schedule::Schedule;
use crate::compilers::compilation::{ChipFacts, Known, Target};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::buffer_assignment::lifetimes::{
    allocated, compiled_peak, lifetimes, Lifetimes,
};

use crate::compilers::xla_cpu::cost_analysis::{once, Once};
use crate::compilers::xla_cpu::passes::simplification::simplified;
use crate::error::Span;
use crate::index::{Id, OpId, StrId, ValueId};
use crate::inlining::call_inliner::Inlined;
use crate::work::cached::Works;
use crate::work::execution::{Execution, Loop};
use crate::work::ops::estimate::Estimates;
use crate::work::ops::unit::Unit;
use crate::work::ops::Work;
use crate::work::spaces::Space;
use collectives::Collective;
use count::Count;
use dataflow::Dataflow;
use donation::donated_of_entry;
use host::{inlined, Hosted};
use kernels::{Chip, KernelKind};
use local::Local;
use memory::{Liveness, Memory, Peak};
use steps::{RowsOfOp, Step};

/// The figures of ops that take equally long, for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkKind {
    /// The element type of the first operand, or of the result if there is no tensor operand.
    pub element: StrId,
    /// The unit that computes them.
    pub unit: Unit,
    /// Their own work.
    pub work: Work,
    /// Bytes that are read and written.
    pub traffic: u128,
    /// Whether they are collectives.
    pub is_collective: bool,
    /// The kernels that are attributed to them, as an index in [`ProgramCost::kernels`]; `None` if the compiler's kernels are not
    /// modelled.
    pub kernels: Option<u32>,
}

/// Ops with equal costs: same name, location, element type and figures.
#[derive(Clone, Debug)]
pub struct OpRow {
    /// The first such op.
    pub op: OpId,
    /// Its location; where that has no source line and its function was inlined, that of the call.
    pub loc: Span,
    /// The element type of its first operand, or of its result if it has no tensor operand.
    pub element: StrId,
    /// Work of one run of one of them.
    pub work: Work,
    /// The unit that computes it.
    pub unit: Unit,
    /// Bytes that one run of one of them reads and writes.
    pub traffic: u128,
    /// Number of runs of such ops.
    pub count: u128,
    /// Whether it is a collective.
    pub is_collective: bool,
    /// The index in [`ProgramCost::kinds`] of its kind.
    pub kind: u32,
}

/// Ops with work that no figure includes.
#[derive(Clone, Debug)]
pub struct Uncounted {
    /// The first such op.
    pub op: OpId,
    /// Its location, as that of an [`OpRow`].
    pub loc: Span,
    /// Its name, with the target for a custom call.
    pub name: String,
    /// The cost that is not included, and the reason.
    pub reason: &'static str,
    /// Number of runs of such ops.
    pub count: u128,
    /// Bytes of their operands and results on one device, over all runs.
    pub bytes: u128,
}

/// The cost of a program on one device.
#[derive(Clone, Debug, Default)]
pub struct ProgramCost {
    /// Work and traffic, in order of first appearance.
    pub ops: Vec<OpRow>,
    /// The kinds of these rows, in order of first appearance.
    pub kinds: Vec<WorkKind>,
    /// The distinct sets of kernels that are attributed to ops.
    pub kernels: Vec<Box<[KernelKind]>>,
    /// The collectives, in program order.
    pub collectives: Vec<Collective>,
    /// Ops that are not counted, in order of first appearance.
    pub uncounted: Vec<Uncounted>,
    /// For each op of the program, in which calls are inlined, its rows.
    pub rows_of: Vec<RowsOfOp>,
    /// The loops, in program order.
    pub loops: Vec<Loop>,
    /// Memory of arguments and results.
    pub memory: Memory,
    /// The work of the device's host.
    pub host: Hosted,
    /// How often the blocks of the program, in which calls are inlined, run; the peak of memory depends on it.
    pub execution: Execution,
    /// Pairs of the index of a result of the entry function and the donated argument whose buffer it takes.
    pub donated: Vec<(usize, ValueId)>,
    /// What its compiler does with the program, as far as it was found out.
    pub known: Known,
    /// The dependences among ops, for schedules.
    pub flow: Dataflow,
    /// The compiler, in whose form of the program, with calls inlined, ops and blocks are counted.
    pub compiler: Compiler,
    /// Whether figures are lower bounds, because a tensor has 2^96 bytes or more, or a count is 2^128 or more.
    pub is_saturated: bool,
}

/// The cost of the program of `local`, whose ops have signatures, on one device. Ops and values are those of that program, or, if
/// calls were inlined, the originals of the clones. `estimates` has the work of custom calls that a user registered. Times and
/// traffic are those of kernels if the compiler's are modelled.
pub fn local_cost(local: Local<'_>, estimates: &Estimates, chip: Chip) -> ProgramCost {
    inlined_cost(local, &inlined(local.program, chip.0), estimates, chip)
}

/// The counts of XLA:CPU's `HloCostAnalysis` for the program of `local`, given its cost. They are computed separately since they
/// take a third of the time of that, and are rarely needed.
pub fn local_once(local: Local<'_>, cost: &ProgramCost) -> Once {
    let inlined = inlined(local.program, cost.compiler);
    let program = &*inlined.program;
    let row_of = |op: OpId| cost.rows_of[op.index()].row;
    once(program, &mut Works::new(program), &cost.execution, cost.ops.len(), row_of)
}

/// The steps of the program of `local`, in the order in which they run, with the parameters of [`local_cost`]. They are computed
/// separately since they take half of the time of that, and are rarely needed.
pub fn local_steps(local: Local<'_>, estimates: &Estimates, chip: Chip) -> Vec<Step> {
    Count::steps(local, &inlined(local.program, chip.0), estimates, chip)
}

/// The peak of live bytes of the program of `local` in the better of two orders: that of the program, and depth first.
pub fn local_least_peak(local: Local<'_>, compiler: Compiler) -> u128 {
    let inlined = inlined(local.program, compiler);
    let program = &*inlined.program;
    let Some(entry) = program.entry_function() else { return 0 };
    // No estimate of work changes what is in memory.
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let functions = execution.functions.iter().map(|&func| program.func_op(func));
    let functions: Vec<OpId> = functions.collect();
    let mut fusion = Fusion::new(program, &mut works, &functions);
    let donated = donated_of_entry(program, &mut works, entry, compiler);
    let ports = Memory::of_ports(program, &mut works, entry, &[], (Space::Device, compiler));
    let depth_first = Schedule::depth_first(program, &mut works.tensors, &functions);
    let peaks = [depth_first, Schedule::of_the_program()].map(|schedule| {
        Liveness::new(program, &mut works, &mut fusion, &execution, &schedule).peak(entry, &donated)
    });
    ports.argument_bytes.saturating_add(peaks[0].min(peaks[1]))
}

fn inlined_cost(
    local: Local<'_>,
    inlined: &Inlined<'_>,
    estimates: &Estimates,
    chip: Chip,
) -> ProgramCost {
    let mut cost = Count::of(local, inlined, estimates, chip);
    let originals = &inlined.originals;
    for row in &mut cost.ops {
        row.op = originals.op(row.op);
    }
    for row in &mut cost.uncounted {
        row.op = originals.op(row.op);
    }
    for row in &mut cost.loops {
        row.op = originals.op(row.op);
    }
    for row in &mut cost.collectives {
        row.op = originals.op(row.op);
    }
    for row in &mut cost.host.copies {
        row.op = originals.op(row.op);
        row.moved.value = originals.value(row.moved.value);
    }
    cost
}

/// The peak memory of the program of `local` for a chip, in a memory space, given its [`local_cost`]. It is computed separately
/// since it takes longer than that, and is not always needed.
pub fn local_peak(local: Local<'_>, cost: &ProgramCost, chip: Chip, space: Space) -> Peak {
    inlined_peak(&inlined(local.program, cost.compiler), cost, chip, space)
}

fn inlined_peak(inlined: &Inlined<'_>, cost: &ProgramCost, chip: Chip, space: Space) -> Peak {
    let (program, originals) = (&*inlined.program, &inlined.originals);
    let Some(entry) = program.entry_function() else { return Peak::default() };
    // No estimate of work changes what is in memory.
    let mut works = Works::new(program);
    let (compiler, facts) = chip;
    let given = Target { compiler, facts, space: Some(space), known: &cost.known };
    let most = compiled_peak(program, &mut works, &cost.execution, entry, &cost.donated, given);
    let mut live = most.live;
    for live in &mut live {
        live.value = originals.value(live.value);
    }
    let loc = most.op.map_or(Span::EMPTY, |op| program.loc(op));
    let op = most.op.map(|op| originals.op(op));
    let memory = if space == Space::Device { &cost.memory } else { &cost.host.memory };
    let bytes = memory.argument_bytes.saturating_add(most.bytes).saturating_add(most.holes);
    Peak { bytes, holes: most.holes, op, loc, live, copies: most.copies }
}

/// The bytes that XLA:CPU allocates for the program of `local`.
pub fn local_host_bytes(local: Local<'_>) -> u128 {
    let program = &*simplified(inlined(local.program, Compiler::XlaCpu).program);
    let Some(entry) = program.entry_function() else { return 0 };
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let donated = donated_of_entry(program, &mut works, entry, Compiler::XlaCpu);
    let spaces = [Space::Device, Space::Host];
    let ports = spaces
        .map(|space| Memory::of_ports(program, &mut works, entry, &[], (space, Compiler::XlaCpu)));
    let arguments: u128 = ports.iter().map(|memory| memory.argument_bytes).sum();
    let known = &Known::default();
    let facts = ChipFacts::default();
    let target = Target { compiler: Compiler::XlaCpu, facts, space: None, known };
    arguments.saturating_add(allocated(program, &mut works, &execution, entry, &donated, target))
}

/// The live ranges of the buffers of one device in the program of `local`, as the compiler assigns them, given its [`local_cost`],
/// of which ops and values are.
pub fn local_lifetimes(local: Local<'_>, cost: &ProgramCost, (compiler, facts): Chip) -> Lifetimes {
    let inlined = inlined(local.program, cost.compiler);
    let program = &*inlined.program;
    let Some(entry) = program.entry_function() else { return Lifetimes::default() };
    // No estimate of work changes what is in memory.
    let mut works = Works::new(program);
    let target = Target { compiler, facts, space: Some(Space::Device), known: &cost.known };
    let mut found = lifetimes(program, &mut works, &cost.execution, entry, &cost.donated, target);
    for (op, _) in &mut found.moments {
        *op = inlined.originals.op(*op);
    }
    for row in &mut found.values {
        row.live.value = inlined.originals.value(row.live.value);
    }
    found
}
