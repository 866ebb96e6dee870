//! The options of `sdy-convert-global-to-local`, which lowers each `sdy` collective to one of `StableHLO`.

use crate::partition::device_id::DeviceCounts;

/// Options of `sdy-convert-global-to-local`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GlobalToLocalOptions {
    /// Whether a reduce-scatter of several dims is one op, not an all-reduce and a slice.
    pub combines_reduce_scatter: bool,
    /// Whether replica groups are written by mesh and axes.
    pub names_groups: bool,
    /// Whether an all-gather of several dims becomes one for each dim.
    pub gathers_per_dim: bool,
    /// The numbers of replicas and of partitions, which determine how devices are numbered.
    pub device_counts: DeviceCounts,
}
