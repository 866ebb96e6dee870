//! The option that says whether ops without a known partitioning are refused or replicated.

/// What is done with a custom call of an unknown target, an op of an unknown dialect, and an op that talks to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnknownOps {
    /// The program is refused, since the op may compute anything.
    #[default]
    Refuse,
    /// Every device gathers the operands and computes the op, as in XLA's SPMD partitioner. Such a program is counted, not run.
    Replicate,
}
