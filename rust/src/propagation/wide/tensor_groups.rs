//! The different pairs of mapping and sharding among the tensors of a wide op.

use crate::index::ShardingId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The tensors of a part of a wide op by the pair of mapping and sharding that they have.
#[derive(Default)]
pub struct Pairs {
    pairs: Vec<Pair>,
    ids: FxHashMap<(u32, ShardingId), u32>,
    /// For each tensor its pair.
    pair_of: Vec<u32>,
    /// The pairs that tensors have, in the order of their first tensors once [`Pairs::sort`] ran.
    pub present: Vec<u32>,
}

/// A pair that some tensors have, or had once.
pub struct Pair {
    /// The first tensor that has the mapping.
    pub mapping: u32,
    /// The sharding.
    pub sharding: ShardingId,
    is_present: bool,
    /// Tensors that have the pair, and some that had it once; the first one is the smallest.
    tensors: BinaryHeap<Reverse<u32>>,
}

impl Pairs {
    /// Of as many tensors, none of which was looked at yet.
    pub fn new(num_tensors: usize) -> Self {
        Self { pair_of: vec![u32::MAX; num_tensors], ..Self::default() }
    }
    /// The pair of that number.
    pub fn pair(&self, id: u32) -> &Pair {
        &self.pairs[id as usize]
    }
    /// The sharding of each tensor.
    pub fn shardings(&self) -> impl Iterator<Item = ShardingId> + '_ {
        self.pair_of.iter().map(|&id| self.pair(id).sharding)
    }
    /// Notes that the tensor, whose mapping is that of tensor `mapping`, has `sharding` now.
    pub fn put(&mut self, tensor: u32, mapping: u32, sharding: ShardingId) {
        let next = self.pairs.len() as u32;
        let id = *self.ids.entry((mapping, sharding)).or_insert(next);
        if id == next {
            let tensors = BinaryHeap::new();
            self.pairs.push(Pair { mapping, sharding, is_present: false, tensors });
        }
        if self.pair_of[tensor as usize] == id {
            return;
        }
        self.pair_of[tensor as usize] = id;
        let pair = &mut self.pairs[id as usize];
        pair.tensors.push(Reverse(tensor));
        if !pair.is_present {
            pair.is_present = true;
            self.present.push(id);
        }
    }
    /// Finds the first tensor of each pair, and puts the pairs in the order of those.
    pub fn sort(&mut self) {
        let Self { pairs, pair_of, present, .. } = self;
        present.retain(|&id| {
            let pair = &mut pairs[id as usize];
            while pair.tensors.peek().is_some_and(|first| pair_of[first.0 as usize] != id) {
                pair.tensors.pop();
            }
            pair.is_present = !pair.tensors.is_empty();
            pair.is_present
        });
        let mut present = std::mem::take(present);
        present.sort_unstable_by_key(|&id| self.first(id));
        self.present = present;
    }
    /// The first tensor that has pair `id`, once [`Pairs::sort`] ran.
    pub fn first(&self, id: u32) -> u32 {
        self.pairs[id as usize].tensors.peek().map_or(0, |first| first.0)
    }
    /// The tensors that have pair `id`.
    pub fn tensors(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let tensors = self.pairs[id as usize].tensors.iter().map(|tensor| tensor.0);
        tensors.filter(move |&tensor| self.pair_of[tensor as usize] == id)
    }
}
