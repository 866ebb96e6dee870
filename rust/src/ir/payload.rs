//! The payload of ops that the engine treats specially: parsed attributes.

use crate::axis::AxisRef;
use crate::index::{FuncId, MeshId, StrId};
use crate::sharding::ReductionOp;

/// The directions in which something may propagate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Not at all.
    None,
    /// From operands to results.
    Forward,
    /// From results to operands.
    Backward,
    /// Both ways.
    Both,
}

/// The structured attributes of an op: those that are neither in its dictionary nor shardings.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// `func.func`
    Function(FuncId),
    /// `func.call`, `mpmd.call`, `mpmd.fragment_call`: the callee's symbol without `@`.
    Call(StrId),
    /// `sdy.mesh`
    Mesh(MeshId),
    /// `sdy.manual_computation`: the manual axes in order.
    ManualComputation(Vec<StrId>),
    /// `sdy.named_computation`: its name, and whether in-shardings and out-shardings are in the
    /// text, even if empty. They are printed too if its arguments or results have shardings.
    NamedComputation {
        /// The name.
        name: StrId,
        /// Whether `in_shardings` was written.
        has_in_shardings: bool,
        /// Whether `out_shardings` was written.
        has_out_shardings: bool,
    },
    /// `mpmd.fragment`: its mesh, and whether in-shardings and out-shardings are in the text, even
    /// if empty, as in [`Payload::NamedComputation`].
    Fragment {
        /// The name of its mesh.
        mesh: StrId,
        /// `mesh="m1", origin=["f"], stage=1`, as in its custom syntax.
        header: StrId,
        /// Whether `in_shardings` was written.
        has_in_shardings: bool,
        /// Whether `out_shardings` was written.
        has_out_shardings: bool,
        /// Whether the header has shardings that no value stores, such as those over a mesh that
        /// the module does not have.
        has_foreign_shardings: bool,
    },
    /// `sdy.sharding_group`: the group id.
    ShardingGroup(i64),
    /// `sdy.propagation_barrier`: the direction that it lets through.
    PropagationBarrier(Direction),
    /// `sdy.all_gather`, `sdy.all_slice`, `sdy.reduce_scatter`, `sdy.sharded_to_unreduced`: axes
    /// for each dim, and the reduction of `sdy.reduce_scatter`, `Sum` for the others.
    AxesPerDim(Vec<Vec<AxisRef>>, ReductionOp),
    /// `sdy.all_reduce`, `sdy.replicated_to_unreduced`: the axes, and the reduction of
    /// `sdy.all_reduce`, `Sum` for the other.
    Axes(Vec<AxisRef>, ReductionOp),
    /// `sdy.all_to_all`: axes, source dim, target dim of each parameter.
    AllToAll(Vec<(Vec<AxisRef>, i64, i64)>),
}

impl Payload {
    /// The payload of a collective that does not reduce and has axes for each dim.
    pub const fn axes_per_dim(axes: Vec<Vec<AxisRef>>) -> Self {
        Self::AxesPerDim(axes, ReductionOp::Sum)
    }
    /// The reduction of a collective; `Sum` for ops that do not reduce.
    pub const fn reduction_op(&self) -> ReductionOp {
        match self {
            Self::AxesPerDim(_, reduction_op) | Self::Axes(_, reduction_op) => *reduction_op,
            _ => ReductionOp::Sum,
        }
    }
}
