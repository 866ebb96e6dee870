//! The kernels of a per-device program, with their work.

use super::donation::donated_of_entry;
use super::host::inlined;
use super::local::Local;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::kernel_rows::kernel_rows;
use crate::error::Span;
use crate::index::{OpId, StrId};
use crate::work::cached::{Outcome, Works};
use crate::work::execution::Execution;
use crate::work::ops::estimate::Estimates;
use crate::work::ops::unit::Unit;
use crate::work::ops::{Measure, Work};

/// A kernel: ops that are started as one.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The op whose result it writes, then the ops that are fused into it, each with its location.
    pub ops: Vec<(OpId, Span)>,
    /// Whether it copies something for that op, and does not compute it.
    pub is_copy: bool,
    /// Whether it is a collective.
    pub is_collective: bool,
    /// The work of one run.
    pub work: Work,
    /// The element type that it computes in.
    pub element: StrId,
    /// What computes it.
    pub unit: Unit,
    /// Bytes that one run reads.
    pub read: u128,
    /// Bytes that one run writes.
    pub written: u128,
    /// The number of runs.
    pub runs: u128,
}

/// The kernels of the program of `local` as `compiler` has them.
pub fn local_kernels(local: Local<'_>, estimates: &Estimates, compiler: Compiler) -> Vec<Kernel> {
    let inlined = inlined(local.program);
    let program = &*inlined.program;
    let Some(entry) = program.entry_function() else { return Vec::new() };
    let mut works = Works::with_estimates(program, estimates);
    let execution = Execution::new(program, &mut works);
    let donated = donated_of_entry(program, &mut works, entry);
    let rows = kernel_rows(program, &mut works, &execution, entry, &donated, compiler);
    let mut kernels = Vec::with_capacity(rows.len());
    for row in rows {
        let computed: &[OpId] = if row.is_copy { &[] } else { &[row.op] };
        let work = computed.iter().chain(&row.fused);
        let work = work.fold(Work::default(), |sum, &op| sum.plus(work_of(&mut works, op)));
        let family = works.family(row.op);
        let is_collective = family.is_some_and(|it| matches!(it.measure, Measure::Collective));
        let ops = std::iter::once(row.op).chain(row.fused);
        kernels.push(Kernel {
            element: works.element_of(row.op),
            unit: if row.is_copy { Unit::default() } else { works.unit(row.op) },
            ops: ops.map(|op| (inlined.originals.op(op), program.loc(op))).collect(),
            is_copy: row.is_copy,
            is_collective: is_collective && !row.is_copy,
            work,
            read: row.read,
            written: row.written,
            runs: row.runs,
        });
    }
    kernels
}

/// The work of one run of `op`; none where it is not known.
fn work_of(works: &mut Works<'_>, op: OpId) -> Work {
    match works.of(op) {
        Outcome::Counted(work) | Outcome::Collective(work) => work,
        Outcome::Inside | Outcome::Unknown(_) => Work::default(),
    }
}
