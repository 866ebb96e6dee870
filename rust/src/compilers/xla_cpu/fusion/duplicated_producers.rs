//! Producers with several large operands that XLA duplicates into all their consumers: those that can fuse into each on every path.
//!
//! A user that also needs the result by way of something that it cannot take in, as a value less its mean does, reads what is
//! written. Ops whose results slices and the like read are written, too: XLA bounds the code that it repeats, and these repeat
//! the most. Source: `CanFuseOnAllPaths` of XLA's `InstructionFusion`.

use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::index::{Id, OpId};
use crate::ir::{Program, ValueDef};
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// The most ops between an op and its user that are looked at; of more, some are taken not to fuse.
const MAX_VISITED: usize = 64;

/// The places of ops in their function, and those that a walk has visited.
pub struct Paths {
    places: Vec<u32>,
    stamps: Vec<u32>,
    num_walks: u32,
    stack: Vec<OpId>,
}

impl Paths {
    /// For the ops of `program`, none of which has a place yet.
    pub fn new(program: &Program) -> Self {
        let count = program.num_op_ids();
        Self { places: vec![0; count], stamps: vec![0; count], num_walks: 0, stack: Vec::new() }
    }
    /// Says in which order the ops of a function are.
    pub fn enter(&mut self, ops: &[OpId]) {
        for (&op, place) in ops.iter().zip(0..) {
            self.places[op.index()] = place;
        }
    }
    /// Whether all users of the result of `op` fuse with it on all paths.
    pub fn all_fuse(
        &mut self,
        program: &Program,
        works: &Works<'_>,
        facts: &Facts,
        op: OpId,
    ) -> bool {
        let value = program.result(op, 0);
        let block = program.parent_block(op);
        program.users(value).all(|user| {
            program.parent_block(user) == block
                && works.movement(user) != Movement::Window
                && facts.has(user, Fact::FUSES)
                && self.is_clean(program, facts, (op, user))
        })
    }
    /// Whether every path from `op` to `user`, which fuses, is of ops that fuse.
    fn is_clean(&mut self, program: &Program, facts: &Facts, (op, user): (OpId, OpId)) -> bool {
        self.num_walks += 1;
        self.stack.clear();
        self.stack.push(user);
        // What `user` needs between the two; `op` comes before all that needs it.
        let mut visited: Vec<OpId> = Vec::new();
        let mut needs_op = false;
        while let Some(at) = self.stack.pop() {
            for value in program.operands(at) {
                let ValueDef::Result(made) = program.def(value) else { continue };
                if made == op {
                    needs_op |= at != user;
                } else if self.places[made.index()] > self.places[op.index()]
                    && std::mem::replace(&mut self.stamps[made.index()], self.num_walks)
                        != self.num_walks
                {
                    visited.push(made);
                    self.stack.push(made);
                }
            }
            if visited.len() > MAX_VISITED {
                return false;
            }
        }
        if !needs_op {
            return true;
        }
        // Few ops are on such paths: none of those that are may stay out of the user.
        visited.sort_unstable_by_key(|made| self.places[made.index()]);
        let is_on_path = |reached: &[OpId], at: OpId| {
            let mut needs = program.operands(at).filter_map(|value| program.defining_op(value));
            needs.any(|made| made == op || reached.contains(&made))
        };
        let mut reached: Vec<OpId> = Vec::new();
        for at in visited {
            if is_on_path(&reached, at) {
                if !is_taken_in(facts, at) {
                    return false;
                }
                reached.push(at);
            }
        }
        true
    }
}

/// Whether ops that fuse with their producers take in the result of `op`, however often that is used.
fn is_taken_in(facts: &Facts, op: OpId) -> bool {
    facts.has(op, Fact::PURE) && !facts.has(op, Fact::EXPENSIVE)
}
