//! Placements: which shard of a tensor each device holds, in digits of its position.

use super::digits::{digits_of, number_at, total_size, Cuts, Digit};
use crate::layout::ceil_div;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;

/// How the elements of a tensor lie on devices: for each dim the digits that number its shards, major to
/// minor; and the digits over which values have yet to be reduced.
///
/// A dim of size `n` over `k` shards is cut into pieces of `ceil(n / k)`; the last ones may be shorter, and
/// what they lack is padding.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Placement {
    /// Which order of devices the digits are of, see [`super::devices::Devices`]; 0 where there are none.
    pub order: u32,
    /// For each dim its digits, major to minor.
    pub dims: Vec<Vec<Digit>>,
    /// Devices that differ in these digits hold terms of a reduction.
    pub partial: Vec<Digit>,
}

impl Placement {
    /// Everything on every device.
    pub fn replicated(rank: usize) -> Self {
        Self { order: 0, dims: vec![Vec::new(); rank], partial: Vec::new() }
    }
    /// What `sharding` says on `mesh`, whose devices are in this order.
    pub fn of(sharding: &TensorSharding, mesh: &Mesh, order: u32) -> Self {
        let placement = Self {
            order,
            dims: sharding.dims.iter().map(|dim| digits_of(&dim.axes, mesh)).collect(),
            partial: digits_of(&sharding.unreduced, mesh),
        };
        placement.in_any_order()
    }
    /// The placement; in order 0 if it has no digits.
    fn in_any_order(self) -> Self {
        let order = if self.is_replicated() { 0 } else { self.order };
        Self { order, ..self }
    }
    /// How many shards `dim` has.
    pub fn num_shards(&self, dim: usize) -> i64 {
        total_size(&self.dims[dim])
    }
    /// Whether every device holds all of it.
    pub fn is_replicated(&self) -> bool {
        self.partial.is_empty() && self.dims.iter().all(Vec::is_empty)
    }
    /// The shape of a shard of a tensor of shape `shape`, padding included.
    pub fn local_shape(&self, shape: &[i64]) -> Vec<i64> {
        let dims = shape.iter().enumerate();
        dims.map(|(dim, &size)| ceil_div(size, self.num_shards(dim))).collect()
    }
    /// Whether shards of `dim`, of size `size`, have padding.
    pub fn is_padded(&self, dim: usize, size: i64) -> bool {
        size % self.num_shards(dim) != 0
    }
    /// The number of the shard of each dim that is held at `position`.
    pub fn shard_at(&self, position: i64) -> Vec<i64> {
        self.dims.iter().map(|digits| number_at(digits, position)).collect()
    }
    /// All digits.
    pub fn digits(&self) -> impl Iterator<Item = Digit> + Clone + '_ {
        self.dims.iter().flatten().chain(&self.partial).copied()
    }
    /// The placement with its digits cut by `cuts`.
    #[must_use]
    pub fn split(&self, cuts: &Cuts) -> Self {
        Self {
            order: self.order,
            dims: self.dims.iter().map(|digits| cuts.split(digits)).collect(),
            partial: cuts.split(&self.partial),
        }
    }
    /// The placement with neighbouring digits merged that are one.
    #[must_use]
    pub fn merged(&self) -> Self {
        let merged = |digits: &Vec<Digit>| super::digits::merged(digits.iter().copied());
        let dims = self.dims.iter().map(merged).collect();
        Self { order: self.order, dims, partial: merged(&self.partial) }.in_any_order()
    }
}

/// Placements by number: equal ones have equal numbers.
#[derive(Debug, Default)]
pub struct Placements {
    rows: Vec<Placement>,
    ids: FxHashMap<Placement, PlacementId>,
}

/// The number of a placement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PlacementId(u32);

impl PlacementId {
    /// The placement that was seen first.
    pub const FIRST: Self = Self(0);
}

impl Placements {
    /// The number of `placement`, new if it was never seen.
    pub fn intern(&mut self, placement: Placement) -> PlacementId {
        if let Some(&id) = self.ids.get(&placement) {
            return id;
        }
        let id = PlacementId(self.rows.len() as u32);
        self.rows.push(placement.clone());
        self.ids.insert(placement, id);
        id
    }
    /// The number of the placement in which every device has all of a tensor of `rank`.
    pub fn replicated(&mut self, rank: usize) -> PlacementId {
        self.intern(Placement::replicated(rank))
    }
}

impl std::ops::Index<PlacementId> for Placements {
    type Output = Placement;
    fn index(&self, id: PlacementId) -> &Placement {
        &self.rows[id.0 as usize]
    }
}
