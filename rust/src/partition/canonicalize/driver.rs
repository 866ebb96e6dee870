//! The greedy pattern rewrite driver: the worklist, and those of MLIR's rewrites that are
//! independent of patterns.

use super::commute::{has_commutative_ops, move_constants_back};
use super::constants::Constants;
use super::dead::has_no_effect;
use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program};
use rustc_hash::FxHashSet;

/// Constants that are folded, besides ops of kind `OpKind::Constant`.
const CONSTANTS: [&str; 3] = ["chlo.constant", "func.constant", "arith.constant"];

/// A set of patterns.
pub trait Patterns {
    /// The kinds of ops that the patterns match; `None` if they may match others.
    fn kinds(&self) -> Option<Vec<OpKind>> {
        None
    }
    /// Tries the patterns on `op`; returns whether one matched.
    fn apply(&mut self, driver: &mut Driver<'_>, op: OpId) -> bool;
}

/// Configuration of the driver.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether ops are visited from first to last, instead of from last to first.
    pub top_down: bool,
    /// The most iterations.
    pub max_iterations: Option<usize>,
    /// The most pattern matches in an iteration.
    pub max_rewrites: Option<usize>,
    /// Whether dead ops are searched again after an iteration.
    pub erases_dead: bool,
}

impl Config {
    /// MLIR's default limit of iterations, which is not reached in practice.
    pub const MAX_ITERATIONS: usize = 10;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            top_down: false,
            max_iterations: Some(Self::MAX_ITERATIONS),
            max_rewrites: None,
            erases_dead: true,
        }
    }
}

/// Applies `patterns` to the ops inside `root` until nothing changes. Returns false if a limit was
/// reached before.
pub fn apply_greedily(
    program: &mut Program,
    context: &mut Context<'_>,
    root: OpId,
    patterns: &mut dyn Patterns,
    config: Config,
) -> Result<bool> {
    let only_erases = root == program.module_op()
        && config.max_rewrites.is_none()
        && config.max_iterations != Some(0)
        && patterns.kinds().is_some_and(|kinds| !may_change(program, &kinds));
    if only_erases {
        context.progress("canonicalize", 0, 1)?;
        Driver::new(program, root).erase_dead_ops();
        return Ok(true);
    }
    for iteration in 0.. {
        if config.max_iterations.is_some_and(|max| iteration >= max) {
            return Ok(false);
        }
        context.progress("canonicalize", iteration, iteration + 1)?;
        if !Driver::new(program, root).run_once(patterns, config) {
            break;
        }
        if config.erases_dead {
            erase_dead(program, root);
        }
    }
    Ok(true)
}

/// Whether some op may match a pattern for `kinds`, be hoisted, or have its operands moved. If not,
/// only dead ops are erased, in any order.
fn may_change(program: &Program, kinds: &[OpKind]) -> bool {
    program.has_any(kinds)
        || program.has_any(&[OpKind::Constant])
        || has_commutative_ops(program)
        || CONSTANTS.iter().any(|name| program.strings().find(name).is_some())
}

/// Erases dead ops inside `root`, users before the ops they use.
fn erase_dead(program: &mut Program, root: OpId) {
    let mut ops: Vec<OpId> = program.pre_order(root).skip(1).collect();
    while let Some(op) = ops.pop() {
        let is_used = program.op_results(op).any(|value| program.has_uses(value));
        if !is_used && has_no_effect(program, op) {
            program.erase_op(op);
        }
    }
}

/// The op is not in the worklist.
const ABSENT: u32 = u32::MAX;

/// The worklist, with the program that is rewritten.
pub struct Driver<'a> {
    /// The program.
    pub program: &'a mut Program,
    /// The op whose regions are rewritten.
    root: OpId,
    constants: Constants,
    worklist: Vec<OpId>,
    /// For each op its index in the worklist.
    place: Vec<u32>,
    /// For each op its position in the program at the start of the iteration; a new op has the
    /// position of the op for which it was made.
    order: Vec<u32>,
    changed: bool,
}

impl<'a> Driver<'a> {
    fn new(program: &'a mut Program, root: OpId) -> Self {
        Self {
            program,
            root,
            constants: Constants::default(),
            worklist: Vec::new(),
            place: Vec::new(),
            order: Vec::new(),
            changed: false,
        }
    }
    /// Erases all dead ops.
    fn erase_dead_ops(mut self) {
        let program = &*self.program;
        let dead: Vec<OpId> = program
            .unused_ops()
            .filter(|&op| program.is_linked(op) && has_no_effect(program, op))
            .collect();
        for op in dead {
            self.push(op);
        }
        while let Some(op) = self.worklist.pop() {
            if op.is_some() {
                self.place[op.index()] = ABSENT;
                if self.is_unused(op) && has_no_effect(self.program, op) {
                    self.erase(op);
                }
            }
        }
    }
    /// Visits every op, and the ops that changes push; returns whether anything changed.
    fn run_once(mut self, patterns: &mut dyn Patterns, config: Config) -> bool {
        let root = self.root;
        self.place.resize(self.program.num_op_ids(), ABSENT);
        self.order.resize(self.program.num_op_ids(), 0);
        let ops: Vec<OpId> = if config.top_down {
            self.program.pre_order(root).collect()
        } else {
            self.program.post_order(root).collect()
        };
        for (at, &op) in ops.iter().enumerate() {
            self.order[op.index()] = at as u32;
        }
        for op in ops {
            if op == root {
                continue;
            }
            let is_constant = Constants::is_constant(self.program, op);
            if !is_constant || self.constants.insert(self.program, op) {
                self.push(op);
            }
        }
        if config.top_down {
            self.worklist.reverse();
            for (at, op) in self.worklist.iter().enumerate() {
                self.place[op.index()] = at as u32;
            }
        }
        let mut num_rewrites = 0;
        while config.max_rewrites.is_none_or(|max| num_rewrites < max) {
            let Some(op) = self.worklist.pop() else { break };
            if op.is_some() {
                self.place[op.index()] = ABSENT;
                num_rewrites += usize::from(self.visit(op, patterns));
            }
        }
        self.changed
    }
    /// Visits `op`; returns whether a pattern matched.
    fn visit(&mut self, op: OpId, patterns: &mut dyn Patterns) -> bool {
        if self.is_unused(op) && has_no_effect(self.program, op) {
            self.erase(op);
            self.changed = true;
            return false;
        }
        if self.constants.rehoist(self.program, op) {
            return false;
        }
        self.changed |= move_constants_back(self.program, op);
        let has_matched = patterns.apply(self, op);
        self.changed |= has_matched;
        has_matched
    }
    fn is_unused(&self, op: OpId) -> bool {
        self.program.op_results(op).all(|result| self.program.newest_use(result).is_none())
    }
    /// Pushes `op` and the ops around it, unless they are on the worklist.
    pub fn push(&mut self, op: OpId) {
        let mut next = Some(op);
        while let Some(op) = next.filter(|&op| op != self.root) {
            if self.place.len() <= op.index() {
                self.place.resize(self.program.num_op_ids(), ABSENT);
            }
            if self.place[op.index()] == ABSENT {
                self.place[op.index()] = self.worklist.len() as u32;
                self.worklist.push(op);
            }
            next = self.program.parent_op(op);
        }
    }
    /// Removes `op` from the worklist, and from the constants.
    pub(super) fn forget(&mut self, op: OpId) {
        if let Some(place) = self.place.get_mut(op.index()).filter(|place| **place != ABSENT) {
            self.worklist[*place as usize] = OpId::NONE;
            *place = ABSENT;
        }
        self.constants.forget(self.program, op);
    }
    /// Pushes the ops that define operands of `op`, if at most one other op uses the operand: after
    /// `op` is erased, they may be dead or match a pattern.
    fn push_operands(&mut self, op: OpId) {
        let mut seen = FxHashSet::default();
        for index in 0..self.program.num_operands(op) {
            let operand = self.program.operand(op, index);
            if !seen.insert(operand) {
                continue;
            }
            let Some(def) = self.program.defining_op(operand) else { continue };
            let users = self.program.users(operand);
            let mut other = None;
            let has_two_others = users
                .filter(|&user| user != op)
                .any(|user| other.replace(user).is_some_and(|seen| seen != user));
            if !has_two_others {
                self.push(def);
            }
        }
    }
    /// Erases `op`, whose results have no uses, with all ops inside it: inner ops first, and each
    /// block from its end, so that an op has no users when it is erased.
    pub fn erase(&mut self, op: OpId) {
        for inner in self.outward(op) {
            self.push_operands(inner);
            self.forget(inner);
            self.program.erase_op(inner);
        }
    }
    /// `root` and all ops inside it, in the order in which they are erased.
    fn outward(&self, root: OpId) -> Vec<OpId> {
        let program = &*self.program;
        let mut ops = Vec::new();
        let mut stack = vec![root];
        while let Some(op) = stack.pop() {
            ops.push(op);
            for region in program.op_regions(op) {
                let start = stack.len();
                for block in program.region_blocks(region) {
                    stack.extend(program.block_ops(block));
                }
                stack[start..].reverse();
            }
        }
        ops.reverse();
        ops
    }
    /// Replaces the results of `op` by `values` and erases `op`.
    pub fn replace(&mut self, op: OpId, values: &[ValueId]) {
        for (result, &value) in self.program.op_results(op).zip(values) {
            let users: Vec<OpId> = self.program.users(result).collect();
            self.program.replace_all_uses(result, value);
            for user in users {
                self.push(user);
            }
        }
        self.erase(op);
    }
    /// Builds an op for the rewrite of `root`, at `at`.
    pub fn build(&mut self, new: NewOp<'_>, at: InsertPoint, root: OpId) -> OpId {
        let op = self.program.build(new, at);
        self.note_inserted(op, root);
        op
    }
    /// Inserts the new op `op`, made for the rewrite of `root`, at `place`.
    pub fn insert_at(&mut self, op: OpId, place: Place, root: OpId) {
        self.program.insert_op(op, place);
        self.note_inserted(op, root);
    }
    /// Records the new op `op`, made for the rewrite of `root`.
    pub fn note_inserted(&mut self, op: OpId, root: OpId) {
        let at = self.order[root.index()];
        self.order.resize(self.program.num_op_ids(), at);
        self.order[op.index()] = at;
        self.push(op);
    }
    /// Whether `first` is before `second` in their block.
    pub fn is_before(&self, first: OpId, second: OpId) -> bool {
        let (first_at, second_at) = (self.order[first.index()], self.order[second.index()]);
        if first_at != second_at || first == second {
            return first_at < second_at;
        }
        // Both were made for the same op.
        let mut next = self.program.next_op(first);
        while let Some(op) = next.get().filter(|&op| op != second) {
            next = self.program.next_op(op);
        }
        next == second
    }
}
