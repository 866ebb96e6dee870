//! The computation of a fused kernel: how much it reads of each operand, and how often each part of it is emitted.
//!
//! Ops that are connected to the result by elementwise ops alone are computed once for each of its elements: they share a root. Any
//! other use of a value begins a new root, with a utilization: the fraction of the value's elements that are computed.
//!
//! Source: XLA's `GpuHloCostAnalysis`.

use super::hero::Hero;
use crate::inline_list::InlineList;

/// No node.
pub const NONE: u32 = u32::MAX;

/// A part of the computation whose ops are all computed for the same elements.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    /// The elements that are computed, divided by the elements of the value.
    pub utilization: f64,
    /// How often its code is emitted.
    pub emitted: f64,
}

impl Root {
    /// The root of the result.
    const RESULT: Self = Self { utilization: 1.0, emitted: 1.0 };
}

/// An operand of an expression.
#[derive(Clone, Debug)]
pub struct Use {
    /// The node that defines it.
    pub node: u32,
    /// The indices of the roots that read it.
    pub roots: InlineList<u32, 4>,
    /// Whether adjacent elements are read apart (uncoalesced).
    pub is_strided: bool,
    /// Its utilization, and the seconds to read it, as last measured.
    pub utilization: f64,
    pub seconds: f64,
}

impl Use {
    /// A use of `node` that was not measured.
    fn new(node: u32, roots: InlineList<u32, 4>, is_strided: bool) -> Self {
        Self { node, roots, is_strided, utilization: 0.0, seconds: 0.0 }
    }
    fn add_root(&mut self, root: u32) {
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
    }
}

/// The computation of a kernel.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is found out by itself.
pub struct Expression {
    /// Its operands, by node.
    pub uses: Vec<Use>,
    /// The roots; the first is that of the result.
    pub roots: Vec<Root>,
    /// Clock cycles of a thread, which XLA counts as flops.
    pub flops: f64,
    /// The number of emitted ops.
    pub size: f64,
    /// How it is emitted.
    pub hero: Hero,
    /// The operand from which its result is computed by unary elementwise ops alone; [`NONE`] if there is none.
    pub chain: u32,
    /// Whether it has a significant reduction ([`super::hero::SIGNIFICANT`]).
    pub has_reduction: bool,
    /// Whether it can be computed row by row.
    pub is_tileable: bool,
    /// Whether it has several ops, and whether one of them moves elements.
    pub is_fusion: bool,
    pub has_transpose: bool,
    /// Whether its result is that of a transpose.
    pub is_transpose: bool,
    /// The number of reductions that are emitted as such, and the bytes of shared memory.
    pub num_reductions: u32,
    pub shared_bytes: f64,
    /// The number of its ops that are not elementwise.
    pub num_moving: u32,
    /// The operand that it updates in place; [`NONE`] if there is none.
    pub updated: u32,
}

impl Expression {
    /// An op without operands.
    pub fn new(flops: f64) -> Self {
        Self {
            uses: Vec::new(),
            roots: vec![Root::RESULT],
            flops,
            size: 1.0,
            hero: Hero::Loop,
            chain: NONE,
            has_reduction: false,
            is_tileable: false,
            is_fusion: false,
            has_transpose: false,
            is_transpose: false,
            num_reductions: 0,
            shared_bytes: 0.0,
            num_moving: 0,
            updated: NONE,
        }
    }
    /// Adds an operand that is read elementwise.
    pub fn read_in_place(&mut self, node: u32) {
        self.add(node, 0, false);
    }
    /// Adds an operand that is read in another way; `utilization` is the number of elements read, divided by those that it has.
    pub fn read(&mut self, node: u32, utilization: f64, is_strided: bool) {
        self.roots.push(Root { utilization, emitted: 1.0 });
        self.add(node, self.roots.len() as u32 - 1, is_strided);
    }
    fn add(&mut self, node: u32, root: u32, is_strided: bool) {
        match self.uses.binary_search_by_key(&node, |it| it.node) {
            Ok(at) => {
                let known = &mut self.uses[at];
                known.add_root(root);
                known.is_strided |= is_strided;
            }
            Err(at) => {
                self.uses.insert(at, Use::new(node, InlineList::of(&[root]), is_strided));
            }
        }
    }
    /// The use of `node`.
    pub fn use_of(&self, node: u32) -> Option<&Use> {
        let at = self.uses.binary_search_by_key(&node, |it| it.node);
        at.ok().map(|at| &self.uses[at])
    }
    /// The utilization of an operand.
    pub fn utilization(&self, operand: &Use) -> f64 {
        operand.roots.iter().map(|&root| self.roots[root as usize].utilization).sum()
    }
    /// How often an operand is emitted.
    pub fn emitted(&self, operand: &Use) -> f64 {
        operand.roots.iter().map(|&root| self.roots[root as usize].emitted).sum()
    }
    /// The utilization that two operands have in common, as they are read by the same roots.
    pub fn common(&self, one: &Use, other: &Use) -> f64 {
        let shared = one.roots.iter().filter(|root| other.roots.contains(root));
        shared.map(|&root| self.roots[root as usize].utilization).sum()
    }
    /// The hero of the kernel with `producer`, node `at`, fused into it.
    pub fn hero_with(&self, at: u32, producer: &Self) -> Hero {
        if self.hero == Hero::Tiled || producer.hero == Hero::Tiled {
            return Hero::Tiled;
        }
        let is_in_place = || self.use_of(at).is_some_and(|it| it.roots.contains(&0));
        match (self.hero, producer.hero) {
            (Hero::Loop, Hero::Reduction(reduction))
                if self.chain == at && reduction.is_race_free() =>
            {
                producer.hero
            }
            (Hero::Loop, Hero::Transpose(_) | Hero::Concatenation) if is_in_place() => {
                producer.hero
            }
            _ => self.hero,
        }
    }
    /// As [`Expression::with`], for a kernel that computes each part of a row once.
    fn tiled_with(&self, at: u32, producer: &Self) -> Self {
        let mut made = Self::new(self.flops + producer.flops);
        (made.hero, made.is_tileable, made.is_fusion) = (Hero::Tiled, true, true);
        made.size = self.size + producer.size;
        made.has_reduction = self.has_reduction || producer.has_reduction;
        let union = self.union(producer).filter(|&(node, ..)| node != at);
        let read_once = |(node, ..): (u32, _, _)| Use::new(node, InlineList::of(&[0]), false);
        made.uses = union.map(read_once).collect();
        made
    }
    /// The nodes that one of two computations uses, in order, with both uses.
    pub fn union<'e>(
        &'e self,
        other: &'e Self,
    ) -> impl Iterator<Item = (u32, Option<&'e Use>, Option<&'e Use>)> {
        let (mut left, mut right) = (self.uses.as_slice(), other.uses.as_slice());
        std::iter::from_fn(move || {
            let [one, another] = [left.first(), right.first()];
            let node = match (one, another) {
                (Some(one), Some(another)) => one.node.min(another.node),
                (one, another) => one.or(another)?.node,
            };
            let one = one.filter(|it| it.node == node);
            let another = another.filter(|it| it.node == node);
            left = &left[usize::from(one.is_some())..];
            right = &right[usize::from(another.is_some())..];
            Some((node, one, another))
        })
    }
    /// This computation with `producer`, node `at`, one of its operands, fused into it.
    #[must_use]
    pub fn with(&self, at: u32, producer: &Self) -> Self {
        let Some(used) = self.use_of(at) else { return self.clone() };
        let hero = self.hero_with(at, producer);
        if hero == Hero::Tiled {
            return self.tiled_with(at, producer);
        }
        let (utilization, emitted) = (self.utilization(used), self.emitted(used));
        let first = self.roots.len() as u32;
        let mut roots = Vec::with_capacity(self.roots.len() + producer.roots.len());
        roots.extend_from_slice(&self.roots);
        roots.extend(producer.roots.iter().skip(1).map(|root| Root {
            utilization: root.utilization * utilization,
            emitted: root.emitted * emitted,
        }));
        let mut uses = Vec::with_capacity(self.uses.len() + producer.uses.len());
        for (node, own, of_producer) in self.union(producer).filter(|&(node, ..)| node != at) {
            let mut made = match own {
                Some(own) => own.clone(),
                None => Use::new(node, InlineList::new(), false),
            };
            if let Some(one) = of_producer {
                made.is_strided |= one.is_strided || used.is_strided;
                for &root in &one.roots {
                    if root == 0 {
                        used.roots.iter().for_each(|&root| made.add_root(root));
                    } else {
                        made.add_root(first + root - 1);
                    }
                }
            }
            uses.push(made);
        }
        Self {
            uses,
            roots,
            flops: utilization.mul_add(producer.flops, self.flops),
            size: emitted.mul_add(producer.size, self.size),
            hero,
            chain: if self.chain == at { producer.chain } else { self.chain },
            has_reduction: self.has_reduction || producer.has_reduction,
            is_tileable: self.is_tileable && producer.is_tileable,
            is_fusion: true,
            has_transpose: self.has_transpose || producer.has_transpose,
            is_transpose: self.is_transpose,
            num_reductions: self.num_reductions + producer.num_reductions,
            shared_bytes: self.shared_bytes + producer.shared_bytes,
            num_moving: self.num_moving + producer.num_moving,
            updated: if self.updated == at { NONE } else { self.updated },
        }
    }
}
