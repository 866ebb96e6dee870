//! Normalizations of rows (as in softmax): a reduction of the last dim, and the elementwise op that combines its broadcast result
//! with the row. They become one kernel that keeps a row on the chip.
//!
//! Source: XLA's `SoftmaxRewriterTriton`.

use super::expression::Expression;
use super::hero::Hero;
use super::node::Kind;
use super::nodes::{Given, Nodes};
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashSet;

/// The most elements of a row in one kernel: padded to a power of two, it takes at most 0.4 of the registers of a block.
const MAX_ROW: i64 = 1 << 14;

impl Nodes<'_, '_, '_> {
    /// Makes one node of each normalization.
    pub fn rewrite_normalizations(&mut self, ops: impl Iterator<Item = OpId>) {
        for op in ops {
            if let Some((root, producer)) = self.diamond(op) {
                self.fuse_diamond(root, producer);
            }
        }
    }
    /// The node of `op` and that of the producer that it normalizes, if `op` is the root of a normalization diamond.
    fn diamond(&mut self, op: OpId) -> Option<(u32, u32)> {
        let program = self.given.program;
        let facts = self.given.storage.facts.of(op);
        if !facts.has(Fact::POINTWISE) || program.num_operands(op) != 2 {
            return None;
        }
        let root = self.known(program.op_results(op).next()?)?;
        let broadcast = self.trivial_edge(program.operand(op, 1), is_broadcast)?;
        let reduce = self.trivial_edge(program.operand(broadcast, 0), is_reduce)?;
        let is_used_once = |this: &Self, op: OpId| this.num_users(program.result(op, 0)) == 1;
        if !is_used_once(self, broadcast) || !is_used_once(self, reduce) {
            return None;
        }
        let mut value = program.operand(reduce, 0);
        let Given { works, layouts, .. } = &mut *self.given;
        let sizes = works.tensors.of(value).dims.as_deref()?;
        let last = sizes.len().checked_sub(1)?;
        if layouts.reduced(program, reduce)? != [last] || sizes[last] > MAX_ROW {
            return None;
        }
        let rank = works.tensors.of(program.result(broadcast, 0)).dims.as_deref()?.len();
        if layouts.broadcast(program, broadcast)?.contains(&rank.checked_sub(1)?) {
            return None;
        }
        while let Some(op) = self.trivially_fusible(value) {
            value = self.chosen_operand(op);
        }
        let (producer, first) = (self.known(value)?, program.operand(op, 0));
        (self.is_connected(value, first)
            && (self.first(value) == self.first(first) || self.num_users(first) == 1))
            .then_some((root, producer))
    }
    fn first(&self, value: ValueId) -> ValueId {
        self.given.storage.equal.first(value)
    }
    /// The node of `value`, if it has one.
    fn known(&self, value: ValueId) -> Option<u32> {
        self.known_node(self.first(value))
    }
    fn num_users(&self, value: ValueId) -> usize {
        self.known(value).map_or(0, |at| self.nodes[at as usize].users.len())
    }
    /// The first op for which `is_wanted` holds on the chain of trivially fusible ops that ends in `value`.
    fn trivial_edge(
        &mut self,
        mut value: ValueId,
        is_wanted: fn(&Program, OpId) -> bool,
    ) -> Option<OpId> {
        loop {
            let made = self.made_here(value)?;
            if is_wanted(self.given.program, made) && !self.is_name(made) {
                return Some(made);
            }
            value = self.trivially_fusible(value).map(|op| self.chosen_operand(op))?;
        }
    }
    fn is_name(&self, op: OpId) -> bool {
        self.given.storage.facts.has(op, Fact::NAME)
    }
    /// The op of the block that defines `value`.
    fn made_here(&self, value: ValueId) -> Option<OpId> {
        let value = self.first(value);
        let at = self.known(value)?;
        let is_op = matches!(self.nodes[at as usize].kind, Kind::Fusible | Kind::Bitcast);
        self.given.program.defining_op(value).filter(|_| is_op && self.is_here(value))
    }
    /// The op that defines `value`, if that has at most one user, and the op is a bitcast, or elementwise on one operand besides splats.
    fn trivially_fusible(&self, value: ValueId) -> Option<OpId> {
        let program = self.given.program;
        let op = self.made_here(value)?;
        if self.num_users(value) > 1 {
            return None;
        }
        let facts = self.given.storage.facts.of(op);
        let is_trivial = if facts.has(Fact::NAME) {
            true
        } else if !facts.has(Fact::POINTWISE) {
            false
        } else {
            match program.num_operands(op) {
                1 => true,
                2 => {
                    let [one, other] = [0, 1].map(|index| program.operand(op, index));
                    self.first(one) == self.first(other)
                        || self.is_splat(one) != self.is_splat(other)
                }
                _ => false,
            }
        };
        is_trivial.then_some(op)
    }
    /// Whether `value` is a broadcast of a scalar constant, or of an argument.
    fn is_splat(&self, value: ValueId) -> bool {
        let Some(at) = self.known(value) else { return true };
        let node = &self.nodes[at as usize];
        let Some(op) = self.made_here(value) else { return false };
        let program = self.given.program;
        if program.num_operands(op) == 0 {
            return self.given.storage.facts.has(op, Fact::CONSTANT);
        }
        is_broadcast(program, op)
            && node
                .expression
                .uses
                .iter()
                .all(|it| self.nodes[it.node as usize].kind == Kind::Outside)
    }
    fn chosen_operand(&self, op: OpId) -> ValueId {
        let program = self.given.program;
        let first = program.operand(op, 0);
        if program.num_operands(op) > 1 && self.is_splat(first) {
            return program.operand(op, 1);
        }
        first
    }
    /// Whether `value` is computed from `producer` by trivially fusible ops alone.
    fn is_connected(&self, producer: ValueId, mut value: ValueId) -> bool {
        loop {
            if self.first(producer) == self.first(value) {
                return true;
            }
            match self.trivially_fusible(value) {
                Some(op) => value = self.chosen_operand(op),
                None => return false,
            }
        }
    }
    /// Makes node `root` compute everything between `producer` and itself.
    fn fuse_diamond(&mut self, root: u32, producer: u32) {
        let (mut made, mut inside) = (Expression::new(0.0), Vec::new());
        (made.hero, made.size) = (Hero::Tiled, 0.0);
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if at == producer || self.nodes[at as usize].kind == Kind::Outside {
                made.read_in_place(at);
                continue;
            }
            inside.push(at);
            let expression = &self.nodes[at as usize].expression;
            made.flops += expression.flops;
            made.size += expression.size;
            made.has_reduction |= expression.has_reduction;
            open.extend(expression.uses.iter().map(|it| it.node));
        }
        let outer: Vec<u32> = made.uses.iter().map(|it| it.node).collect();
        // What only nodes inside use is gone; broadcasts may have other users.
        inside.sort_unstable();
        for &at in inside.iter().rev() {
            let uses: Vec<u32> =
                self.nodes[at as usize].expression.uses.iter().map(|it| it.node).collect();
            if at != root {
                let node = &mut self.nodes[at as usize];
                node.users.retain(|user| inside.binary_search(user).is_err());
                node.is_fused = true;
                node.is_gone = node.users.is_empty();
            }
            if at == root || self.nodes[at as usize].is_gone {
                for used in uses {
                    self.nodes[used as usize].users.remove(at);
                }
                self.nodes[at as usize].expression.uses.clear();
            }
        }
        for at in outer {
            self.nodes[at as usize].add_user(root);
        }
        self.nodes[root as usize].expression = made;
    }
}

fn is_broadcast(program: &Program, op: OpId) -> bool {
    program.op_name(op) == "stablehlo.broadcast_in_dim"
}

fn is_reduce(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::Reduce && program.num_results(op) == 1
}
