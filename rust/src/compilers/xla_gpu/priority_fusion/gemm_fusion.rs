//! `gemm-fusion`: the kernels of products compute their operands from what these are computed of, if they read no more then.
//!
//! An elementwise op, a transpose or a broadcast before a product is part of its kernel; other users of the op, if there are any, read
//! it from memory or compute it themselves. So a product reads at most four arrays for each operand.
//!
//! Source: XLA's `GemmFusion`.

use super::node::Kind;
use super::nodes::{Given, Nodes};
use super::tile_order::{Role, TileOrder};
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, ValueDef};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most arrays that a product reads for one of its operands.
const MAX_READ: usize = 4;
/// The most ops that a product computes for one of its operands, and the most names of an argument. XLA has no such limits; with
/// them what many products read takes no longer than the program is long.
const MAX_FUSED: usize = 64;
const MAX_NAMES: u32 = 8;
/// Bytes by which what is read may grow.
const TOLERANCE: f64 = 1024.0;

/// The values that the kernel of a product computes itself, for each of its operands for which it computes any, or reads a copy in
/// place of which it reads its own order.
pub type TakenIn = FxHashMap<(OpId, u32), Vec<ValueId>>;

/// What a product may compute itself.
struct Candidate {
    node: u32,
    order: TileOrder,
    /// Whether the node is a copy in another order of dims.
    is_copy: bool,
}

impl Nodes<'_, '_, '_> {
    /// Makes the producers of operands of products part of these.
    pub fn fuse_into_products(&mut self) -> TakenIn {
        let mut taken_in = TakenIn::default();
        for at in 0..self.nodes.len() as u32 {
            let Some(op) = self.nodes[at as usize].product else { continue };
            let (mut uses, mut all) = (Vec::new(), Vec::new());
            for index in 0..2 {
                let Some(root) = self.root(at, op, index) else { continue };
                let (read, fused) = self.plan(root);
                if !fused.is_empty() {
                    let values = fused.iter().filter_map(|&node| self.nodes[node as usize].value);
                    taken_in.insert((op, index as u32), values.collect());
                }
                uses.extend(read);
                all.extend(fused);
            }
            if !all.is_empty() {
                self.compute_in_product(at, &all, &uses);
            }
        }
        taken_in
    }
    /// The node of operand `index` of `op`, a product, which is node `at`; `None` if it is not read as one matrix.
    fn root(&mut self, at: u32, op: OpId, index: usize) -> Option<Candidate> {
        let program = self.given.program;
        let value = self.given.storage.equal.first(program.operand(op, index));
        let Given { works, layouts, .. } = &mut *self.given;
        let is_split = layouts.split_k(program, works, op) > 1;
        let part = layouts.merged.parts.get(&op);
        if part.is_some_and(|part| part.is_concatenated && part.side == index) {
            return None;
        }
        let folded = layouts.folded(program, works, op, (index, value));
        let is_copy = folded.is_none() && layouts.copies(program, works, op, index);
        let made_by = program.defining_op(value).map(|made_by| program.op_name(made_by));
        if is_copy && made_by == Some("stablehlo.dynamic_update_slice") {
            // What is updated is transposed first.
            return None;
        }
        let [batch, free, contracting] = layouts.dims_of_dot(program, op, index)?;
        let role = |dim: usize| {
            if let Some(at) = batch.iter().position(|&it| it == dim) {
                return Some(Role::Batch(at));
            }
            if free.contains(&dim) {
                return Some(Role::Free);
            }
            contracting.contains(&dim).then_some(Role::Contracting)
        };
        let turned = match folded {
            Some(_) => program.defining_op(value).and_then(|made| layouts.permuted(program, made)),
            None => None,
        };
        let turned: Option<Vec<usize>> = turned.map(<[usize]>::to_vec);
        let sizes = works.tensors.of(value).dims.as_deref()?;
        let mut dims = Vec::with_capacity(sizes.len());
        for dim in 0..sizes.len() {
            let dim = match &turned {
                Some(turned) => turned.iter().position(|&of| of == dim)?,
                None => dim,
            };
            dims.push((role(dim)?, *sizes.get(dim)?));
        }
        let order = TileOrder::new(&dims, index == 0 && !is_split);
        let of_value = self.known_node(folded.unwrap_or(value))?;
        let uses = &self.nodes[at as usize].expression.uses;
        let is_copy_of = |node: u32| {
            let node = &self.nodes[node as usize];
            node.value.is_none()
                && node.expression.uses.first().is_some_and(|it| it.node == of_value)
        };
        let node = if is_copy {
            uses.iter().map(|it| it.node).find(|&node| is_copy_of(node))?
        } else {
            of_value
        };
        Some(Candidate { node, order, is_copy })
    }
    /// What the kernel of a product reads for `root`, its operand, and the nodes that it computes.
    fn plan(&mut self, root: Candidate) -> (Vec<u32>, Vec<u32>) {
        let (mut read, mut fused) = (Vec::new(), Vec::new());
        let mut left = VecDeque::from([root]);
        let mut num_waiting = 0;
        while let Some(candidate) = left.pop_front() {
            let Some(operands) = self.operands_in_product(&candidate) else {
                read.push(candidate.node);
                num_waiting = 0;
                continue;
            };
            let mut new: Vec<Candidate> = Vec::new();
            for operand in operands {
                let is_same = |other: &Candidate| other.node == operand.node;
                if !read.contains(&operand.node) && !left.iter().chain(&new).any(is_same) {
                    new.push(operand);
                }
            }
            if fused.len() == MAX_FUSED {
                left.push_front(candidate);
                break;
            }
            if read.len() + left.len() + new.len() > MAX_READ {
                // There may be room when others have been taken in.
                left.push_back(candidate);
                num_waiting += 1;
                if num_waiting == left.len() {
                    break;
                }
                continue;
            }
            num_waiting = 0;
            fused.push(candidate.node);
            left.extend(new);
        }
        read.extend(left.into_iter().map(|it| it.node));
        (read, fused)
    }
    /// The operands of what a product may compute, if it is worth that; `None` otherwise.
    fn operands_in_product(&mut self, candidate: &Candidate) -> Option<Vec<Candidate>> {
        let program = self.given.program;
        let node = &self.nodes[candidate.node as usize];
        let with = |node: u32, order: TileOrder| Candidate { node, order, is_copy: false };
        if candidate.is_copy {
            let of = node.expression.uses.first()?.node;
            return candidate.order.is_supported().then(|| vec![with(of, candidate.order.clone())]);
        }
        if !matches!(node.kind, Kind::Bitcast | Kind::Fusible) || node.is_last_step {
            return None;
        }
        let op = node.value.and_then(|value| program.defining_op(value))?;
        let order = self.order_before(op, &candidate.order)?;
        if !order.is_supported() || !self.is_supported(op) || !self.is_worth(op, candidate.node) {
            return None;
        }
        let values: Vec<ValueId> = program.operands(op).collect();
        let nodes = values.into_iter().filter_map(|value| {
            let value = self.given.storage.equal.first(value);
            self.known_node(value).map(|node| with(node, order.clone()))
        });
        Some(nodes.collect())
    }
    /// The order in which the operands of `op` are read, if its result is in `order`; `None` if it is none that can be fused.
    fn order_before(&mut self, op: OpId, order: &TileOrder) -> Option<TileOrder> {
        let program = self.given.program;
        let Given { works, layouts, storage, .. } = &mut *self.given;
        let facts = storage.facts.of(op);
        let is_splat = facts.has(Fact::CONSTANT.or(Fact::OF_NOTHING));
        if facts.has(Fact::POINTWISE) || is_splat {
            return Some(order.clone());
        }
        let sizes = works.tensors.of(program.result(op, 0)).dims.as_deref()?;
        match program.op_name(op) {
            "stablehlo.reshape" => Some(order.clone()),
            "stablehlo.transpose" => order.before_transpose(sizes, layouts.permuted(program, op)?),
            "stablehlo.broadcast_in_dim" => {
                order.before_broadcast(sizes, layouts.broadcast(program, op)?)
            }
            _ => None,
        }
    }
    /// Whether the kernel of a product can compute `op`.
    fn is_supported(&mut self, op: OpId) -> bool {
        let program = self.given.program;
        let tensors = &mut self.given.works.tensors;
        let mut values = program.operands(op).chain(program.op_results(op));
        let is_known = values.all(|value| {
            matches!(
                tensors.element(value),
                "f32" | "bf16" | "f16" | "f8E4M3FN" | "f8E5M2" | "i32" | "i16" | "i8" | "i1"
            )
        });
        let is_other = matches!(
            program.op_name(op),
            "stablehlo.sign" | "stablehlo.remainder" | "stablehlo.round_nearest_even"
        );
        is_known && !is_other && !self.is_read_in_part(program.result(op, 0))
    }
    /// Whether a concatenation or a slice at a computed place reads `value`.
    fn is_read_in_part(&mut self, value: ValueId) -> bool {
        let program = self.given.program;
        let is_it = |user: OpId| {
            let name = program.op_name(user);
            name == "stablehlo.concatenate" || name == "stablehlo.dynamic_slice"
        };
        *self.read_in_part.entry(value).or_insert_with(|| program.users(value).any(is_it))
    }
    /// Whether a product reads no more if it computes `op`, which is `node`; or little more, as only arguments are read, by it alone.
    fn is_worth(&mut self, op: OpId, node: u32) -> bool {
        let program = self.given.program;
        let operands: Vec<ValueId> = program.operands(op).collect();
        if operands.len() == 2
            && self.given.storage.facts.has(op, Fact::POINTWISE)
            && operands.iter().any(|&value| self.is_broadcast(value))
        {
            return true;
        }
        let tensors = &mut self.given.works.tensors;
        let mut bytes = |value: ValueId| tensors.bytes(value) as f64;
        let read: f64 = operands.iter().map(|&value| bytes(value)).sum();
        if read - bytes(program.result(op, 0)) <= TOLERANCE {
            return true;
        }
        let is_given = |&value: &ValueId| {
            self.is_given(value)
                && program.users(self.given.storage.equal.first(value)).take(2).count() == 1
        };
        self.nodes[node as usize].users.len() == 1
            && program.op_name(op) != "stablehlo.multiply"
            && operands.iter().all(is_given)
    }
    /// Whether `value` is a constant of equal elements, or an argument that is broadcast.
    fn is_broadcast(&self, value: ValueId) -> bool {
        let program = self.given.program;
        let value = self.given.storage.equal.first(value);
        let Some(op) = program.defining_op(value) else { return false };
        let facts = self.given.storage.facts.of(op);
        facts.has(Fact::CONSTANT.or(Fact::OF_NOTHING))
            || program.op_name(op) == "stablehlo.broadcast_in_dim"
                && self.is_given(program.operand(op, 0))
    }
    /// Whether `value` is a constant, or an argument of the entry function, maybe reshaped.
    fn is_given(&self, mut value: ValueId) -> bool {
        let program = self.given.program;
        for _ in 0..MAX_NAMES {
            match program.def(self.given.storage.equal.first(value)) {
                ValueDef::Arg(block) => {
                    return program.kind(program.block_parent_op(block)) == OpKind::Func;
                }
                ValueDef::Result(op) => {
                    let facts = self.given.storage.facts.of(op);
                    if facts.has(Fact::CONSTANT) || !facts.has(Fact::NAME) {
                        return facts.has(Fact::CONSTANT);
                    }
                    value = program.operand(op, 0);
                }
            }
        }
        false
    }
    /// Makes the nodes `fused` part of product `at`, which reads `read` then. What nothing else uses is computed there only.
    fn compute_in_product(&mut self, at: u32, fused: &[u32], read: &[u32]) {
        let mut expression = self.nodes[at as usize].expression.clone();
        let used: Vec<u32> = expression.uses.drain(..).map(|it| it.node).collect();
        for &node in &used {
            self.nodes[node as usize].users.remove(at);
        }
        let kept = used.iter().filter(|node| !fused.contains(node));
        for &node in kept.chain(read) {
            expression.read_in_place(node);
            self.nodes[node as usize].add_user(at);
        }
        self.nodes[at as usize].expression = expression;
        let mut left = fused.to_vec();
        while let Some(node) = left.pop() {
            let own = &mut self.nodes[node as usize];
            let can_go = matches!(own.kind, Kind::Bitcast | Kind::Fusible) && own.users.is_empty();
            if !can_go || std::mem::replace(&mut own.is_gone, true) {
                continue;
            }
            own.is_fused = true;
            for it in std::mem::take(&mut own.expression.uses) {
                self.nodes[it.node as usize].users.remove(node);
                left.push(it.node);
            }
        }
    }
}
