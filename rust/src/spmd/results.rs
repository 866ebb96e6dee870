//! The option for the placement of results after an op: their sharding, the placement that the op computes them with, or that of a
//! later reshard.

/// How results are placed after the op that computes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Results {
    /// By their shardings.
    #[default]
    AsSharded,
    /// As they are computed, until a user needs another placement. A result is resharded to its sharding at once if that sends
    /// nothing, or if reducing partial results into the sharding sends no more than reducing them alone.
    AsComputed,
    /// By their shardings; but if only elementwise ops are between a result and a later reshard, it gets the placement of that
    /// reshard.
    AsWanted,
}
