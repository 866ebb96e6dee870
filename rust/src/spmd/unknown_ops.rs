//! The option that says whether ops without a known partitioning are refused or replicated.

/// How a custom call of an unknown target, an op of an unknown dialect, and an op that communicates with the host are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnknownOps {
    /// The program is refused, since the op may compute anything.
    #[default]
    Refuse,
    /// Every device gathers the operands and computes the op, as in XLA's SPMD partitioner. Such a program is counted, not run.
    Replicate,
}
