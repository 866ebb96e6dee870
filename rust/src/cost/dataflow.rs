//! The dependences among the ops of a program, from which [`super::timeline`] makes a schedule.
//!
//! Every op of an executed block is a task. A task depends on the tasks that define its operands, and, if it has regions, those
//! that define the values that its regions capture. Linear in the operands of the program, times the nesting depth for captured
//! values.

use super::steps::RowsOfOp;
use crate::index::{BlockId, Id, OpId};
use crate::ir::{Program, ValueDef};
use crate::work::cached::Works;
use crate::work::execution::Execution;

/// One op.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Its row of `ProgramCost::ops`; `None` if it does no work.
    pub row: Option<u32>,
    /// Its row of `ProgramCost::collectives`; `None` if it is no collective.
    pub collective: Option<u32>,
    /// The group of its copies to and from the host; `None` if it has none.
    pub copies: Option<u32>,
    /// The number of its dependences, a repeated one counted twice.
    pub num_needs: u32,
    /// The range in [`Dataflow::bodies`] of the bodies that it runs, as start and length.
    bodies: (u32, u32),
}

/// The ops of one block.
#[derive(Clone, Copy, Debug)]
pub struct TaskBlock {
    /// The first task, and the one after the last.
    pub tasks: (u32, u32),
    /// Number of runs of the block.
    pub times: f64,
}

/// The dependences among the ops of a program.
#[derive(Clone, Debug, Default)]
pub struct Dataflow {
    /// The ops of executed blocks, block by block, each in program order.
    pub tasks: Vec<Task>,
    /// The blocks, each before the blocks inside it and those of its callees.
    pub blocks: Vec<TaskBlock>,
    /// For each body that a task runs, the block and its number of runs each time.
    bodies: Vec<(u32, f64)>,
    /// The users of each task, all lists concatenated.
    users: Vec<u32>,
    /// For each task where its list begins in `users`; then the end of the last one.
    starts: Vec<u32>,
}

/// No task or block.
const NONE: u32 = u32::MAX;

impl Dataflow {
    /// The dependences of the ops of `functions`, callers before callees, given by their ops.
    pub fn new(
        program: &Program,
        execution: &Execution,
        works: &mut Works<'_>,
        functions: &[OpId],
        rows: &[RowsOfOp],
    ) -> Self {
        let inside: Vec<_> = functions.iter().map(|&func| works.ops_inside(func)).collect();
        let mut builder = Builder {
            program,
            task_of: vec![NONE; program.num_op_ids()],
            block_of: vec![NONE; program.num_block_ids()],
            edges: Vec::with_capacity(2 * program.num_value_ids()),
            flow: Self::default(),
        };
        builder.flow.tasks.reserve(inside.iter().map(|ops| ops.len()).sum());
        for &func in functions {
            builder.add_blocks(execution, (func, &works.with_regions(func)), rows);
        }
        // How many users each task has, until all are known.
        builder.flow.starts = vec![0; builder.flow.tasks.len() + 1];
        for &op in inside.iter().flat_map(|ops| ops.iter()) {
            builder.connect(execution, op);
        }
        builder.finish()
    }
    /// The tasks that depend on `task`.
    #[inline]
    pub fn users(&self, task: u32) -> &[u32] {
        let at = task as usize;
        &self.users[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
    /// The blocks that `task` runs, with the number of runs of each.
    #[inline]
    pub fn bodies(&self, task: &Task) -> &[(u32, f64)] {
        &self.bodies[task.bodies.0 as usize..][..task.bodies.1 as usize]
    }
}

struct Builder<'a> {
    program: &'a Program,
    task_of: Vec<u32>,
    block_of: Vec<u32>,
    /// Pairs of a task and one that depends on it.
    edges: Vec<(u32, u32)>,
    flow: Dataflow,
}

impl Builder<'_> {
    /// Adds the blocks of a function that run, given its op and the ops with regions inside.
    fn add_blocks(
        &mut self,
        execution: &Execution,
        (func, with_regions): (OpId, &[OpId]),
        rows: &[RowsOfOp],
    ) {
        let program = self.program;
        let ops = std::iter::once(func).chain(with_regions.iter().copied());
        let regions = ops.flat_map(|op| program.op_regions(op));
        for block in regions.flat_map(|region| program.region_blocks(region)) {
            if execution.times_once(block) == 0 {
                continue;
            }
            let first = self.flow.tasks.len() as u32;
            for op in program.block_ops(block) {
                self.task_of[op.index()] = self.flow.tasks.len() as u32;
                let RowsOfOp { row, collective, copies } = rows[op.index()];
                self.flow.tasks.push(Task { row, collective, copies, ..Task::default() });
            }
            self.block_of[block.index()] = self.flow.blocks.len() as u32;
            let tasks = (first, self.flow.tasks.len() as u32);
            self.flow.blocks.push(TaskBlock { tasks, times: execution.times(block) as f64 });
        }
    }
    /// Adds the dependences of `op`, and the bodies that it runs.
    fn connect(&mut self, execution: &Execution, op: OpId) {
        let (program, task) = (self.program, self.task_of[op.index()]);
        if task == NONE {
            return;
        }
        let own = program.parent_block(op);
        for operand in program.operands(op) {
            let ValueDef::Result(def) = program.def(operand) else { continue };
            let (made, home) = (self.task_of[def.index()], program.parent_block(def));
            if made == NONE {
                continue;
            }
            let user = if home == own { Some(task) } else { self.ancestor(op, home) };
            if let Some(user) = user {
                self.edges.push((made, user));
                self.flow.starts[made as usize] += 1;
                self.flow.tasks[user as usize].num_needs += 1;
            }
        }
        if program.num_regions(op) == 0 && !execution.has_calls() {
            return;
        }
        let first = self.flow.bodies.len();
        for block in program.op_regions(op).flat_map(|region| program.region_blocks(region)) {
            let inner = self.block_of[block.index()];
            if inner != NONE {
                let outside = execution.times(own) as f64;
                self.flow.bodies.push((inner, execution.times(block) as f64 / outside));
            }
        }
        if let Some(callee) = execution.callee(program, op) {
            let body = program.func_body(callee).get();
            let inner = body.map_or(NONE, |body| self.block_of[body.index()]);
            if inner != NONE {
                self.flow.bodies.push((inner, 1.0));
            }
        }
        let bodies = (first as u32, (self.flow.bodies.len() - first) as u32);
        self.flow.tasks[task as usize].bodies = bodies;
    }
    /// The task of `op`, or of the op in `block` that encloses it.
    fn ancestor(&self, op: OpId, block: BlockId) -> Option<u32> {
        let op = self.program.ancestor_in(op, block)?;
        Some(self.task_of[op.index()]).filter(|&task| task != NONE)
    }
    fn finish(self) -> Dataflow {
        let Self { edges, mut flow, .. } = self;
        // From the number of users to where they end, and, as they are put from the last one on, to where they begin.
        let mut end = 0;
        for start in &mut flow.starts {
            end += *start;
            *start = end;
        }
        flow.users = vec![0; edges.len()];
        for (made, user) in edges.into_iter().rev() {
            let place = &mut flow.starts[made as usize];
            *place -= 1;
            flow.users[*place as usize] = user;
        }
        flow
    }
}
