//! Producers with several large operands that XLA duplicates into all their consumers: those that can fuse into each of them on
//! every path.
//!
//! If a consumer also depends on the producer through an op that cannot fuse (as `x - mean(x)` does), it reads the materialized
//! value. So do slices and the like: they would duplicate the most code, which XLA bounds. Source: `CanFuseOnAllPaths` of XLA's
//! `InstructionFusion`.

use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::index::{Id, OpId};
use crate::ir::{Program, ValueDef};
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// The most ops between a producer and a consumer that are visited; beyond that they are assumed not to fuse.
const MAX_VISITED: usize = 64;

/// The positions of ops in their function, and the ops that a walk has visited.
pub struct Paths {
    places: Vec<u32>,
    stamps: Vec<u32>,
    num_walks: u32,
    stack: Vec<OpId>,
}

impl Paths {
    /// For the ops of `program`, without positions yet.
    pub fn new(program: &Program) -> Self {
        let count = program.num_op_ids();
        Self { places: vec![0; count], stamps: vec![0; count], num_walks: 0, stack: Vec::new() }
    }
    /// Sets the positions of the ops of a function, given in order.
    pub fn enter(&mut self, ops: &[OpId]) {
        for (&op, place) in ops.iter().zip(0..) {
            self.places[op.index()] = place;
        }
    }
    /// Whether `op` fuses into all of its users, on all paths.
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
    /// Whether `op` can fuse into every op on the paths from it to `user`, into which it fuses directly.
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

/// Whether consumers fuse `op` as a producer, whatever the number of its uses.
fn is_taken_in(facts: &Facts, op: OpId) -> bool {
    facts.has(op, Fact::PURE) && !facts.has(op, Fact::EXPENSIVE)
}
