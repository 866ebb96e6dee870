//! The option `partitioner-stage` of `sdy-export-pipeline`: which of Shardy's passes towards a per-device program run.

/// The last partitioner pass that runs. Later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    /// Not given: `enable-insert-explicit-collectives` decides.
    Unspecified,
    /// `sdy-resolve-permutation-factors`
    ResolvePermutationFactors,
    /// `sdy-reshard-to-collectives`
    ReshardToCollectives,
    /// `sdy-optimize-collectives`
    OptimizeCollectives,
    /// `sdy-pad-for-divisibility`
    PadForDivisibility,
    /// `sdy-resolve-single-device-sharding`
    ResolveSingleDeviceSharding,
    /// `sdy-convert-global-to-local`
    ConvertGlobalToLocal,
}

impl Stage {
    /// All stages, in order.
    const ALL: [Self; 7] = [
        Self::Unspecified,
        Self::ResolvePermutationFactors,
        Self::ReshardToCollectives,
        Self::OptimizeCollectives,
        Self::PadForDivisibility,
        Self::ResolveSingleDeviceSharding,
        Self::ConvertGlobalToLocal,
    ];
    /// The names of the stages, in order.
    pub(super) const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };
    const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::ResolvePermutationFactors => "resolve-permutation-factors",
            Self::ReshardToCollectives => "reshard-to-collectives",
            Self::OptimizeCollectives => "optimize-collectives",
            Self::PadForDivisibility => "pad-for-divisibility",
            Self::ResolveSingleDeviceSharding => "resolve-single-device-sharding",
            Self::ConvertGlobalToLocal => "convert-global-to-local",
        }
    }
    /// The stage called `name`.
    pub(super) fn named(name: &str) -> Self {
        let named = Self::ALL.into_iter().find(|stage| stage.name() == name);
        named.unwrap_or(Self::Unspecified)
    }
}
