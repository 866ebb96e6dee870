//! Priority fusion: which producers XLA:GPU fuses into their consumers.
//!
//! A producer is fused into all of its users or into none: then each user recomputes it, and it is not written. The next producer
//! is always the one whose fusion saves most time by the performance model; then the priorities of its neighbours are updated.
//! Bitcasts are fused first, and are kept for users that do not fuse.
//!
//! Source: XLA's `PriorityFusion`.

mod can_fuse;
mod expression;
mod flops;
mod gemm_fusion;
pub(in crate::compilers) mod hero;
mod multi_output_fusion;
mod nodes;
mod op_expressions;
mod performance_model;
mod softmax_rewriter;
mod tile_order;
pub(in crate::compilers) mod topological_order;

use self::can_fuse::can_fuse;
pub use self::gemm_fusion::TakenIn;
use self::hero::Hero;
use self::multi_output_fusion::{joined, Joined};
use self::nodes::{Given, Kind, Node, Nodes};
use self::performance_model::{fused_seconds, measure, LAUNCH};
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::merged_dots::MergedDots;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::seconds::Seconds;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Seconds of a kernel that XLA does not estimate.
const UNKNOWN: f64 = 1e-8;

/// The fusion decisions for a program.
#[derive(Clone, Debug, Default)]
pub struct Fused {
    /// The values that are candidates for fusion.
    pub stored: Vec<Stored>,
    /// The values that a multi-output kernel writes, for each such kernel.
    pub joined: Vec<Vec<ValueId>>,
    /// The dots that are merged.
    pub merged: MergedDots,
    /// What products compute of their operands.
    pub taken_in: TakenIn,
    /// Seconds of the kernels that compute these values.
    pub seconds: FxHashMap<ValueId, f64>,
}

/// How a value that is a candidate for fusion is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The value.
    pub value: ValueId,
    /// Whether it is written to memory.
    pub is_written: bool,
    /// Whether some users recompute it.
    pub is_fused: bool,
}

/// The fusion decisions for `functions`, given by their ops.
pub fn fused(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    storage: &Storage,
    functions: &[OpId],
) -> Fused {
    let merged = layouts.merged.clone();
    let mut found = Fused { merged, ..Fused::default() };
    let mut given = Given { program, works, layouts, storage };
    for &func in functions {
        for op in program.pre_order(func) {
            for region in program.op_regions(op) {
                let blocks: Vec<BlockId> = program.region_blocks(region).collect();
                for block in blocks.into_iter().filter(|&block| is_run(program, block)) {
                    let mut made = Nodes::of(&mut given, block);
                    found.taken_in.extend(made.fuse_into_products());
                    made.drop_unused_slices();
                    made.rewrite_normalizations(program.block_ops(block));
                    found.add(&Queue::run(made.nodes));
                }
            }
        }
    }
    found
}

/// Whether `block` is executed, rather than the computation of a reduction or the like.
pub fn is_run(program: &Program, block: BlockId) -> bool {
    let owner = program.kind(program.block_parent_op(block));
    matches!(owner, OpKind::Func | OpKind::While | OpKind::Case | OpKind::If)
}

impl Fused {
    /// Adds the decisions for the nodes of a block.
    fn add(&mut self, nodes: &[Node]) {
        for node in nodes.iter().filter(|node| node.kind == Kind::Fusible) {
            let (is_written, is_fused) = (!node.is_gone, node.is_fused);
            let stored = node.value.map(|value| Stored { value, is_written, is_fused });
            self.stored.extend(stored);
            if let Some(value) = node.value.filter(|_| is_written) {
                // Of a reduction in two steps it is the first one that matters.
                let known = self.seconds.entry(value).or_default();
                let is_tiled = node.expression.hero == Hero::Tiled;
                *known = known.max(if is_tiled { UNKNOWN } else { node.seconds });
            }
        }
        for Joined { written, inner } in joined(nodes) {
            let value = |at: u32| nodes[at as usize].value;
            let inner = inner.into_iter().filter_map(value);
            self.stored.extend(inner.map(|value| Stored {
                value,
                is_written: false,
                is_fused: true,
            }));
            self.joined.push(written.into_iter().filter_map(value).collect());
        }
    }
}

/// Producers by priority: the seconds that fusing them saves.
struct Queue {
    nodes: Vec<Node>,
    /// Producers with each priority that they had; entries with former ones are skipped.
    queued: BinaryHeap<(Seconds, u32)>,
    /// The priority with which each node is in the queue.
    priorities: Vec<Option<Seconds>>,
    /// The users that take the current producer, and the nodes whose priorities may have changed; fields to reuse their memory.
    taking: Vec<u32>,
    touched: Vec<u32>,
}

impl Queue {
    /// Fuses producers as long as that saves time.
    fn run(nodes: Vec<Node>) -> Vec<Node> {
        let priorities = vec![None; nodes.len()];
        let (queued, taking, touched) = Default::default();
        let mut queue = Self { nodes, queued, priorities, taking, touched };
        let count = queue.nodes.len() as u32;
        for at in 0..count {
            if queue.nodes[at as usize].kind == Kind::Fusible {
                measure(&mut queue.nodes, at);
            }
        }
        for at in 0..count {
            let is_name = |&&user: &&u32| queue.nodes[user as usize].kind == Kind::Bitcast;
            let num_names = queue.nodes[at as usize].users.iter().filter(is_name).count();
            queue.nodes[at as usize].num_names = num_names;
        }
        (0..count).for_each(|at| queue.compare_operands(at));
        (0..count).for_each(|at| queue.enqueue(at));
        while let Some((priority, at)) = queue.queued.pop() {
            let known = &mut queue.priorities[at as usize];
            if known.is_some_and(|known| known.cmp(&priority).is_eq()) {
                *known = None;
                queue.fuse(at);
            }
        }
        queue.nodes
    }
    /// Recomputes what `consumer` saves if each of its operands is fused into it.
    fn compare_operands(&mut self, consumer: u32) {
        for index in 0..self.nodes[consumer as usize].expression.uses.len() {
            self.compare(consumer, index);
        }
    }
    /// Recomputes what `consumer` saves if its operand at `index` is fused into it.
    fn compare(&mut self, consumer: u32, index: usize) {
        let user = &self.nodes[consumer as usize];
        let operand = &user.expression.uses[index];
        let at = operand.node;
        let producer = &self.nodes[at as usize];
        if producer.kind != Kind::Fusible || user.kind == Kind::Bitcast {
            return;
        }
        let can = can_fuse(at, producer, user);
        let saved =
            if can { user.seconds - fused_seconds(&self.nodes, (at, producer), user) } else { 0.0 };
        let known = &mut self.nodes[consumer as usize].expression.uses[index];
        let before = (known.saved, known.can_fuse);
        (known.saved, known.can_fuse) = (saved, can);
        let producer = &mut self.nodes[at as usize];
        producer.saved += saved - before.0;
        match (before.1, can) {
            (false, true) => producer.num_taking += 1,
            (true, false) => producer.num_taking -= 1,
            _ => {}
        }
    }
    /// Subtracts what `consumer` would save with each of its operands, before these are removed.
    fn forget_operands(&mut self, consumer: u32) {
        for index in 0..self.nodes[consumer as usize].expression.uses.len() {
            let known = &mut self.nodes[consumer as usize].expression.uses[index];
            let (at, saved, can) = (known.node, known.saved, known.can_fuse);
            (known.saved, known.can_fuse) = (0.0, false);
            let producer = &mut self.nodes[at as usize];
            producer.saved -= saved;
            producer.num_taking -= u32::from(can);
        }
    }
    /// Puts `at` in the queue with its priority, or removes it.
    fn enqueue(&mut self, at: u32) {
        let priority = self.priority(at);
        let known = &mut self.priorities[at as usize];
        if *known == priority {
            return;
        }
        *known = priority;
        self.queued.extend(priority.map(|priority| (priority, at)));
    }
    /// The seconds that fusing node `at` into its users saves; `None` if it cannot be fused.
    fn priority(&self, at: u32) -> Option<Seconds> {
        let node = &self.nodes[at as usize];
        if node.is_gone || node.users.is_empty() {
            return None;
        }
        match node.kind {
            Kind::Bitcast => {
                let takes = |&user: &u32| can_fuse(at, node, &self.nodes[user as usize]);
                node.users.iter().any(takes).then_some(Seconds(f64::INFINITY))
            }
            Kind::Fusible => {
                let takes_all = node.num_taking > 0
                    && node.num_taking as usize + node.num_names == node.users.len();
                let priority = node.seconds + LAUNCH + node.saved;
                (takes_all && priority >= 0.0).then_some(Seconds(priority))
            }
            Kind::Outside | Kind::Apart => None,
        }
    }
    /// Fuses node `at` into its users.
    fn fuse(&mut self, at: u32) {
        let mut taking = std::mem::take(&mut self.taking);
        let mut users = std::mem::take(&mut self.nodes[at as usize].users);
        users.retain(|&user| {
            let takes = can_fuse(at, &self.nodes[at as usize], &self.nodes[user as usize]);
            if takes {
                taking.push(user);
            }
            !takes
        });
        self.nodes[at as usize].users = users;
        let is_name = self.nodes[at as usize].kind == Kind::Bitcast;
        for &user in &taking {
            self.forget_operands(user);
            let [producer, before] = [at, user].map(|it| &self.nodes[it as usize].expression);
            let mut fused = before.with(at, producer);
            if let (true, true, Some(named)) =
                (is_name, before.updated == at, producer.uses.first())
            {
                // What is updated in place is updated under its other name.
                fused.updated = named.node;
            }
            let before = std::mem::replace(&mut self.nodes[user as usize].expression, fused);
            for index in 0..self.nodes[user as usize].expression.uses.len() {
                let used = self.nodes[user as usize].expression.uses[index].node;
                if before.use_of(used).is_none() {
                    self.nodes[used as usize].add_user(user);
                }
            }
            measure(&mut self.nodes, user);
        }
        let node = &mut self.nodes[at as usize];
        node.is_fused |= !taking.is_empty();
        if node.users.is_empty() && !taking.is_empty() {
            node.is_gone = true;
            self.forget_operands(at);
            for index in 0..self.nodes[at as usize].expression.uses.len() {
                let operand = self.nodes[at as usize].expression.uses[index].node;
                let used = &mut self.nodes[operand as usize];
                if used.users.remove(&at) {
                    used.num_names -= usize::from(is_name);
                }
                self.enqueue(operand);
            }
        }
        self.update(&taking);
        taking.clear();
        self.taking = taking;
    }
    /// Updates the priorities around the nodes `changed`.
    fn update(&mut self, changed: &[u32]) {
        let mut touched = std::mem::take(&mut self.touched);
        for &user in changed {
            self.compare_operands(user);
            touched.extend(self.nodes[user as usize].expression.uses.iter().map(|it| it.node));
            // Comparing does not change who the users are.
            let users = std::mem::take(&mut self.nodes[user as usize].users);
            for &outer in &users {
                let uses = &self.nodes[outer as usize].expression.uses;
                if let Ok(index) = uses.binary_search_by_key(&user, |it| it.node) {
                    self.compare(outer, index);
                }
            }
            self.nodes[user as usize].users = users;
            touched.push(user);
        }
        touched.sort_unstable();
        touched.dedup();
        for at in touched.drain(..) {
            self.enqueue(at);
        }
        self.touched = touched;
    }
}
