//! One iteration of the greedy driver.

use super::constants::Constants;
use super::dead::has_no_effect;
use super::{patterns, Labels};
use crate::index::{Id, OpId, UseId, ValueId};
use crate::ir::{Place, Program, TraitCache};

/// Ops of `chlo` that MLIR knows as commutative.
const COMMUTATIVE: [&str; 8] = [
    "chlo.broadcast_add",
    "chlo.broadcast_and",
    "chlo.broadcast_maximum",
    "chlo.broadcast_minimum",
    "chlo.broadcast_multiply",
    "chlo.broadcast_or",
    "chlo.broadcast_xor",
    "chlo.mulhi",
];

/// Not in the worklist.
const ABSENT: u32 = u32::MAX;

/// The worklist, and the program it is about.
pub struct Driver<'a> {
    pub program: &'a mut Program,
    labels: Labels,
    traits: TraitCache,
    constants: Constants,
    worklist: Vec<OpId>,
    /// Where each op stands in the worklist.
    place: Vec<u32>,
    /// Where each op stood in the program when the iteration began; a new op stands where the op did
    /// that it was made for.
    order: Vec<u32>,
    changed: bool,
}

impl<'a> Driver<'a> {
    pub fn new(program: &'a mut Program, labels: Labels) -> Self {
        let num_ops = program.ops.len();
        Self {
            program,
            labels,
            traits: TraitCache::default(),
            constants: Constants::default(),
            worklist: Vec::with_capacity(num_ops),
            place: vec![ABSENT; num_ops],
            order: vec![0; num_ops],
            changed: false,
        }
    }
    /// Visits every op, and those that changes bring back; true if anything was changed.
    pub fn run_once(mut self, top_down: bool) -> bool {
        let root = self.program.module;
        let ops: Vec<OpId> = if top_down {
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
            let is_constant = Constants::is_constant(self.program, &mut self.traits, op);
            if !is_constant || self.constants.insert(self.program, &mut self.traits, op) {
                self.push(op);
            }
        }
        if top_down {
            self.worklist.reverse();
            for (at, op) in self.worklist.iter().enumerate() {
                self.place[op.index()] = at as u32;
            }
        }
        while let Some(op) = self.worklist.pop() {
            if op.is_some() {
                self.place[op.index()] = ABSENT;
                self.visit(op);
            }
        }
        self.changed
    }
    fn visit(&mut self, op: OpId) {
        if self.is_unused(op) && has_no_effect(self.program, &mut self.traits, op) {
            self.erase(op);
            self.changed = true;
            return;
        }
        if self.constants.rehoist(self.program, op) {
            return;
        }
        self.changed |= self.move_constants_back(op);
        self.changed |= patterns::apply(self, op, self.labels);
    }
    fn is_unused(&self, op: OpId) -> bool {
        self.program.op_results(op).all(|result| self.program.values[result].first_use.is_none())
    }
    /// Moves the constant operands of a commutative op behind the others; true if any moved.
    fn move_constants_back(&mut self, op: OpId) -> bool {
        let name = self.program.op_name(op);
        if !name.starts_with("chlo.") || !COMMUTATIVE.contains(&name) {
            return false;
        }
        let is_constant = |driver: &mut Self, value: ValueId| {
            let def = driver.program.defining_op(value);
            def.is_some_and(|def| Constants::is_constant(driver.program, &mut driver.traits, def))
        };
        let slots: Vec<UseId> = self.program.op_uses(op).collect();
        let old: Vec<ValueId> =
            slots.iter().map(|&slot| self.program.operands[slot].value).collect();
        let (constants, mut new): (Vec<ValueId>, Vec<ValueId>) =
            old.iter().partition(|&&value| is_constant(self, value));
        new.extend(constants);
        for ((slot, old), &new) in slots.into_iter().zip(&old).zip(&new) {
            if *old != new {
                self.program.set_operand(slot, new);
            }
        }
        old != new
    }

    /// Puts `op` on the worklist unless it is there, and the ops around it.
    pub fn push(&mut self, op: OpId) {
        let mut next = Some(op);
        while let Some(op) = next.filter(|&op| op != self.program.module) {
            if self.place.len() <= op.index() {
                self.place.resize(self.program.ops.len(), ABSENT);
            }
            if self.place[op.index()] == ABSENT {
                self.place[op.index()] = self.worklist.len() as u32;
                self.worklist.push(op);
            }
            next = self.program.parent_op(op);
        }
    }
    fn forget(&mut self, op: OpId) {
        if let Some(place) = self.place.get_mut(op.index()).filter(|place| **place != ABSENT) {
            self.worklist[*place as usize] = OpId::NONE;
            *place = ABSENT;
        }
        self.constants.forget(self.program, &mut self.traits, op);
    }
    /// Puts the ops that define operands of `op` on the worklist where at most one other op uses the
    /// operand: once `op` is gone they may be dead, or ready for a pattern.
    fn push_operands(&mut self, op: OpId) {
        for index in 0..self.program.ops[op].num_operands as usize {
            let operand = self.program.operand(op, index);
            let Some(def) = self.program.defining_op(operand) else { continue };
            let users = self.program.uses(operand).map(|slot| self.program.operands[slot].owner);
            let mut other = None;
            let has_two_others = users
                .filter(|&user| user != op)
                .any(|user| other.replace(user).is_some_and(|seen| seen != user));
            if !has_two_others {
                self.push(def);
            }
        }
    }
    /// Erases `op`, whose results have no uses, with everything inside it: what is inside first, each
    /// block from its end, so that an op has no users left when its turn comes.
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
    /// Replaces the only result of `op` by `value` and erases `op`.
    pub fn replace(&mut self, op: OpId, value: ValueId) {
        let result = self.program.result(op, 0);
        let users: Vec<OpId> =
            self.program.uses(result).map(|slot| self.program.operands[slot].owner).collect();
        self.program.replace_all_uses(result, value);
        for user in users {
            self.push(user);
        }
        self.erase(op);
    }
    /// Puts the new op `op` right before `root`, the op it is made for.
    pub fn insert(&mut self, op: OpId, root: OpId) {
        self.program.insert_op(op, Place::Before(root));
        let at = self.order[root.index()];
        self.order.resize(self.program.ops.len(), at);
        self.push(op);
    }
    /// Whether `first` stands before `second` in the program.
    pub fn is_before(&self, first: OpId, second: OpId) -> bool {
        self.order[first.index()] < self.order[second.index()]
    }
}
