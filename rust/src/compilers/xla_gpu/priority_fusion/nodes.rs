//! The ops of a block as nodes of the fusion graph: the operands that each reads, and the nodes that use it.

use super::expression::{Expression, NONE};
use super::flops::flops_of_element;
use super::hero::{Hero, Reduction, SIGNIFICANT};
use super::node::{Kind, Node};
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::index::{BlockId, Id, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// The program and the analyses of it.
pub struct Given<'g, 'a> {
    pub program: &'g Program,
    pub works: &'g mut Works<'a>,
    pub layouts: &'g mut Layouts,
    pub storage: &'g Storage,
    /// The node that each value has in the last block where it had one.
    pub of_value: Vec<(BlockId, u32)>,
}

/// The nodes of a block.
pub struct Nodes<'g, 'n, 'a> {
    pub given: &'n mut Given<'g, 'a>,
    block: BlockId,
    pub nodes: Vec<Node>,
    /// For slices of merged dots the node of the dot.
    slices: FxHashMap<ValueId, u32>,
    /// The nodes of scalar constants that are broadcast.
    pub scalars: FxHashMap<ValueId, u32>,
    /// Whether values are read in part, of those for which that was asked.
    pub read_in_part: FxHashMap<ValueId, bool>,
}

impl<'g, 'n, 'a> Nodes<'g, 'n, 'a> {
    /// The nodes of `block`.
    pub fn of(given: &'n mut Given<'g, 'a>, block: BlockId) -> Self {
        let program = given.program;
        let (slices, scalars, read_in_part) = Default::default();
        let count = program.block_ops(block).count() + program.num_block_args(block);
        let nodes = Vec::with_capacity(count);
        let mut made = Self { given, block, nodes, slices, scalars, read_in_part };
        for op in program.block_ops(block) {
            made.add_op(op);
        }
        made.note_users();
        made
    }
    /// The node of the merged dot of which `value` is a slice, or a bitcast of one.
    fn sliced(&self, mut value: ValueId) -> Option<u32> {
        loop {
            if let Some(&whole) = self.slices.get(&value) {
                return Some(whole);
            }
            let op = self.given.program.defining_op(value)?;
            if !self.given.storage.facts.has(op, Fact::NAME) {
                return None;
            }
            value = self.given.storage.equal.first(self.given.program.operand(op, 0));
        }
    }
    /// Slices of merged dots that only the kernels of dots read are not written.
    pub fn drop_unused_slices(&mut self) {
        for at in 0..self.nodes.len() {
            let Node { value, is_last_step, .. } = self.nodes[at];
            if !is_last_step || value.is_none_or(|value| !self.slices.contains_key(&value)) {
                continue;
            }
            let mut users = std::mem::take(&mut self.nodes[at].users);
            users.retain(|&user| {
                let user = &self.nodes[user as usize];
                user.kind != Kind::Bitcast || !user.users.is_empty()
            });
            self.nodes[at].is_gone = users.is_empty();
            self.nodes[at].users = users;
        }
    }
    /// Records the users of each node.
    fn note_users(&mut self) {
        for at in 0..self.nodes.len() {
            for index in 0..self.nodes[at].expression.uses.len() {
                let used = self.nodes[at].expression.uses[index].node;
                self.nodes[used as usize].add_user(at as u32);
            }
        }
    }
    pub fn push(&mut self, kind: Kind, value: Option<ValueId>, expression: Expression) -> u32 {
        let mut node = Node::new(kind, value, expression);
        if let Some(value) = value {
            let tensor = self.given.works.tensors.of(value);
            let (bytes, elements) = (tensor.bytes as f64, (tensor.elements as f64).max(1.0));
            (node.bytes, node.written, node.element) = (bytes, bytes, bytes / elements);
            (node.launched, node.looped) = (elements, elements);
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
    /// The node of `value`, if it has one so far.
    pub fn known_node(&self, value: ValueId) -> Option<u32> {
        let (block, node) = self.given.of_value[value.index()];
        (block == self.block).then_some(node)
    }
    fn set_node(&mut self, value: ValueId, node: u32) {
        self.given.of_value[value.index()] = (self.block, node);
    }
    /// The node of `value`; [`NONE`] if it is a scalar constant.
    pub fn node(&mut self, value: ValueId) -> u32 {
        let value = self.given.storage.equal.first(value);
        if let Some(known) = self.known_node(value) {
            return known;
        }
        let program = self.given.program;
        let made_by = program.defining_op(value);
        if made_by.is_some_and(|op| self.given.storage.facts.has(op, Fact::CONSTANT))
            && self.given.works.tensors.of(value).elements <= 1
        {
            return NONE;
        }
        let made = self.push(Kind::Outside, Some(value), Expression::new(0.0));
        self.set_node(value, made);
        made
    }
    fn add_op(&mut self, op: OpId) {
        let program = self.given.program;
        let facts = self.given.storage.facts.of(op);
        if self.given.storage.equal.is_repeated(program, op) {
            return;
        }
        let is_single = facts.has(Fact::SINGLE);
        let value = is_single.then(|| program.result(op, 0));
        if let Some(value) = value {
            let is_idle = facts.has_any(Fact::PURE.or(Fact::POINTWISE)) || facts.has(Fact::SINGLE);
            if self.given.storage.uses(value) == 0 && is_idle && program.num_regions(op) == 0 {
                return;
            }
            if facts.has(Fact::CONSTANT) {
                // A constant of one element is part of each kernel; of others only those of equal elements are computed.
                if facts.has(Fact::OF_NOTHING) && self.given.works.tensors.of(value).elements > 1 {
                    let mut splat = Expression::new(0.0);
                    (splat.num_moving, splat.is_tileable) = (1, true);
                    let elements = self.given.works.tensors.of(value).elements as f64;
                    let scalar = self.scalar(value);
                    splat.read(scalar, elements, false);
                    let made = self.push(Kind::Fusible, Some(value), splat);
                    self.set_node(value, made);
                }
                return;
            }
        }
        let fusible = match value {
            Some(value) => self.expression(op, value, facts),
            None => self.reduction_of_several(op),
        };
        let (kind, expression) = match fusible {
            Some(expression) if facts.has(Fact::NAME) => (Kind::Bitcast, expression),
            Some(expression) => (Kind::Fusible, expression),
            None => (Kind::Apart, self.apart(op, facts)),
        };
        let last = match (value, kind) {
            (Some(value), Kind::Fusible) => self.first_step(op, value, &expression),
            (Some(value), Kind::Apart) => self.split_dot(op, value, &expression),
            _ => None,
        };
        let is_last = last.is_some();
        let kind = if is_last { Kind::Fusible } else { kind };
        let at = self.push(kind, value, last.unwrap_or(expression));
        let is_product = kind == Kind::Apart && facts.has(Fact::PRODUCT);
        self.nodes[at as usize].is_last_step = is_last;
        self.nodes[at as usize].product = is_product.then_some(op);
        if program.kind(op) == OpKind::Reduce && !is_last {
            let read = self.given.works.tensors.of(program.operand(op, 0)).elements as f64;
            self.nodes[at as usize].looped = read;
        }
        match value {
            Some(value) => {
                self.set_node(value, at);
            }
            None => {
                for value in program.op_results(op) {
                    let mut made = Expression::new(0.0);
                    made.read_in_place(at);
                    let result = self.push(Kind::Outside, Some(value), made);
                    self.set_node(value, result);
                }
            }
        }
        if kind == Kind::Fusible {
            self.note_update(op, at);
        }
        if program.kind(op) == OpKind::Sort {
            self.take_in_places(op);
        }
    }
    /// Adds the first step of `op`, if it is a reduction in two steps with this `expression`; returns the expression of the last one.
    fn first_step(
        &mut self,
        op: OpId,
        value: ValueId,
        expression: &Expression,
    ) -> Option<Expression> {
        let Hero::Reduction(whole) = expression.hero else { return None };
        let ([first, last], left) = whole.steps()?;
        let read = self.given.works.tensors.of(self.given.program.operand(op, 0)).elements as f64;
        let mut inner = expression.clone();
        inner.hero = Hero::Reduction(first);
        let at = self.push(Kind::Fusible, Some(value), inner);
        let node = &mut self.nodes[at as usize];
        for size in [&mut node.bytes, &mut node.written, &mut node.launched] {
            *size *= left as f64;
        }
        node.looped = read;
        let element = node.element;
        let mut outer = Expression::new(0.0);
        (outer.num_moving, outer.num_reductions) = (1, 1);
        outer.hero = Hero::Reduction(last);
        outer.has_reduction = left as u128 >= SIGNIFICANT;
        outer.shared_bytes = last.shared_bytes(element);
        outer.read(at, 1.0, false);
        Some(outer)
    }
    /// Adds `op` without the sum of its parts, if it is a dot that is split along its contracting dims; returns the expression of
    /// that sum. Of a merged dot, the result is a slice.
    fn split_dot(
        &mut self,
        op: OpId,
        value: ValueId,
        expression: &Expression,
    ) -> Option<Expression> {
        let Given { program, works, layouts, .. } = &mut *self.given;
        let parts = layouts.split_k(program, works, op);
        let is_merged = layouts.merged.parts.contains_key(&op);
        if parts <= 1 && !is_merged {
            return None;
        }
        let at = self.push(Kind::Apart, None, expression.clone());
        self.nodes[at as usize].product = Some(op);
        if parts <= 1 {
            let bytes = self.given.works.tensors.bytes(value) as f64;
            self.nodes[at as usize].bytes = bytes;
            let mut slice = Expression::new(0.0);
            slice.num_moving = 1;
            slice.read(at, 1.0, false);
            self.slices.insert(value, at);
            return Some(slice);
        }
        let elements = self.given.works.tensors.of(value).elements as f64;
        let node = &mut self.nodes[at as usize];
        node.element = 4.0;
        node.bytes = elements * parts as f64 * node.element;
        let mut sum =
            Expression::new((parts - 1) as f64 * elements * flops_of_element("add", "f32"));
        (sum.num_moving, sum.has_reduction) = (1, parts >= SIGNIFICANT);
        let sizes = [parts as i64, elements as i64];
        if let Some(hero) = Reduction::of(&sizes, &[0]).filter(Reduction::is_emitted) {
            (sum.hero, sum.num_reductions) = (Hero::Reduction(hero), 1);
            sum.shared_bytes = hero.shared_bytes(4.0);
        }
        sum.is_tileable = true;
        sum.read(at, 1.0, false);
        Some(sum)
    }
    /// An in-place update writes only the bytes of the update.
    fn note_update(&mut self, op: OpId, at: u32) {
        let program = self.given.program;
        let index = match program.op_name(op) {
            "stablehlo.dynamic_update_slice" => 1,
            "stablehlo.scatter" => 2,
            _ => return,
        };
        let update = self.given.works.tensors.of(program.operand(op, index));
        let node = &mut self.nodes[at as usize];
        (node.written, node.launched) = (update.bytes as f64, (update.elements as f64).max(1.0));
    }
    /// The operands of an op that fuses with none of them; an operand that it reads in another layout gets a copy, a kernel that
    /// can fuse.
    fn apart(&mut self, op: OpId, facts: Fact) -> Expression {
        let program = self.given.program;
        let mut made = Expression::new(0.0);
        for (index, value) in program.operands(op).enumerate() {
            let value = self.given.storage.equal.first(value);
            let Given { works, layouts, .. } = &mut *self.given;
            let folded = layouts.folded(program, works, op, (index, value));
            let is_copied = layouts.carried.may_copy(op, facts.has(Fact::OPAQUE))
                && folded.is_none()
                && layouts.copies(program, works, op, index);
            let used = folded.unwrap_or(value);
            let is_product = facts.has(Fact::PRODUCT) && !is_copied;
            // The kernel of a dot slices its operands.
            let whole = if is_product { self.sliced(used) } else { None };
            let node = whole.unwrap_or_else(|| self.node(used));
            if node == NONE {
                continue;
            }
            if !is_copied {
                made.read_in_place(node);
                continue;
            }
            let mut copy = Expression::new(0.0);
            copy.num_moving = 1;
            copy.read(node, 1.0, false);
            let (bytes, element) =
                (self.nodes[node as usize].bytes, self.nodes[node as usize].element);
            let at = self.push(Kind::Fusible, None, copy);
            let node = &mut self.nodes[at as usize];
            (node.bytes, node.written, node.element) = (bytes, bytes, element);
            node.launched = if element > 0.0 { bytes / element } else { 1.0 };
            made.read_in_place(at);
        }
        if program.num_regions(op) > 0 && facts.has_any(Fact::CAPTURES.or(Fact::INSIDE)) {
            for inner in program.pre_order(op).skip(1) {
                for value in program.operands(inner) {
                    if self.is_here(value) {
                        let node = self.node(value);
                        if node != NONE {
                            made.read_in_place(node);
                        }
                    }
                }
            }
        }
        made
    }
    /// Whether `value` is defined in the block itself.
    pub fn is_here(&self, value: ValueId) -> bool {
        let program = self.given.program;
        match program.def(value) {
            ValueDef::Result(def) => program.parent_block(def) == self.block,
            ValueDef::Arg(owner) => owner == self.block,
        }
    }
}
