//! Multi-output fusion: kernels over equally many elements that share an operand (siblings), or that are producer and consumer,
//! become one kernel that writes all their results.
//!
//! Transposes in loops are not in one kernel with reductions or tiled transposes.
//!
//! Source: XLA's `MultiOutputFusion` and `FusionHeroesAreCompatible`.

use super::can_fuse::{MAX_OPERANDS, MAX_REDUCTIONS, SHARED_BYTES};
use super::expression::NONE;
use super::hero::Hero;
use super::node::{Kind, Node};
use super::performance_model::{fused_seconds, side_output_seconds, LAUNCH};
use super::topological_order::TopologicalOrder;
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::inline_list::InlineList;

/// The most users of a value that are compared with each other.
const MAX_SIBLINGS: usize = 64;

/// Groups of kernels that are being merged.
pub struct Groups<'n> {
    nodes: &'n [Node],
    /// The group of each node, named after its first member.
    group: Vec<u32>,
    members: Vec<InlineList<u32, 4>>,
    /// The kernels that read each node.
    readers: Rows<u32>,
    order: TopologicalOrder,
}

/// A merged kernel.
pub struct Joined {
    /// The nodes whose results it writes.
    pub written: Vec<u32>,
    /// The nodes that it computes for these alone.
    pub inner: Vec<u32>,
}

/// The kernels that are merged of several.
pub fn joined(nodes: &[Node]) -> Vec<Joined> {
    let count = nodes.len() as u32;
    let is_there = |at: u32| !nodes[at as usize].is_gone;
    let mut edges = Vec::new();
    for at in (0..count).filter(|&at| is_there(at)) {
        edges.extend(nodes[at as usize].expression.uses.iter().map(|used| (used.node, at)));
    }
    let readers = Rows::of(nodes.len(), &edges);
    let order = TopologicalOrder::new(nodes.len(), &edges);
    let members = (0..count).map(|at| InlineList::of(&[at])).collect();
    let mut groups = Groups { nodes, group: (0..count).collect(), members, readers, order };
    for at in (0..count).rev().filter(|&at| is_there(at)) {
        groups.fuse_siblings(at);
        groups.fuse_into_reader(at);
    }
    let Groups { members, group, readers, .. } = groups;
    let merged = members.into_iter().filter(|members| members.len() > 1);
    merged
        .map(|members| {
            let is_inner = |&at: &u32| {
                let readers = readers.row(at);
                let is_here = |&reader: &u32| group[reader as usize] == group[at as usize];
                !readers.is_empty() && readers.iter().all(is_here)
            };
            let (inner, written) = members.iter().copied().partition(is_inner);
            Joined { written, inner }
        })
        .collect()
}

impl Groups<'_> {
    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }
    /// The groups that read the results of the group of `at`, each once.
    fn reading(&self, at: u32) -> Vec<u32> {
        let members = self.members[self.group[at as usize] as usize].iter();
        let readers = members.flat_map(|&member| self.readers.row(member));
        let mut found: Vec<u32> = readers.map(|&reader| self.group[reader as usize]).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
    /// Merges the siblings that read node `parent`.
    fn fuse_siblings(&mut self, parent: u32) {
        if self.node(parent).launched <= 1.0 || self.group[parent as usize] != parent {
            return;
        }
        let mut siblings = self.reading(parent);
        siblings.retain(|&group| self.is_root(group) && self.has_readers(group));
        siblings.truncate(MAX_SIBLINGS);
        if siblings.len() < 2 {
            return;
        }
        // Several results first, then fusions, then single ops; of these, as dumped programs show, tiled transposes before others.
        siblings.sort_by_key(|&group| {
            let hero = self.hero(group);
            let is_transpose =
                is_untiled(hero) || matches!(hero.expression.hero, Hero::Transpose(_));
            (std::cmp::Reverse(self.rank(group)), !is_transpose, is_untiled(hero))
        });
        let mut at = 0;
        while at < siblings.len() {
            let one = siblings[at];
            at += 1;
            if self.rank(one) == 0 {
                continue;
            }
            let mut next = at;
            while next < siblings.len() {
                let other = siblings[next];
                // A reduction is not in one kernel with what reads it; loops over the same elements are.
                let is_read = |this: &Self| {
                    matches!(this.hero(one).expression.hero, Hero::Reduction(_))
                        && (this.reading(one).contains(&other)
                            || this.reading(other).contains(&one))
                };
                if self.are_compatible(one, other) && !is_read(self) && self.join(one, other) {
                    siblings.remove(next);
                } else {
                    next += 1;
                }
            }
        }
    }
    /// Merges the kernel of node `at` with one that reads its result.
    fn fuse_into_reader(&mut self, at: u32) {
        let producer = self.node(at);
        if self.members[at as usize].len() != 1 || !is_loop_producer(producer) {
            return;
        }
        let mut readers = self.reading(at);
        if readers.len() == 1 && self.members[readers[0] as usize].len() == 1 {
            return;
        }
        readers.retain(|&reader| {
            self.is_root(reader) && self.are_compatible(at, reader) && self.is_faster(at, reader)
        });
        readers.sort_by_key(|&reader| std::cmp::Reverse(self.rank(reader)));
        if let Some(&reader) = readers.first() {
            self.join(reader, at);
        }
    }
    /// Whether the kernel of `reader` is faster than both kernels if it writes the result of node `at`, too.
    fn is_faster(&self, at: u32, reader: u32) -> bool {
        let producer = self.node(at);
        let mut members = self.members[reader as usize].iter();
        let user = members.find(|&&it| self.node(it).expression.use_of(at).is_some());
        let Some(consumer) = user.map(|&it| self.node(it)) else { return false };
        let fused = fused_seconds(|node| self.node(node).size(), (at, producer), consumer);
        LAUNCH + fused + side_output_seconds(producer)
            <= 2.0 * LAUNCH + producer.seconds + consumer.seconds
    }
    /// Whether a kernel can be the root of a multi-output fusion: a loop, a reduction or a transpose.
    fn is_root(&self, group: u32) -> bool {
        self.members[group as usize].iter().all(|&at| {
            let Node { kind, expression, value, is_last_step, .. } = self.node(at);
            let is_loop = expression.num_moving == 0 || expression.is_fusion;
            let has_root = match expression.hero {
                Hero::Reduction(_) | Hero::Transpose(_) => true,
                Hero::Loop | Hero::Concatenation => is_loop,
                Hero::Scatter | Hero::Tiled => false,
            };
            *kind == Kind::Fusible
                && value.is_some()
                && !is_last_step
                && expression.updated == NONE
                && has_root
        })
    }
    fn has_readers(&self, group: u32) -> bool {
        self.members[group as usize].iter().any(|&at| !self.readers.row(at).is_empty())
    }
    /// 2 for several results, 1 for a fusion, 0 for a single op.
    fn rank(&self, group: u32) -> u32 {
        let members = &self.members[group as usize];
        if members.len() > 1 {
            return 2;
        }
        u32::from(self.node(members[0]).expression.is_fusion)
    }
    /// The member that decides how the kernel is emitted: a reduction or a transpose, if there is one.
    fn hero(&self, group: u32) -> &Node {
        let members = &self.members[group as usize];
        let is_special = |at: &&u32| is_tiled(self.node(**at));
        self.node(*members.iter().find(is_special).unwrap_or(&members[0]))
    }
    /// Whether two kernels iterate over equally many elements and have compatible heroes, and the merged kernel is not too large.
    fn are_compatible(&self, one: u32, other: u32) -> bool {
        let [first, second] = [one, other].map(|group| self.hero(group));
        if is_untiled(first) && is_tiled(second) || is_tiled(first) && is_untiled(second) {
            return false;
        }
        let goes = match (first.expression.hero, second.expression.hero) {
            (Hero::Reduction(left), Hero::Reduction(right)) => left == right,
            (Hero::Transpose(left), Hero::Transpose(right)) => left.to_bits() == right.to_bits(),
            (Hero::Reduction(_), Hero::Transpose(_)) | (Hero::Transpose(_), Hero::Reduction(_)) => {
                false
            }
            _ => true,
        };
        goes && first.looped.to_bits() == second.looped.to_bits() && self.fits(one, other)
    }
    fn fits(&self, one: u32, other: u32) -> bool {
        let members = || self.members[one as usize].iter().chain(&self.members[other as usize]);
        let all = || members().map(|&at| &self.node(at).expression);
        let reductions: u32 = all().map(|it| it.num_reductions).sum();
        let shared: f64 = all().map(|it| it.shared_bytes).sum();
        let mut operands: Vec<u32> =
            all().flat_map(|it| it.uses.iter().map(|it| it.node)).collect();
        operands.sort_unstable();
        operands.dedup();
        let count = operands.len() + members().count();
        reductions <= MAX_REDUCTIONS && shared <= SHARED_BYTES && count <= MAX_OPERANDS
    }
    /// Merges two kernels, unless one depends on the other through a third; returns whether it did.
    fn join(&mut self, one: u32, other: u32) -> bool {
        if !self.order.merge(one, other) {
            return false;
        }
        let moved = std::mem::take(&mut self.members[other as usize]);
        for &at in &moved {
            self.group[at as usize] = one;
        }
        self.members[one as usize].extend(moved.iter().copied());
        true
    }
}

/// Whether threads read what `node` reads in the order of its reduction or transpose, or for each element of its transpose.
const fn is_tiled(node: &Node) -> bool {
    matches!(node.expression.hero, Hero::Reduction(_) | Hero::Transpose(_))
}
fn is_untiled(node: &Node) -> bool {
    node.expression.is_transpose && node.expression.hero == Hero::Loop
}

/// Whether other kernels can compute `node` in a loop and write it as a further output.
fn is_loop_producer(node: &Node) -> bool {
    let expression = &node.expression;
    let is_loop = match expression.hero {
        Hero::Loop | Hero::Concatenation => true,
        Hero::Reduction(_) => !expression.is_fusion,
        Hero::Transpose(_) | Hero::Scatter | Hero::Tiled => false,
    };
    node.kind == Kind::Fusible
        && node.value.is_some()
        && !node.is_last_step
        && is_loop
        && expression.updated == NONE
        && !expression.has_transpose
}
