//! Leaders: the tensor whose sharding determines how XLA's partitioner computes an op.

use super::super::strategy::Ability;
use crate::ir::OpKind;

/// The tensor by whose placement an op is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The first operand: the op is computed on the operands as they are sharded, and results are resharded.
    Operand,
    /// The first result: operands are resharded.
    Result,
    /// The first operand if it has more shards than the result, else the result.
    MoreShards,
    /// The result if the op can be computed on as many shards as it has, else the first operand.
    ResultIfItFits,
    /// The first result; the shards of a dim that has to be replicated move to the first other dim that they divide evenly.
    ResultElsewhere,
    /// The result, or the first operand if that has more shards and several shards of the result overlap the update: dims that the
    /// update covers in part are then replicated.
    Update,
    /// The result, or nothing is sharded if it is sharded along a dim that it covers in part.
    Taken,
    /// The first operand if it is replicated, else the result.
    ResultUnlessWhole,
    /// Operand, indices and slices, see [`super::gather_scatter`].
    Indexed,
    /// Both operands and the result, see [`super::product`].
    Product,
    /// None: XLA compares strategies of its own; the one with the fewest bytes is assumed.
    Compared,
}

impl Leader {
    /// Returns the leader of an op of `kind`. `is_elementwise`: its tensors have the same dims;
    /// `are_alike`: it has several operands, all with the same placement.
    pub fn of(kind: OpKind, is_elementwise: bool, are_alike: bool) -> Self {
        match kind {
            OpKind::DotGeneral | OpKind::Dot | OpKind::Convolution => Self::Product,
            OpKind::Reduce => Self::Operand,
            OpKind::Slice => Self::MoreShards,
            OpKind::Reshape => Self::ResultIfItFits,
            OpKind::Concatenate | OpKind::Sort => Self::ResultElsewhere,
            OpKind::Gather | OpKind::Scatter => Self::Indexed,
            OpKind::DynamicSlice => Self::Taken,
            OpKind::DynamicUpdateSlice => Self::Update,
            OpKind::Pad => Self::ResultUnlessWhole,
            OpKind::CustomCall => Self::Compared,
            _ if is_elementwise && are_alike => Self::Operand,
            _ => Self::Result,
        }
    }
}

/// `ability`, or [`Ability::Whole`] where XLA's partitioner replicates a dim though there is a strategy for it. For an FFT, a
/// scan and a top-k it also replicates batch dims.
pub fn without_what_xla_gathers(kind: OpKind, name: &str, ability: Ability) -> Ability {
    match (kind, ability) {
        _ if matches!(name, "stablehlo.fft" | "chlo.scan" | "chlo.top_k" | "mhlo.topk") => {
            Ability::Whole
        }
        (OpKind::Concatenate, Ability::Moved)
        | (OpKind::DynamicSlice, Ability::Moved | Ability::Terms) => Ability::Whole,
        _ => ability,
    }
}
