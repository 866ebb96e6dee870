//! Tensor shardings, and the table that makes each one a `u32`.
//!
//! `#sdy.sharding<@mesh, [{"x", "y":(1)2}, {?}p1], replicated={"z"}, unreduced={"w"}>` shards dim 0
//! over `x` and then over the first half of `y`, closed; leaves dim 1 open for propagation from user
//! priority 1 on; replicates over `z`, which may shard no dim; and is unreduced over `w`, which still has to be
//! summed over. `unreduced=max{"w"}` names another reduction.
//!
//! Source: Shardy's sharding representation.

use crate::axis::{push_or_merge, sort_and_merge, AxisRef};
use crate::bitset::BitSet;
use crate::index::{AxisId, Id, IdVec, MeshId, ShardingId};
use crate::mesh::Mesh;
use crate::shardy::{Change, Version};
use rustc_hash::FxHashMap;

/// The axes that shard one dim, major to minor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DimSharding {
    /// The axes, major to minor.
    pub axes: Vec<AxisRef>,
    /// Whether propagation may not add axes.
    pub is_closed: bool,
    /// The user priority `p<n>`, where one is given.
    pub priority: Option<i64>,
}

impl DimSharding {
    /// No axes, closed or open.
    pub const fn empty(is_closed: bool) -> Self {
        Self { axes: Vec::new(), is_closed, priority: None }
    }
    /// The user priority; 0 where none is given.
    pub fn priority_or_default(&self) -> i64 {
        self.priority.unwrap_or(0)
    }
    /// A copy without priority.
    #[must_use]
    pub fn without_priority(&self) -> Self {
        Self { axes: self.axes.clone(), is_closed: self.is_closed, priority: None }
    }
}

/// How values are reduced over unreduced axes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ReductionOp {
    /// Their sum.
    #[default]
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

impl ReductionOp {
    /// All reductions, in the order of Shardy's enumeration.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Max, Self::Min];

    /// Its keyword: `sum`, `max` or `min`.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
        }
    }
    /// The reduction with this keyword.
    pub fn of_keyword(keyword: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.keyword() == keyword)
    }
}

/// The sharding of a tensor over a mesh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorSharding {
    /// The mesh, by name or inlined.
    pub mesh: MeshId,
    /// One entry a dim.
    pub dims: Vec<DimSharding>,
    /// Axes that may not shard any dim, in mesh order.
    pub replicated: Vec<AxisRef>,
    /// Axes over which the value still has to be reduced, in mesh order.
    pub unreduced: Vec<AxisRef>,
    /// How the value has to be reduced over the unreduced axes. It is kept when a pass removes the
    /// last of these axes; the text of a sharding without unreduced axes does not show it.
    pub reduction_op: ReductionOp,
}

impl TensorSharding {
    /// No axes anywhere, every dim closed or every dim open.
    pub fn fully_replicated(mesh: MeshId, rank: usize, is_closed: bool) -> Self {
        Self {
            mesh,
            dims: vec![DimSharding::empty(is_closed); rank],
            replicated: Vec::new(),
            unreduced: Vec::new(),
            reduction_op: ReductionOp::Sum,
        }
    }
    /// Whether no dim is sharded and no axis is replicated or unreduced.
    pub fn has_no_axes(&self) -> bool {
        self.dims.iter().all(|dim| dim.axes.is_empty())
            && self.replicated.is_empty()
            && self.unreduced.is_empty()
    }
    /// Whether no dim is sharded; replicated and unreduced axes do not count.
    pub fn is_fully_replicated(&self) -> bool {
        self.dims.iter().all(|dim| dim.axes.is_empty())
    }
    /// Whether the two shardings are equivalent as this version of Shardy defines it: equal axes in
    /// every dim over the same mesh, or no axes in any dim, and, in newer versions, equal unreduced
    /// axes.
    pub fn is_equivalent(&self, other: Option<&Self>, shardy: Version) -> bool {
        if !shardy.has(Change::UnreducedEquivalence) {
            return self.shards_alike(other);
        }
        match other {
            None => self.is_fully_replicated() && self.unreduced.is_empty(),
            Some(other) => {
                self.unreduced == other.unreduced
                    && (self.mesh == other.mesh || self.unreduced.is_empty())
                    && self.shards_alike(Some(other))
            }
        }
    }
    /// Whether the two shardings have the same axes in every dim over the same mesh, or no axes in any dim.
    pub fn shards_alike(&self, other: Option<&Self>) -> bool {
        if self.is_fully_replicated() {
            return other.is_none_or(Self::is_fully_replicated);
        }
        other.is_some_and(|other| {
            self.mesh == other.mesh
                && self.dims.len() == other.dims.len()
                && self.dims.iter().zip(&other.dims).all(|(a, b)| a.axes == b.axes)
        })
    }
    /// A copy with every dim closed, and without replicated axes, which have no effect then.
    #[must_use]
    pub fn closed(&self) -> Self {
        let close = |dim: &DimSharding| DimSharding { is_closed: true, ..dim.clone() };
        let dims = self.dims.iter().map(close).collect();
        Self {
            mesh: self.mesh,
            dims,
            replicated: Vec::new(),
            unreduced: self.unreduced.clone(),
            reduction_op: self.reduction_op,
        }
    }
    /// A copy that keeps the invariants of the representation: replicated and unreduced axes in the
    /// order of `mesh`, consecutive sub-axes merged, and sub-axes of full size replaced by their
    /// axis. Every axis has to be part of an axis of `mesh`.
    #[must_use]
    pub fn canonical(&self, mesh: &Mesh) -> Self {
        let widest = |axis: &AxisRef| {
            let is_whole = axis.size(mesh) == mesh.axis_size(axis.axis);
            if is_whole {
                AxisRef::full(axis.axis)
            } else {
                *axis
            }
        };
        let mut canonical = self.clone();
        for dim in &mut canonical.dims {
            for axis in std::mem::take(&mut dim.axes) {
                push_or_merge(&mut dim.axes, widest(&axis), mesh);
            }
        }
        for axes in [&mut canonical.replicated, &mut canonical.unreduced] {
            *axes = axes.iter().map(widest).collect();
            sort_and_merge(axes, mesh);
        }
        canonical
    }
    /// A copy with the axes of each dim that `keep` returns, and the replicated and unreduced axes
    /// for which `keep_axis` is true.
    fn pruned(
        &self,
        keep: impl Fn(&DimSharding) -> Vec<AxisRef>,
        keep_axis: impl Fn(&AxisRef) -> bool,
    ) -> Self {
        let dims = self.dims.iter().map(|dim| DimSharding { axes: keep(dim), ..dim.clone() });
        let filtered = |axes: &[AxisRef]| axes.iter().copied().filter(&keep_axis).collect();
        Self {
            mesh: self.mesh,
            dims: dims.collect(),
            replicated: filtered(&self.replicated),
            unreduced: filtered(&self.unreduced),
            reduction_op: self.reduction_op,
        }
    }
    /// The sharding inside a manual computation over the axes `manual`, which are the leading axes
    /// of each dim.
    #[must_use]
    pub fn without_manual_axes(&self, manual: &BitSet<AxisId>) -> Self {
        let is_manual = |axis: &AxisRef| manual.contains(axis.axis);
        self.pruned(
            |dim| dim.axes[dim.axes.partition_point(is_manual)..].to_vec(),
            |axis| !is_manual(axis),
        )
    }
    /// The sharding outside a manual computation over the axes `manual`, where `inner` is the
    /// sharding inside: in each dim the manual axes of `self`, then the axes of `inner`, closed if
    /// `inner` is closed. As in the reference, the reduction over unreduced axes becomes the sum.
    #[must_use]
    pub fn with_free_axes_of(&self, inner: &Self, manual: &BitSet<AxisId>) -> Self {
        let is_manual = |axis: &AxisRef| manual.contains(axis.axis);
        let dims = self.dims.iter().zip(&inner.dims).map(|(outer, inner)| {
            let manual = &outer.axes[..outer.axes.partition_point(is_manual)];
            DimSharding { axes: [manual, &inner.axes].concat(), ..inner.clone() }
        });
        Self {
            mesh: inner.mesh,
            dims: dims.collect(),
            replicated: self.replicated.clone(),
            unreduced: self.unreduced.clone(),
            reduction_op: ReductionOp::Sum,
        }
    }
    /// A copy as it is parsed back from its text: the reduction is the sum if there are no
    /// unreduced axes.
    #[must_use]
    pub fn as_in_text(&self) -> Self {
        let reduction_op =
            if self.unreduced.is_empty() { ReductionOp::Sum } else { self.reduction_op };
        Self { reduction_op, ..self.clone() }
    }
    /// Every axis ref: dims in order, then replicated, then unreduced.
    pub fn axis_refs(&self) -> impl Iterator<Item = AxisRef> + '_ {
        let dims = self.dims.iter().flat_map(|dim| &dim.axes);
        dims.chain(&self.replicated).chain(&self.unreduced).copied()
    }
}

/// Hash-conses shardings: equal shardings have equal ids.
#[derive(Clone, Debug, Default)]
pub struct ShardingTable {
    shardings: IdVec<ShardingId, TensorSharding>,
    ids: FxHashMap<TensorSharding, ShardingId>,
}

impl ShardingTable {
    /// The id of `sharding`, new if it was never seen.
    pub fn intern(&mut self, sharding: TensorSharding) -> ShardingId {
        if let Some(&id) = self.ids.get(&sharding) {
            return id;
        }
        let id = self.shardings.push(sharding.clone());
        self.ids.insert(sharding, id);
        id
    }
    /// How many different shardings there are.
    pub fn len(&self) -> usize {
        self.shardings.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shardings.is_empty()
    }
    /// The sharding of `id`, `None` for the absent id.
    pub fn get(&self, id: ShardingId) -> Option<&TensorSharding> {
        id.get().map(|id| &self.shardings[id])
    }
    /// All ids in order of first appearance.
    pub fn ids(&self) -> impl Iterator<Item = ShardingId> + use<> {
        (0..self.shardings.len()).map(ShardingId::from_index)
    }
}

impl std::ops::Index<ShardingId> for ShardingTable {
    type Output = TensorSharding;
    fn index(&self, id: ShardingId) -> &TensorSharding {
        &self.shardings[id]
    }
}
