//! The worklist of MLIR's greedy driver, in time proportional to the ops that are visited.
//!
//! The driver queues every op in pre-order and takes them from first to last. A modified op is
//! pushed on top of everything left, unless it is queued already; ops queued from the start count
//! as queued until they are taken. So the state is a cursor into the pre-order and a stack: an op
//! is queued if it is at or behind the cursor, or on the stack.
//!
//! Every op has one bit for each kind of greedy run: set if its visit may change something
//! (*dirty*, or marked). Ops that are not dirty are taken without a visit: blocks of 64 of them at
//! once, blocks of 64 such blocks, and so on. They still count as queued until then, which affects
//! the result. So a run that has nothing to do takes almost no time, whatever the size of the
//! program. This matters since there may be as many user priorities as values, with several runs
//! each.
//!
//! Source: MLIR's `GreedyPatternRewriteDriver`.

use crate::propagation::notices::{Action, Notice};
use crate::propagation::visit::RunMask;
use std::ops::Range;

/// No position.
const NOBODY: u32 = u32::MAX;

/// The bit of erased ops, which are neither marked nor queued.
const GONE: RunMask = 1 << 15;

/// Positions in a block that is skipped as a whole, and blocks in the next larger one.
const BLOCK: usize = 64;

/// The worklist over positions in pre-order.
#[derive(Clone)]
pub struct Queue {
    dirty: Vec<RunMask>,
    /// For each block of positions a superset of the bits of its positions, then the same for
    /// blocks of blocks, up to a level with a single block.
    blocks: Vec<Vec<RunMask>>,
    /// The first position that was not taken.
    cursor: usize,
    stack: Vec<u32>,
    on_stack: Vec<u64>,
    all_runs: RunMask,
}

impl Queue {
    /// A queue over `len` positions and `num_runs` kinds of runs; nothing is dirty.
    pub fn new(len: usize, num_runs: usize) -> Self {
        let all_runs = ((1u32 << num_runs) - 1) as RunMask;
        let larger = |&len: &usize| (len > 1).then(|| len.div_ceil(BLOCK));
        let lens = std::iter::successors(Some(len.div_ceil(BLOCK)), larger);
        Self {
            dirty: vec![0; len],
            blocks: lens.map(|len| vec![0; len]).collect(),
            cursor: len,
            stack: Vec::new(),
            on_stack: vec![0; len.div_ceil(64)],
            all_runs,
        }
    }
    /// Queues everything for a new run.
    pub fn restart(&mut self) {
        debug_assert!(self.stack.is_empty());
        self.cursor = 0;
    }
    /// Queues everything from `position` on.
    pub fn restart_at(&mut self, position: u32) {
        debug_assert!(self.stack.is_empty());
        self.cursor = position as usize;
    }
    /// Removes all marks and empties the queue.
    pub fn clear(&mut self) {
        self.dirty.fill(0);
        self.blocks.iter_mut().for_each(|level| level.fill(0));
        self.stack.clear();
        self.on_stack.fill(0);
        self.cursor = self.dirty.len();
    }
    /// Sets the cursor behind `position`, which counts as taken; the stack is empty.
    pub fn stand_at(&mut self, position: u32) {
        debug_assert!(self.stack.is_empty());
        self.cursor = position as usize + 1;
    }
    /// Takes the position on top of the stack, dirty or not.
    pub fn pop_stacked(&mut self) -> Option<u32> {
        let position = self.stack.pop()?;
        self.on_stack[position as usize / 64] &= !(1u64 << (position % 64));
        Some(position)
    }
    /// The kinds of runs in which a visit of `position` may change something.
    pub fn marks(&self, position: u32) -> RunMask {
        self.dirty[position as usize] & !GONE
    }
    /// Marks `position` in all kinds of runs.
    #[inline]
    pub fn mark(&mut self, position: u32) {
        let position = position as usize;
        if self.dirty[position] & GONE == 0 {
            self.dirty[position] = self.all_runs;
            if self.blocks[0][position / BLOCK] != self.all_runs {
                self.mark_blocks(position);
            }
        }
    }
    fn mark_blocks(&mut self, position: usize) {
        let mut block = position;
        for level in &mut self.blocks {
            block /= BLOCK;
            level[block] = self.all_runs;
        }
    }
    /// Marks and queues the ops of `notices` for a change made by a visit of the op at `by`. If no
    /// visit made the change, ops are only marked.
    #[inline]
    pub fn notify(&mut self, notices: &[Notice], by: Option<u32>) {
        let (is_queueing, by) = (by.is_some(), by.unwrap_or(NOBODY));
        let mut is_passed_over = false;
        for &Notice { position, action } in notices {
            match action {
                Action::MarkAndQueue => {
                    is_passed_over = self.is_gone(position) || position == by;
                    self.mark(position);
                    if is_queueing && !is_passed_over {
                        self.push(position);
                    }
                }
                Action::Mark => self.mark(position),
                Action::QueueWithPrevious if is_passed_over => {}
                Action::QueueWithPrevious | Action::Queue => {
                    if is_queueing {
                        self.push(position);
                    }
                }
            }
        }
    }
    #[inline]
    fn is_gone(&self, position: u32) -> bool {
        self.dirty[position as usize] & GONE != 0
    }
    /// Removes the op at `position`, which was erased.
    pub fn remove(&mut self, position: u32) {
        self.dirty[position as usize] = GONE;
    }
    /// Clears the marks of `position` in `runs`: a visit of it changes nothing until it is marked
    /// again.
    #[inline]
    pub fn unmark(&mut self, position: u32, runs: RunMask) {
        self.dirty[position as usize] &= !runs | GONE;
    }
    /// Pushes `position` on the stack unless it is queued.
    #[inline]
    pub fn push(&mut self, position: u32) {
        if position as usize >= self.cursor {
            return;
        }
        let (word, bit) = (position as usize / 64, 1u64 << (position % 64));
        if self.on_stack[word] & bit == 0 {
            self.on_stack[word] |= bit;
            self.stack.push(position);
        }
    }
    /// Takes the next position that is dirty in one of the runs `run`, and all positions before it.
    #[inline]
    pub fn pop(&mut self, run: RunMask) -> Option<u32> {
        while let Some(position) = self.stack.pop() {
            self.on_stack[position as usize / 64] &= !(1u64 << (position % 64));
            if self.dirty[position as usize] & run != 0 {
                return Some(position);
            }
        }
        let next = self.next_dirty(self.cursor, run);
        self.cursor = next.map_or(self.dirty.len(), |position| position + 1);
        next.map(|position| position as u32)
    }

    #[inline]
    fn next_dirty(&mut self, mut from: usize, run: RunMask) -> Option<usize> {
        while from % BLOCK != 0 {
            if *self.dirty.get(from)? & run != 0 {
                return Some(from);
            }
            from += 1;
        }
        // At the start of a block: continue with the blocks beside it, then with those of the next
        // level.
        let mut block = from / BLOCK;
        for level in 0..self.blocks.len() {
            let len = self.blocks[level].len();
            let end = if len > 1 { block.next_multiple_of(BLOCK).min(len) } else { len };
            let found = self.first_dirty(level, block..end, run);
            if found.is_some() {
                return found;
            }
            block = block.div_ceil(BLOCK);
        }
        None
    }

    /// The first dirty position in these blocks of `level`.
    fn first_dirty(&mut self, level: usize, blocks: Range<usize>, run: RunMask) -> Option<usize> {
        for block in blocks {
            if self.blocks[level][block] & run == 0 {
                continue;
            }
            let inside = |len: usize| block * BLOCK..((block + 1) * BLOCK).min(len);
            let found = if level > 0 {
                self.first_dirty(level - 1, inside(self.blocks[level - 1].len()), run)
            } else {
                let mut inside = inside(self.dirty.len());
                inside.find(|&position| self.dirty[position] & run != 0)
            };
            if found.is_some() {
                return found;
            }
            self.blocks[level][block] &= !run;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_dirty_position_is_found_across_blocks() {
        for len in [1, 64, 65, 4096, 4097, 300_000] {
            for distance in [1, 7, 63, 64, 65, 4095, 4096, 5000] {
                let mut queue = Queue::new(len, 3);
                let dirty: Vec<u32> = (0..len as u32).rev().step_by(distance).collect();
                for &position in &dirty {
                    queue.mark(position);
                }
                for run in [2, 2, 4] {
                    queue.restart();
                    for &position in dirty.iter().rev() {
                        assert_eq!(queue.pop(run), Some(position));
                    }
                    assert_eq!(queue.pop(run), None);
                }
                for &position in &dirty {
                    queue.unmark(position, 2);
                }
                queue.restart();
                assert_eq!(queue.pop(2), None);
                queue.restart();
                assert_eq!(queue.pop(4), dirty.last().copied());
            }
        }
    }

    #[test]
    fn queued_ops_keep_their_place() {
        let mut queue = Queue::new(130, 2);
        for position in 0..130 {
            queue.mark(position);
        }
        queue.restart();
        assert_eq!(queue.pop(1), Some(0));
        queue.unmark(0, 3);
        queue.push(5); // still queued at its place
        assert_eq!(queue.pop(1), Some(1));
        queue.mark(0);
        queue.push(0);
        queue.push(1);
        queue.push(0);
        assert_eq!(queue.pop(1), Some(1));
        assert_eq!(queue.pop(1), Some(0));
        assert_eq!(queue.pop(1), Some(2));
        for position in 0..130 {
            queue.unmark(position, 1);
        }
        assert_eq!(queue.pop(1), None);
        queue.restart();
        queue.mark(129);
        assert_eq!(queue.pop(1), Some(129));
        assert_eq!(queue.pop(1), None);
        queue.restart();
        assert_eq!(queue.pop(2), Some(0));
    }
}
