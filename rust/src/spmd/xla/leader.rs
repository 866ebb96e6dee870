//! Leaders: the tensor whose sharding says how XLA's partitioner computes an op.

use super::super::strategy::Ability;
use crate::ir::OpKind;

/// The tensor by whose placement an op is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The first operand: the op is computed on operands as they lie, and results are resharded.
    Operand,
    /// The first result: operands are resharded.
    Result,
    /// The first operand if it has more shards than the result, else the result.
    MoreShards,
    /// The result if the op is computed on as many shards as that has, else the first operand.
    ResultIfItFits,
    /// The first result; shards of a dim that the op needs whole are of the first other dim that they divide evenly.
    ResultElsewhere,
    /// The result, or the first operand if it has more shards and the result holds the update in several shards: dims of
    /// which the update has a part are whole then.
    Update,
    /// The result, or no shards at all where it is sharded along a dim of which it has a part.
    Taken,
    /// The first operand if every device holds it, else the result.
    ResultUnlessWhole,
    /// Operand, indices and slices, see [`super::gather_scatter`].
    Indexed,
    /// Both operands and the result, see [`super::product`].
    Product,
    /// None: XLA compares strategies of its own, of which the one with the fewest bytes stands for what it takes.
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

/// What XLA's partitioner cannot do along a sharded dim, though there is a strategy to: it makes the dim whole. Of an FFT and a
/// top-k it makes batch dims whole, too.
pub fn without_what_xla_gathers(kind: OpKind, name: &str, ability: Ability) -> Ability {
    match (kind, ability) {
        _ if matches!(name, "stablehlo.fft" | "chlo.top_k" | "mhlo.topk") => Ability::Whole,
        (OpKind::Concatenate, Ability::Moved)
        | (OpKind::DynamicSlice, Ability::Moved | Ability::Terms)
        | (OpKind::Other, Ability::Joined) => Ability::Whole,
        _ => ability,
    }
}
