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
use self::nodes::{nodes_of, Given, Kind, Node};
use self::performance_model::{fused_seconds, seconds, LAUNCH};
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::merged_dots::MergedDots;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::seconds::Seconds;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

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
                    let (nodes, taken_in) = nodes_of(&mut given, block);
                    found.taken_in.extend(taken_in);
                    found.add(&Queue::run(nodes));
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
    queued: BTreeSet<(Seconds, u32)>,
    /// The priority with which each node is in the queue.
    priorities: Vec<Option<Seconds>>,
}

impl Queue {
    /// Fuses producers as long as that saves time.
    fn run(nodes: Vec<Node>) -> Vec<Node> {
        let priorities = vec![None; nodes.len()];
        let mut queue = Self { nodes, queued: BTreeSet::new(), priorities };
        let count = queue.nodes.len() as u32;
        for at in 0..count {
            if queue.nodes[at as usize].kind == Kind::Fusible {
                queue.nodes[at as usize].seconds = seconds(&queue.nodes, &queue.nodes[at as usize]);
            }
        }
        for at in 0..count {
            let is_name = |&&user: &&u32| queue.nodes[user as usize].kind == Kind::Bitcast;
            let num_names = queue.nodes[at as usize].users.iter().filter(is_name).count();
            queue.nodes[at as usize].num_names = num_names;
        }
        (0..count).for_each(|at| queue.compare_operands(at));
        (0..count).for_each(|at| queue.enqueue(at));
        while let Some((_, at)) = queue.queued.pop_last() {
            queue.priorities[at as usize] = None;
            queue.fuse(at);
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
    /// Subtracts what `consumer` would save with its operand at `index`, before that operand is removed.
    fn forget(&mut self, consumer: u32, index: usize) {
        let known = &mut self.nodes[consumer as usize].expression.uses[index];
        let (at, saved, can) = (known.node, known.saved, known.can_fuse);
        (known.saved, known.can_fuse) = (0.0, false);
        let producer = &mut self.nodes[at as usize];
        producer.saved -= saved;
        producer.num_taking -= u32::from(can);
    }
    /// Puts `at` in the queue with its priority, or removes it.
    fn enqueue(&mut self, at: u32) {
        let priority = self.priority(at);
        let known = &mut self.priorities[at as usize];
        if *known == priority {
            return;
        }
        if let Some(before) = known.take() {
            self.queued.remove(&(before, at));
        }
        *known = priority;
        if let Some(priority) = priority {
            self.queued.insert((priority, at));
        }
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
        let users = std::mem::take(&mut self.nodes[at as usize].users);
        let takes =
            |&user: &u32| can_fuse(at, &self.nodes[at as usize], &self.nodes[user as usize]);
        let (taking, left): (Vec<u32>, Vec<u32>) = users.into_iter().partition(takes);
        self.nodes[at as usize].users = left.into_iter().collect();
        let producer = self.nodes[at as usize].expression.clone();
        let is_name = self.nodes[at as usize].kind == Kind::Bitcast;
        for &user in &taking {
            for index in 0..self.nodes[user as usize].expression.uses.len() {
                self.forget(user, index);
            }
            let before = &self.nodes[user as usize].expression;
            let mut fused = before.with(at, &producer);
            if let (true, true, Some(named)) =
                (is_name, before.updated == at, producer.uses.first())
            {
                // What is updated in place is updated under its other name.
                fused.updated = named.node;
            }
            let new: Vec<u32> = (fused.uses.iter().map(|it| it.node))
                .filter(|&node| before.use_of(node).is_none())
                .collect();
            for node in new {
                self.nodes[node as usize].add_user(user);
            }
            self.nodes[user as usize].expression = fused;
            self.nodes[user as usize].seconds = seconds(&self.nodes, &self.nodes[user as usize]);
        }
        let node = &mut self.nodes[at as usize];
        node.is_fused |= !taking.is_empty();
        if node.users.is_empty() && !taking.is_empty() {
            node.is_gone = true;
            let operands: Vec<u32> = node.expression.uses.iter().map(|it| it.node).collect();
            for index in 0..operands.len() {
                self.forget(at, index);
            }
            for operand in operands {
                let used = &mut self.nodes[operand as usize];
                if used.users.remove(&at) {
                    used.num_names -= usize::from(is_name);
                }
                self.enqueue(operand);
            }
        }
        self.update(&taking);
    }
    /// Updates the priorities around the nodes `changed`.
    fn update(&mut self, changed: &[u32]) {
        let mut touched: Vec<u32> = Vec::new();
        for &user in changed {
            self.compare_operands(user);
            touched.extend(self.nodes[user as usize].expression.uses.iter().map(|it| it.node));
            for outer in self.nodes[user as usize].users.clone() {
                let uses = &self.nodes[outer as usize].expression.uses;
                if let Ok(index) = uses.binary_search_by_key(&user, |it| it.node) {
                    self.compare(outer, index);
                }
            }
            touched.push(user);
        }
        touched.sort_unstable();
        touched.dedup();
        for at in touched {
            self.enqueue(at);
        }
    }
}
