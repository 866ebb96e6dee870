//! Placements: the shard of a tensor that each device holds, by digits of its position.

use super::digits::{digits_of, total_size, Cuts, Digit};
use crate::axis::{axes_along, AxisRef};
use crate::index::MeshId;
use crate::layout::ceil_div;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, TensorSharding};
use rustc_hash::FxHashMap;

/// The sharding of a tensor by digits: for each dim the digits that number its shards, major to minor; and the digits over which
/// values are unreduced (partial).
///
/// A dim of size `n` over `k` shards is split into shards of `ceil(n / k)`; the last ones may have fewer elements,
/// and are padded.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Placement {
    /// The order of devices that the digits refer to, see [`super::devices::Devices`]; 0 where there are none.
    pub order: u32,
    /// For each dim its digits, major to minor.
    pub dims: Vec<Vec<Digit>>,
    /// Devices that differ only in these digits hold the partial results of a reduction.
    pub partial: Vec<Digit>,
}

impl Placement {
    /// The placement of a tensor that is replicated on all devices.
    pub fn replicated(rank: usize) -> Self {
        Self { order: 0, dims: vec![Vec::new(); rank], partial: Vec::new() }
    }
    /// The placement of `sharding` on `mesh`, whose devices are in this order.
    pub fn of(sharding: &TensorSharding, mesh: &Mesh, order: u32) -> Self {
        let placement = Self {
            order,
            dims: sharding.dims.iter().map(|dim| digits_of(&dim.axes, mesh)).collect(),
            partial: digits_of(&sharding.unreduced, mesh),
        };
        placement.in_any_order()
    }
    /// The sharding over `mesh`, the mesh `id`, whose devices are in this order, without unreduced axes; `None` if shards are not
    /// along its axes.
    pub fn sharding(&self, id: MeshId, mesh: &Mesh) -> Option<TensorSharding> {
        let dim = |digits: &Vec<Digit>| {
            let axes: Option<Vec<Vec<AxisRef>>> =
                digits.iter().map(|digit| axes_along(digit.stride, digit.size, mesh)).collect();
            Some(DimSharding { axes: axes?.concat(), ..DimSharding::empty(true) })
        };
        let dims = self.dims.iter().map(dim).collect::<Option<_>>()?;
        Some(TensorSharding { dims, ..TensorSharding::fully_replicated(id, 0, true) })
    }
    /// The placement, with order 0 if it has no digits.
    fn in_any_order(self) -> Self {
        let order = if self.is_replicated() { 0 } else { self.order };
        Self { order, ..self }
    }
    /// The number of shards of `dim`.
    pub fn num_shards(&self, dim: usize) -> i64 {
        total_size(&self.dims[dim])
    }
    /// Whether every device holds the whole tensor.
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
    /// Whether any two of its digits, which are of one mesh, are disjoint, so that all pairs of their values occur equally often.
    pub fn is_sound(&self) -> bool {
        let mut digits: Vec<Digit> = self.digits().collect();
        digits.sort_unstable();
        digits.windows(2).all(|pair| pair[0].is_apart(pair[1]))
    }
    /// All digits.
    pub fn digits(&self) -> impl Iterator<Item = Digit> + Clone + '_ {
        self.dims.iter().flatten().chain(&self.partial).copied()
    }
    /// The placement with its digits split by `cuts`.
    #[must_use]
    pub fn split(&self, cuts: &Cuts) -> Self {
        Self {
            order: self.order,
            dims: self.dims.iter().map(|digits| cuts.split(digits)).collect(),
            partial: cuts.split(&self.partial),
        }
    }
    /// The placement with consecutive digits merged that form one digit.
    #[must_use]
    pub fn merged(&self) -> Self {
        let merged = |digits: &Vec<Digit>| super::digits::merged(digits.iter().copied());
        let dims = self.dims.iter().map(merged).collect();
        Self { order: self.order, dims, partial: merged(&self.partial) }.in_any_order()
    }
}

/// An interner of placements: equal ones have equal ids.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    rows: Vec<Placement>,
    ids: FxHashMap<Placement, PlacementId>,
    /// The replicated placements by rank, as far as they were asked for.
    replicated: Vec<Option<PlacementId>>,
}

/// The id of a placement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PlacementId(u32);

impl PlacementId {
    /// The id of the first placement.
    pub const FIRST: Self = Self(0);
}

impl Placements {
    /// The number of placements.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The id of `placement`, new if it is not interned yet.
    pub fn intern(&mut self, placement: Placement) -> PlacementId {
        if let Some(&id) = self.ids.get(&placement) {
            return id;
        }
        let id = PlacementId(self.rows.len() as u32);
        self.rows.push(placement.clone());
        self.ids.insert(placement, id);
        id
    }
    /// The id of the replicated placement of a tensor of rank `rank`.
    pub fn replicated(&mut self, rank: usize) -> PlacementId {
        if let Some(&Some(known)) = self.replicated.get(rank) {
            return known;
        }
        let id = self.intern(Placement::replicated(rank));
        if self.replicated.len() <= rank {
            self.replicated.resize(rank + 1, None);
        }
        self.replicated[rank] = Some(id);
        id
    }
}

impl std::ops::Index<PlacementId> for Placements {
    type Output = Placement;
    fn index(&self, id: PlacementId) -> &Placement {
        &self.rows[id.0 as usize]
    }
}
