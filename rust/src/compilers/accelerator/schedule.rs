//! The order in which the ops of a block run.
//!
//! The peak memory depends on it: a gradient that is used at the end of the step is live until then. A compiler
//! may choose the order. XLA visits the operands of the results depth first, those with more dependents before
//! others; here that order and the program's own are both tried, and the one that needs less memory counts.
//!
//! Source: XLA's `DFSMemoryScheduler`.

use crate::index::{BlockId, Id, OpId};
use crate::ir::{Program, ValueDef};
use crate::work::tensors::Tensors;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// An order of the ops of each block.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The blocks whose order is not that of the program.
    orders: FxHashMap<BlockId, Vec<OpId>>,
}

impl Schedule {
    /// The program order.
    pub fn of_the_program() -> Self {
        Self::default()
    }
    /// A depth-first order of the bodies of `functions`, given by their ops, and of the blocks nested in them.
    pub fn depth_first(program: &Program, tensors: &mut Tensors<'_>, functions: &[OpId]) -> Self {
        let mut orders = FxHashMap::default();
        let places = vec![NOWHERE; program.num_op_ids()];
        let mut needs = Needs { places, ..Needs::default() };
        for &func in functions {
            for op in std::iter::once(func).chain(program.pre_order(func).skip(1)) {
                for region in program.op_regions(op) {
                    for block in program.region_blocks(region) {
                        orders.insert(block, needs.depth_first(program, tensors, block));
                    }
                }
            }
        }
        Self { orders }
    }
    /// The ops of `block` in the order in which they run.
    pub fn ops(&self, program: &Program, block: BlockId) -> Cow<'_, [OpId]> {
        match self.orders.get(&block) {
            Some(order) => Cow::Borrowed(order.as_slice()),
            None => program.block_ops(block).collect(),
        }
    }
}

/// The index of an op that is not in the block.
const NOWHERE: u32 = u32::MAX;

/// The dependences among the ops of a block, by their indices in it.
#[derive(Default)]
struct Needs {
    ops: Vec<OpId>,
    /// The index of each op of the program in the block; [`NOWHERE`] if it is not in it.
    places: Vec<u32>,
    /// The indices of the ops that each op depends on, in the order in which they are visited; all lists concatenated.
    needed: Vec<u32>,
    /// For each op where its list begins in `needed`; then the end of the last list.
    starts: Vec<usize>,
}

impl Needs {
    fn depth_first(
        &mut self,
        program: &Program,
        tensors: &mut Tensors<'_>,
        block: BlockId,
    ) -> Vec<OpId> {
        self.read(program, block);
        self.sort(program, tensors);
        let mut order = Vec::with_capacity(self.ops.len());
        let mut is_seen = vec![false; self.ops.len()];
        // From the terminator first, so that its operands determine the order; then ops without dependents.
        let last = (self.ops.len() as u32).saturating_sub(1);
        let mut stack: Vec<(u32, usize)> = Vec::new();
        for root in std::iter::once(last).chain(0..last) {
            if is_seen.get(root as usize).is_none_or(|&seen| seen) {
                continue;
            }
            is_seen[root as usize] = true;
            stack.push((root, self.starts[root as usize]));
            while let Some((place, next)) = stack.last_mut() {
                if *next == self.starts[*place as usize + 1] {
                    order.push(self.ops[*place as usize]);
                    stack.pop();
                    continue;
                }
                let needed = self.needed[*next];
                *next += 1;
                if !std::mem::replace(&mut is_seen[needed as usize], true) {
                    stack.push((needed, self.starts[needed as usize]));
                }
            }
        }
        // The terminator stays the last.
        if let Some(&terminator) = self.ops.last() {
            order.retain(|&op| op != terminator);
            order.push(terminator);
        }
        for op in &self.ops {
            self.places[op.index()] = NOWHERE;
        }
        order
    }
    fn read(&mut self, program: &Program, block: BlockId) {
        self.ops.clear();
        self.needed.clear();
        self.starts.clear();
        self.ops.extend(program.block_ops(block));
        for (&op, place) in self.ops.iter().zip(0..) {
            self.places[op.index()] = place;
        }
        let mut own: Vec<u32> = Vec::new();
        for &op in &self.ops {
            self.starts.push(self.needed.len());
            own.clear();
            let mut add = |inner: OpId| {
                for value in program.operands(inner) {
                    if let ValueDef::Result(def) = program.def(value) {
                        let place = self.places[def.index()];
                        if place != NOWHERE && def != op {
                            own.push(place);
                        }
                    }
                }
            };
            add(op);
            if program.num_regions(op) > 0 {
                program.pre_order(op).skip(1).for_each(add);
            }
            own.sort_unstable();
            own.dedup();
            self.needed.extend_from_slice(&own);
        }
        self.starts.push(self.needed.len());
    }
    /// Sorts the ops that each op depends on: first those with more other users, then those whose results,
    /// with those of all ops they depend on, have more bytes.
    fn sort(&mut self, program: &Program, tensors: &mut Tensors<'_>) {
        let count = self.ops.len();
        let mut users = vec![0_u64; count];
        for &place in &self.needed {
            users[place as usize] += 1;
        }
        let mut weights: Vec<(u64, u128)> = Vec::with_capacity(count);
        for (place, &op) in self.ops.iter().enumerate() {
            let own: u128 = program.op_results(op).map(|value| tensors.bytes(value)).sum();
            let mut weight = (users[place].saturating_sub(1), own);
            for &needed in &self.needed[self.starts[place]..self.starts[place + 1]] {
                let (extra, bytes) = weights.get(needed as usize).copied().unwrap_or_default();
                weight = (weight.0.saturating_add(extra), weight.1.saturating_add(bytes));
            }
            weights.push(weight);
        }
        for place in 0..count {
            let needed = &mut self.needed[self.starts[place]..self.starts[place + 1]];
            needed.sort_by_key(|&place| std::cmp::Reverse(weights[place as usize]));
        }
    }
}
