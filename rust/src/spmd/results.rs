//! The option for the placement of results after an op: their sharding, what the op leaves, or what a later reshard wants.

/// How results are placed after the op that computes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Results {
    /// By their shardings.
    #[default]
    AsSharded,
    /// As they are computed, until an op needs them otherwise. Results go to their shardings where that sends nothing, and
    /// where reducing terms into the sharding sends no more than reducing them alone.
    AsComputed,
    /// By their shardings, but results behind which there are only elementwise ops up to a reshard go where that leads.
    AsWanted,
}
