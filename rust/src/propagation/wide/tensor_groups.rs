//! Groups of tensors of a wide op that a visit cannot tell apart: those with the same mapping and the same
//! sharding.

use crate::index::ShardingId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The tensors of a component of a wide op, grouped by mapping and sharding.
#[derive(Default)]
pub struct TensorGroups {
    groups: Vec<TensorGroup>,
    ids: FxHashMap<(u32, ShardingId), u32>,
    /// For each tensor its group.
    group_of: Vec<u32>,
    /// The groups that have tensors, in the order of their first tensors once [`TensorGroups::sort`] ran.
    pub present: Vec<u32>,
}

/// A group that has tensors, or had some once.
pub struct TensorGroup {
    /// The first tensor that has the mapping.
    pub mapping: u32,
    /// The sharding.
    pub sharding: ShardingId,
    is_present: bool,
    /// Tensors that are in the group, and some that were in it once; the first one is the smallest.
    tensors: BinaryHeap<Reverse<u32>>,
}

impl TensorGroups {
    /// Groups of `num_tensors` tensors, none of which was added yet.
    pub fn new(num_tensors: usize) -> Self {
        Self { group_of: vec![u32::MAX; num_tensors], ..Self::default() }
    }
    /// The group of that number.
    pub fn group(&self, id: u32) -> &TensorGroup {
        &self.groups[id as usize]
    }
    /// The sharding of each tensor.
    pub fn shardings(&self) -> impl Iterator<Item = ShardingId> + '_ {
        self.group_of.iter().map(|&id| self.group(id).sharding)
    }
    /// Notes that the tensor, whose mapping is that of tensor `mapping`, has `sharding` now.
    pub fn put(&mut self, tensor: u32, mapping: u32, sharding: ShardingId) {
        let next = self.groups.len() as u32;
        let id = *self.ids.entry((mapping, sharding)).or_insert(next);
        if id == next {
            let tensors = BinaryHeap::new();
            self.groups.push(TensorGroup { mapping, sharding, is_present: false, tensors });
        }
        if self.group_of[tensor as usize] == id {
            return;
        }
        self.group_of[tensor as usize] = id;
        let group = &mut self.groups[id as usize];
        group.tensors.push(Reverse(tensor));
        if !group.is_present {
            group.is_present = true;
            self.present.push(id);
        }
    }
    /// Finds the first tensor of each group, and puts the groups in the order of those.
    pub fn sort(&mut self) {
        let Self { groups, group_of, present, .. } = self;
        present.retain(|&id| {
            let group = &mut groups[id as usize];
            while group.tensors.peek().is_some_and(|first| group_of[first.0 as usize] != id) {
                group.tensors.pop();
            }
            group.is_present = !group.tensors.is_empty();
            group.is_present
        });
        let mut present = std::mem::take(present);
        present.sort_unstable_by_key(|&id| self.first(id));
        self.present = present;
    }
    /// The first tensor in group `id`, once [`TensorGroups::sort`] ran.
    pub fn first(&self, id: u32) -> u32 {
        self.groups[id as usize].tensors.peek().map_or(0, |first| first.0)
    }
    /// The tensors in group `id`.
    pub fn tensors(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let tensors = self.groups[id as usize].tensors.iter().map(|tensor| tensor.0);
        tensors.filter(move |&tensor| self.group_of[tensor as usize] == id)
    }
}
