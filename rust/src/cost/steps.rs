//! The schedule of a per-device program as rows: its ops in the order in which they run, with the bytes that are live at
//! each.
//!
//! Ops of the entry function run in the order with the least memory; ops in regions, and in functions that are not inlined, follow
//! the op that encloses them or first calls them.

use crate::error::Span;
use crate::index::{BlockId, Id, OpId};
use crate::inlining::call_inliner::Originals;
use crate::ir::Program;
use crate::work::execution::Execution;
use rustc_hash::FxHashSet;

/// An op that takes time or sends data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The op.
    pub op: OpId,
    /// Its location, as that of an [`super::OpRow`].
    pub loc: Span,
    /// Its row of `ProgramCost::ops`; `None` if it does no work.
    pub row: Option<u32>,
    /// Its row of `ProgramCost::collectives`; `None` if it is no collective.
    pub collective: Option<u32>,
    /// Number of its runs.
    pub count: u128,
    /// The most bytes that are live, besides the arguments, from the step before to this one.
    pub live_bytes: u128,
}

/// The rows of an op in the tables of a cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowsOfOp {
    /// In `ProgramCost::ops`.
    pub row: Option<u32>,
    /// In `ProgramCost::collectives`.
    pub collective: Option<u32>,
    /// The group of its copies to and from the host.
    pub copies: Option<u32>,
}

/// The inputs from which the steps of a program are made.
pub struct Order<'a> {
    /// The program.
    pub program: &'a Program,
    /// How often its blocks run.
    pub execution: &'a Execution,
    /// The rows of each op.
    pub rows: &'a [RowsOfOp],
    /// The original of each op that was inlined.
    pub originals: &'a Originals,
}

impl Order<'_> {
    /// The steps; `live` has the ops of the entry function in order, with the bytes that are live at each.
    pub fn steps(&self, live: &[(OpId, u128)]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::with_capacity(live.len());
        let mut entered = FxHashSet::default();
        let mut bytes = 0;
        for &(op, now) in live {
            bytes = now.max(bytes);
            let first = steps.len();
            self.add(op, bytes, &mut steps, &mut entered);
            if steps.len() > first {
                bytes = 0;
            }
        }
        if let Some(last) = steps.last_mut() {
            last.live_bytes = last.live_bytes.max(bytes);
        }
        steps
    }
    /// Adds `op`, and the ops inside it.
    fn add(
        &self,
        op: OpId,
        live_bytes: u128,
        steps: &mut Vec<Step>,
        entered: &mut FxHashSet<BlockId>,
    ) {
        let mut open = vec![op];
        while let Some(op) = open.pop() {
            let (program, RowsOfOp { row, collective, .. }) = (self.program, self.rows[op.index()]);
            let count = self.execution.times(program.parent_block(op));
            if count > 0 && (row.is_some() || collective.is_some()) {
                let loc = program.loc(op);
                let op = self.originals.op(op);
                steps.push(Step { op, loc, row, collective, count, live_bytes });
            }
            let regions = program.op_regions(op).flat_map(|region| program.region_blocks(region));
            let callee = self.execution.callee(program, op).map(|callee| program.func_body(callee));
            for block in regions.chain(callee).filter(|&block| entered.insert(block)) {
                let inside: Vec<OpId> = program.block_ops(block).collect();
                open.extend(inside.into_iter().rev());
            }
        }
    }
}
