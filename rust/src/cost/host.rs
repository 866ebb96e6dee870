//! The host of a device: the copies to and from its memory, and the ops that it computes.

use super::memory::Memory;
use super::steps::RowsOfOp;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::layout_assignment::product_orders::keep_product_orders;
use crate::error::Span;
use crate::index::{Id, OpId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::Program;
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Work;
use crate::work::spaces::{Move, Space, Spaces};

/// The work of a device's host for a program.
#[derive(Clone, Debug, Default)]
pub struct Hosted {
    /// Arguments and results in host memory.
    pub memory: Memory,
    /// Copies to and from host memory, in program order.
    pub copies: Vec<HostCopy>,
    /// The work of the ops that the host computes, over all runs.
    pub work: Work,
}

/// A copy between the memory of a device and that of its host.
#[derive(Clone, Copy, Debug)]
pub struct HostCopy {
    /// The op that copies, or that needs the copy.
    pub op: OpId,
    /// Its location, as that of an [`super::OpRow`].
    pub loc: Span,
    /// The value, where it is copied to, and the op in the program with calls inlined.
    pub moved: Move,
    /// Bytes of one run.
    pub bytes: u128,
    /// Number of runs.
    pub count: u128,
    /// The index of the op among those with copies; its copies run at the same time.
    pub group: u32,
}

/// `program` with its calls inlined, without placements of values that are already there, and with dims in the order that `compiler`
/// keeps.
pub fn inlined(program: &Program, compiler: Compiler) -> Inlined<'_> {
    let mut inlined = Inlined::new(program);
    let idle = Spaces::new(&inlined.program).idle;
    if !idle.is_empty() {
        let program = inlined.program.to_mut();
        for op in idle {
            program.replace_all_uses(program.result(op, 0), program.operand(op, 0));
            program.erase_op(op);
        }
    }
    keep_product_orders(&mut inlined, compiler);
    inlined
}

/// The copies of the program of `works`, in which calls are inlined; records in `rows` the copies of each op.
pub(super) fn copies(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    rows: &mut [RowsOfOp],
) -> Vec<HostCopy> {
    let mut found: Vec<HostCopy> = Vec::new();
    for at in 0..works.spaces.moves.len() {
        let moved = works.spaces.moves[at];
        let count = execution.times(program.parent_block(moved.op));
        let bytes = works.tensors.bytes(moved.value);
        if count == 0 || bytes == 0 {
            continue;
        }
        let group = match found.last() {
            Some(last) if last.moved.op == moved.op => last.group,
            Some(last) => last.group + 1,
            None => 0,
        };
        rows[moved.op.index()].copies = Some(group);
        let loc = program.loc(moved.op);
        found.push(HostCopy { op: moved.op, loc, moved, bytes, count, group });
    }
    found
}

impl Hosted {
    /// The seconds of all copies of each group, and the memory space that the first one goes to, given the seconds of one run of
    /// each copy.
    pub fn groups(&self, seconds: &[f64]) -> Vec<(f64, Space)> {
        let mut groups: Vec<(f64, Space)> = Vec::new();
        for (copy, seconds) in self.copies.iter().zip(seconds) {
            match groups.get_mut(copy.group as usize) {
                Some(group) => group.0 += seconds,
                None => groups.push((*seconds, copy.moved.to)),
            }
        }
        groups
    }
}
