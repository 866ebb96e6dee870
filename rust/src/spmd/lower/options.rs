//! The options of a lowering: policy, placement of results, unknown ops.

use crate::ir::OpKind;
use crate::spmd::devices::Purpose;
use crate::spmd::one_by_one::OneByOne;
use crate::spmd::policy::Policy;
use crate::spmd::results::Results;
use crate::spmd::unknown::Unknown;

/// Options of lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spmd) struct How {
    /// What chooses among the ways to compute an op.
    pub policy: Policy,
    /// The placement of results after the op that computes them.
    pub results: Results,
    /// What is done with ops whose computation on shards is not known.
    pub unknown: Unknown,
    /// Whether reshards send the fewest bytes also where the policy has reshards of its own.
    pub has_free_reshards: bool,
    /// The options of `sdy-convert-global-to-local`, if that is what runs; shardings are kept then.
    pub one_by_one: Option<OneByOne>,
}

impl How {
    /// Whether plans are searched for that send the fewest elements.
    pub(super) fn is_free(self) -> bool {
        self.one_by_one.is_none() && (self.policy == Policy::FewestBytes || self.has_free_reshards)
    }
    /// The purpose of the per-device program.
    pub(super) fn purpose(self) -> Purpose {
        match (self.one_by_one, self.unknown) {
            (Some(_), _) => Purpose::Print,
            (None, Unknown::Replicate) => Purpose::Count,
            (None, Unknown::Refuse) => Purpose::Run,
        }
    }
    /// Whether the ids of devices are those of replicas.
    pub(super) fn has_replicas(self) -> bool {
        self.one_by_one.is_some_and(|options| options.device_counts.replica_count > 1)
    }
    /// How a reshard of this kind becomes the one collective of `StableHLO` that corresponds to it, if it does. Slices, which
    /// send nothing, do only in `sdy-convert-global-to-local`.
    pub(super) fn one_by_one(self, kind: OpKind) -> Option<OneByOne> {
        let combined = OneByOne { combines_reduce_scatter: true, ..OneByOne::default() };
        let is_kept = self.policy == Policy::Shardy && kind != OpKind::AllSlice;
        self.one_by_one.or(is_kept.then_some(combined))
    }
}
