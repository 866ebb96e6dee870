//! Plans halo exchanges: the slices of operand shards that each shard of a result needs.

use crate::axis::{total_size, AxisRef};
use crate::index::AxisId;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// The exchange along one sharded dim.
#[derive(Clone, Debug, Default)]
pub struct DimExchange {
    /// The dim.
    pub dim: usize,
    /// The number of elements of a shard of the result.
    pub size: i64,
    /// The largest number of shards to the left, and to the right, from which a shard of the result
    /// needs elements.
    pub hops: [i64; 2],
    /// Whether any shard needs elements of another shard.
    pub communicates: bool,
    /// Whether so few shards are needed that permutes can send them.
    pub is_near: bool,
    /// For a reshape, the axes of all dims of the result that the dim is split into, and the start
    /// of each shard of the result.
    pub split: Option<(Vec<AxisRef>, Vec<Start>)>,
}

/// The start of a shard of the result.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The shard of the operand; `None` if it starts after all elements.
    pub shard: Option<i64>,
    /// The index of the element in that shard.
    pub place: i64,
}

/// The exchanges along all sharded dims.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The shape of the operand, padded to multiples of its shards.
    pub padded: Vec<i64>,
    /// The manual axes, in mesh order.
    pub manual: Vec<AxisId>,
    /// The exchange along each sharded dim.
    pub dims: Vec<DimExchange>,
}

impl Plan {
    /// Whether any shard needs elements of another shard.
    pub fn communicates(&self) -> bool {
        self.dims.iter().any(|dim| dim.communicates)
    }
    /// Whether all exchanges can be done by permutes.
    pub fn is_near(&self) -> bool {
        self.dims.iter().all(|dim| dim.is_near)
    }
    /// The plan for an operand of `shape`, sharded by `sharding`; `exchange` is called with a dim,
    /// the number of its shards and their size.
    pub fn of(
        shape: &[i64],
        sharding: &TensorSharding,
        mesh: &Mesh,
        exchange: impl Fn(usize, i64, i64) -> DimExchange,
    ) -> Self {
        let mut plan = Self { padded: shape.to_vec(), ..Self::default() };
        for (dim, axes) in sharding.dims.iter().map(|dim| &dim.axes).enumerate() {
            let shards = total_size(axes, mesh);
            if shards <= 1 {
                continue;
            }
            plan.manual.extend(axes.iter().map(|axis| axis.axis));
            plan.padded[dim] = round_up(shape[dim], shards);
            plan.dims.push(exchange(dim, shards, plan.padded[dim] / shards));
        }
        plan.manual.sort_unstable();
        plan.manual.dedup();
        plan
    }
}

/// `size`, rounded up to a multiple of `shards`.
pub fn round_up(size: i64, shards: i64) -> i64 {
    ceil(size, shards) * shards
}

/// `size / shards`, rounded up.
pub fn ceil(size: i64, shards: i64) -> i64 {
    size / shards + i64::from(size % shards > 0)
}

/// A dim in shards, where the result has the operand's elements from `-low` on, with `dilation - 1`
/// other elements between them.
#[derive(Clone, Copy, Debug)]
pub struct Shifted {
    /// The dim.
    pub dim: usize,
    /// The number of shards.
    pub shards: i64,
    /// The size of a shard of the operand.
    pub shard: i64,
    /// The size of a shard of the result.
    pub result: i64,
    /// The number of elements inserted before the operand.
    pub low: i64,
    /// The distance in the result between neighbouring elements of the operand.
    pub dilation: i64,
    /// The size of the dim.
    pub size: i64,
}

impl Shifted {
    /// The exchange along the dim.
    pub fn exchange(self) -> DimExchange {
        let Self { dim, shards, shard, result, low, dilation, size } = self;
        let mut exchange =
            DimExchange { dim, size: result, is_near: true, ..DimExchange::default() };
        for target in 0..shards {
            let start = (target * result - low) / dilation;
            let (first, last) = (start.max(0), (start + result - 1).min(size - 1));
            let needed = (first <= last).then(|| (first / shard, last / shard));
            exchange.need(target, needed);
            exchange.communicates |= needed.is_none();
        }
        let [left, right] = exchange.hops;
        exchange.is_near = left + right + 1 < shards || (left <= 1 && right <= 1);
        exchange
    }
}

impl DimExchange {
    /// Records that shard `target` of the result needs a range of the operand's shards.
    pub fn need(&mut self, target: i64, needed: Option<(i64, i64)>) {
        let Some((first, last)) = needed else { return };
        self.communicates |= first != target || last != target;
        self.hops[0] = self.hops[0].max(target - first);
        self.hops[1] = self.hops[1].max(last - target);
    }
}
