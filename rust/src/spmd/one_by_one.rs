//! How collectives of `sdy` become those of `StableHLO` one by one.

/// Options of `sdy-convert-global-to-local`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OneByOne {
    /// A reduce-scatter of several dims is one, not an all-reduce and a slice.
    pub combines_reduce_scatter: bool,
    /// Groups of devices are written by mesh and axes.
    pub names_groups: bool,
    /// An all-gather of several dims is one for each.
    pub gathers_per_dim: bool,
}
