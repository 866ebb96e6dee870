//! Policies: how the strategy of an op is chosen.

/// How one of the strategies to compute an op is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// The strategy in which a device sends the fewest bytes; among equal ones the one with the least computation.
    #[default]
    FewestBytes,
    /// [`Policy::FewestBytes`] for a program whose reshards are explicit: each is lowered in its place, even if it equals an
    /// earlier one.
    Shardy,
    /// The strategy that XLA's SPMD partitioner takes.
    Xla,
}
