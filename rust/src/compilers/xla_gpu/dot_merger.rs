//! Dots that share an operand, and of which none depends on another, become one: their other operands are concatenated, and each
//! result is a slice.
//!
//! Source: XLA's `DotMerger`.

use super::merged_dots::{MergedDots, Part};
use super::priority_fusion::is_run;
use super::priority_fusion::topological_order::TopologicalOrder;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::index::{BlockId, OpId, StrId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Of two dots that are merged, one has at most this many bytes of operands and results.
const MAX_BYTES: u128 = 32 << 20;

/// The most dots that one is not merged with before no others are tried. XLA tries all.
const MAX_MISSES: usize = 16;

/// The most dots that become one. XLA has no such limit.
const MAX_MERGED: usize = 256;

/// Kernels of dots concatenate operands whose sizes are multiples of this one. Source: XLA's `GemmFusion`.
const LEAST_FRAGMENT: u128 = 64;

/// An operand of a dot as it is shared: on which side it is, the value that is read, its batch, free and contracted dims, and the
/// element types of operands and result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Shared {
    value: ValueId,
    is_right: bool,
    dims: [Vec<usize>; 3],
    types: [StrId; 3],
}

/// A dot that is not merged yet, or of which others are a part.
struct Dot {
    op: OpId,
    /// The index of the operand that others share.
    index: usize,
    bytes: u128,
    /// Elements of the free dims of the other operand.
    free: u128,
}

/// The merged dots of `functions`, given by their ops.
pub fn merged_dots(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    functions: &[OpId],
) -> MergedDots {
    let mut merged = MergedDots::default();
    for &func in functions {
        for op in program.pre_order(func) {
            for region in program.op_regions(op) {
                let blocks: Vec<BlockId> = program.region_blocks(region).collect();
                for block in blocks.into_iter().filter(|&block| is_run(program, block)) {
                    merged.add(program, works, layouts, block);
                }
            }
        }
    }
    merged
}

impl MergedDots {
    /// Adds those of `block`.
    fn add(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        block: BlockId,
    ) {
        let mut classes: FxHashMap<Shared, Vec<Dot>> = FxHashMap::default();
        for op in program.block_ops(block).filter(|&op| program.kind(op) == OpKind::DotGeneral) {
            for index in [0, 1] {
                if let Some((shared, dot)) = layouts.shared(program, works, op, index) {
                    classes.entry(shared).or_default().push(dot);
                }
            }
        }
        classes.retain(|_, dots| dots.len() > 1);
        if classes.is_empty() {
            return;
        }
        let mut order = Dependences::new(program, block);
        let mut classes: Vec<_> = classes.into_iter().collect();
        classes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut done: FxHashSet<OpId> = FxHashSet::default();
        for (_, dots) in classes {
            let mut left: VecDeque<Dot> =
                dots.into_iter().filter(|dot| !done.contains(&dot.op)).collect();
            while let Some(mut first) = left.pop_front() {
                let mut group = vec![first.op];
                let mut members = FxHashSet::from_iter([first.op]);
                let mut sizes = vec![first.free];
                let mut misses = 0;
                while let Some(dot) = left.get(misses) {
                    if misses == MAX_MISSES || group.len() == MAX_MERGED {
                        break;
                    }
                    let takes = first.bytes.min(dot.bytes) <= MAX_BYTES
                        && order.merge(program, (first.op, &members), dot.op);
                    if !takes {
                        misses += 1;
                        continue;
                    }
                    group.push(dot.op);
                    members.insert(dot.op);
                    sizes.push(dot.free);
                    first.bytes = first.bytes.saturating_add(dot.bytes);
                    first.free = first.free.saturating_add(dot.free);
                    left.remove(misses);
                }
                if group.len() > 1 {
                    let is_concatenated = sizes.iter().any(|size| size % LEAST_FRAGMENT != 0);
                    for &op in &group {
                        done.insert(op);
                        let group = self.groups.len() as u32;
                        let (side, all) = (1 - first.index, first.free);
                        self.parts.insert(op, Part { group, side, all, is_concatenated });
                    }
                    self.groups.push(group);
                }
            }
        }
    }
}

impl Layouts {
    /// How others may share operand `index` of `op`, a dot.
    fn shared(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        index: usize,
    ) -> Option<(Shared, Dot)> {
        let is_swapped = self.is_swapped(program, op);
        let [read, other] = [index, 1 - index].map(|index| program.operand(op, index));
        let (mut value, mut dims) = (read, self.dims_of_dot(program, op, index)?);
        let [_, free, _] = self.dims_of_dot(program, op, 1 - index)?;
        if let Some(turned) = program.defining_op(value).and_then(|op| self.permuted(program, op)) {
            for dim in dims.iter_mut().flatten() {
                *dim = *turned.get(*dim)?;
            }
            value = program.operand(program.defining_op(value)?, 0);
        }
        let result = program.result(op, 0);
        let values = [read, other, result];
        let types = values.map(|value| works.tensors.of(value).element);
        let bytes = values.iter().map(|&value| works.tensors.bytes(value)).sum();
        let sizes = works.tensors.of(other).dims.as_deref()?;
        let has_free = !free.is_empty();
        let sizes = free.iter().map(|&dim| sizes.get(dim).map_or(0, |&size| size.max(0) as u128));
        let free: u128 = sizes.product();
        let is_right = (index == 1) != is_swapped;
        (has_free && free > 0)
            .then_some((Shared { value, is_right, dims, types }, Dot { op, index, bytes, free }))
    }
    /// Whether the transpose of the result of `op`, a dot, is computed in its place, with swapped operands.
    fn is_swapped(&mut self, program: &Program, op: OpId) -> bool {
        let mut value = program.result(op, 0);
        loop {
            let mut users = program.users(value);
            let (Some(user), None) = (users.next(), users.next()) else { return false };
            if !matches!(program.op_name(user), "stablehlo.all_reduce" | "stablehlo.reduce_scatter")
            {
                return self.swaps_product(program, user);
            }
            value = program.result(user, 0);
        }
    }
}

/// The dependences between the ops of a block, some of which are merged.
struct Dependences {
    order: TopologicalOrder,
    places: FxHashMap<OpId, u32>,
}

impl Dependences {
    fn new(program: &Program, block: BlockId) -> Self {
        let places: FxHashMap<OpId, u32> = program.block_ops(block).zip(0..).collect();
        let mut edges = Vec::new();
        for op in program.block_ops(block) {
            for inner in program.pre_order(op) {
                for value in program.operands(inner) {
                    let made_by = program.defining_op(value);
                    if let Some(&from) = made_by.and_then(|made_by| places.get(&made_by)) {
                        if from != places[&op] {
                            edges.push((from, places[&op]));
                        }
                    }
                }
            }
        }
        Self { order: TopologicalOrder::new(places.len(), &edges), places }
    }
    /// Merges `op` into the group of `first`, whose ops all come before it, unless it depends on one of them.
    fn merge(
        &mut self,
        program: &Program,
        (first, group): (OpId, &FxHashSet<OpId>),
        op: OpId,
    ) -> bool {
        let mut made_by = program.operands(op).filter_map(|value| program.defining_op(value));
        !made_by.any(|made_by| group.contains(&made_by))
            && self.order.merge(self.places[&first], self.places[&op])
    }
}
