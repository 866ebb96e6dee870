//! Policies: what chooses the strategy of an op.

/// How one of the strategies to compute an op is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The strategy for which a device sends the fewest bytes; of equal ones that which computes least.
    #[default]
    FewestBytes,
    /// [`Policy::FewestBytes`] for a program whose reshards are explicit: each is lowered where it is, also if an equal one
    /// came before it.
    Shardy,
    /// The strategy that XLA's SPMD partitioner takes.
    Xla,
}
