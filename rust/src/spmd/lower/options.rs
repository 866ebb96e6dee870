//! The options of a lowering: policy, placement of results, unknown ops.

use crate::ir::OpKind;
use crate::spmd::convert_global_to_local::GlobalToLocalOptions;
use crate::spmd::devices::Purpose;
use crate::spmd::policy::Policy;
use crate::spmd::results::Results;
use crate::spmd::unknown_ops::UnknownOps;

/// Options of lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spmd) struct How {
    /// The policy that chooses among strategies.
    pub policy: Policy,
    /// The placement of results after the op that computes them.
    pub results: Results,
    /// How ops without a known partitioning are treated.
    pub unknown: UnknownOps,
    /// Whether reshards send the fewest bytes even under a policy that has its own reshards.
    pub has_free_reshards: bool,
    /// The options of `sdy-convert-global-to-local`, if that is what runs; shardings are kept then.
    pub global_to_local: Option<GlobalToLocalOptions>,
}

impl How {
    /// Whether reshard plans are searched for that send the fewest elements.
    pub(super) fn is_free(self) -> bool {
        self.global_to_local.is_none()
            && (self.policy == Policy::FewestBytes || self.has_free_reshards)
    }
    /// The purpose of the per-device program.
    pub(super) fn purpose(self) -> Purpose {
        match (self.global_to_local, self.unknown) {
            (Some(_), _) => Purpose::Print,
            (None, UnknownOps::Replicate) => Purpose::Count,
            (None, UnknownOps::Refuse) => Purpose::Run,
        }
    }
    /// Whether the ids of devices are those of replicas.
    pub(super) fn has_replicas(self) -> bool {
        self.global_to_local.is_some_and(|options| options.device_counts.replica_count > 1)
    }
    /// The options by which a reshard of this kind becomes the one collective of `StableHLO` that corresponds to it, if it does.
    /// Slices, which send nothing, do so only in `sdy-convert-global-to-local`.
    pub(super) fn global_to_local(self, kind: OpKind) -> Option<GlobalToLocalOptions> {
        let combined = GlobalToLocalOptions {
            combines_reduce_scatter: true,
            ..GlobalToLocalOptions::default()
        };
        let is_kept = self.policy == Policy::Shardy && kind != OpKind::AllSlice;
        self.global_to_local.or(is_kept.then_some(combined))
    }
}
