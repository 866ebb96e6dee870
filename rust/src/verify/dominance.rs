//! The dominance relation between the blocks of a region.
//!
//! Takes linear time in the blocks and their successors if the control flow is reducible, and else
//! up to quadratic time.
//!
//! Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm".

use crate::index::{BlockId, OpId, RegionId};
use crate::ir::Program;
use rustc_hash::{FxHashMap, FxHashSet};

/// The successors of each op that has some.
pub type Successors = FxHashMap<OpId, Vec<BlockId>>;

/// The successor blocks of each op in `list`.
pub fn by_op(list: &[(OpId, BlockId)]) -> Successors {
    let mut successors = Successors::default();
    for &(op, block) in list {
        successors.entry(op).or_default().push(block);
    }
    successors
}

/// The dominators of the blocks of a region, which are numbered in reverse post-order: a block
/// comes after its dominators.
pub struct Dominance {
    /// The numbers of the blocks that are reachable from the entry, which is 0.
    numbers: FxHashMap<BlockId, usize>,
    /// For each block, by its number, the range of the blocks that it dominates in a pre-order walk
    /// of the dominator tree; it is the first of these.
    ranges: Vec<(usize, usize)>,
    entry_is_jumped_to: bool,
}

impl Dominance {
    /// The dominators of the blocks of `region`.
    pub fn new(program: &Program, region: RegionId, successors: &Successors) -> Self {
        let entry = program.region_entry(region);
        let after = |block: BlockId| -> &[BlockId] {
            let last = program.last_op(block).get();
            last.and_then(|op| successors.get(&op)).map_or(&[], Vec::as_slice)
        };
        let order = from_entry(entry, &after);
        let numbers: FxHashMap<BlockId, usize> =
            order.iter().enumerate().map(|(number, &block)| (block, number)).collect();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        for (number, &block) in order.iter().enumerate() {
            for next in after(block) {
                before[numbers[next]].push(number);
            }
        }
        let jumps = || program.region_blocks(region).flat_map(|block| after(block).iter().copied());
        let entry_is_jumped_to = jumps().any(|block| block == entry);
        Self { ranges: ranges_of(&closest_of(&before)), numbers, entry_is_jumped_to }
    }
    /// Whether a block of the region has the entry block as its successor.
    pub fn entry_is_jumped_to(&self) -> bool {
        self.entry_is_jumped_to
    }
    /// Whether `a` dominates `b`, which it does if `b` is not reachable.
    pub fn holds(&self, a: BlockId, b: BlockId) -> bool {
        let Some(&inner) = self.numbers.get(&b) else { return true };
        let Some(&outer) = self.numbers.get(&a) else { return false };
        let (first, end) = self.ranges[outer];
        (first..end).contains(&self.ranges[inner].0)
    }
}

/// For each block the pre-order range of the blocks that it dominates, given the immediate
/// dominators, which have lower numbers.
fn ranges_of(closest: &[usize]) -> Vec<(usize, usize)> {
    let mut sizes = vec![1; closest.len()];
    for block in (1..closest.len()).rev() {
        sizes[closest[block]] += sizes[block];
    }
    // The pre-order number of the next child of each block in the dominator tree.
    let mut next = vec![1; closest.len()];
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(closest.len());
    for (block, &size) in sizes.iter().enumerate() {
        let by = closest[block];
        let place = if block == 0 { 0 } else { next[by] };
        next[by] = place + size;
        next[block] = place + 1;
        ranges.push((place, place + size));
    }
    ranges
}

/// The blocks reachable from `entry`, in reverse post-order.
fn from_entry<'s>(entry: BlockId, after: &impl Fn(BlockId) -> &'s [BlockId]) -> Vec<BlockId> {
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    let mut order = Vec::new();
    let mut open: Vec<(BlockId, usize)> = Vec::new();
    if entry.is_some() {
        seen.insert(entry);
        open.push((entry, 0));
    }
    while let Some((block, next)) = open.last_mut() {
        if let Some(&successor) = after(*block).get(*next) {
            *next += 1;
            if seen.insert(successor) {
                open.push((successor, 0));
            }
        } else {
            order.push(*block);
            open.pop();
        }
    }
    order.reverse();
    order
}

/// The immediate dominator of each block, given its predecessors.
fn closest_of(before: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut closest = vec![NONE; before.len()];
    if let Some(entry) = closest.first_mut() {
        *entry = 0;
    }
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for block in 1..before.len() {
            let mut found = NONE;
            for &from in &before[block] {
                if closest[from] == NONE {
                    continue;
                }
                found = if found == NONE { from } else { common(&closest, found, from) };
            }
            if closest[block] != found {
                closest[block] = found;
                is_changed = true;
            }
        }
    }
    closest
}

/// The closest common dominator of `a` and `b`.
fn common(closest: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = closest[a];
        } else {
            b = closest[b];
        }
    }
    a
}
