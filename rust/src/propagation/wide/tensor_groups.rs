//! Groups of tensors of a wide op that have the same mapping and the same sharding, which a visit
//! cannot distinguish.

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
    /// The nonempty groups, in the order of their first tensors after [`TensorGroups::sort`].
    pub present: Vec<u32>,
}

/// A group that has tensors, or once had some.
pub struct TensorGroup {
    /// The first tensor that has the mapping.
    pub mapping: u32,
    /// The sharding.
    pub sharding: ShardingId,
    is_present: bool,
    /// The tensors of the group, and some that have left it; the smallest is first.
    tensors: BinaryHeap<Reverse<u32>>,
}

impl TensorGroups {
    /// Groups for `num_tensors` tensors, none of which is added yet.
    pub fn new(num_tensors: usize) -> Self {
        Self { group_of: vec![u32::MAX; num_tensors], ..Self::default() }
    }
    /// The group with this index.
    pub fn group(&self, id: u32) -> &TensorGroup {
        &self.groups[id as usize]
    }
    /// The sharding of each tensor.
    pub fn shardings(&self) -> impl Iterator<Item = ShardingId> + '_ {
        self.group_of.iter().map(|&id| self.group(id).sharding)
    }
    /// Records that the tensor, whose mapping is that of tensor `mapping`, has `sharding` now.
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
    /// Finds the first tensor of each group, and sorts the groups by it.
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
    /// The first tensor in group `id`, after [`TensorGroups::sort`].
    pub fn first(&self, id: u32) -> u32 {
        self.groups[id as usize].tensors.peek().map_or(0, |first| first.0)
    }
    /// The tensors in group `id`.
    pub fn tensors(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let tensors = self.groups[id as usize].tensors.iter().map(|tensor| tensor.0);
        tensors.filter(move |&tensor| self.group_of[tensor as usize] == id)
    }
}
