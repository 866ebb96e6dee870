//! The versions of Shardy that are followed, and what each of them changed.
//!
//! Shardy has no version numbers of its own: a [`Version`] is called after the first jaxlib release that carries it.
//! A program has one, [`crate::ir::Program::shardy`], which the parser, verification, rules and passes ask whether a
//! [`Change`] is part of it. Everything that differs between versions is such a change, so that the table in this file
//! is the whole difference.
//!
//! To follow another version: add it to [`Version`], run `python -m tests.shardy.generator` with that jaxlib, and
//! add a row to the table for each kind of difference, with the code that asks for it.

/// A version of Shardy, by the jaxlib release that carries it. Later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Version {
    /// Shardy of jaxlib 0.10. On programs of JAX, older releases behave the same.
    V0_10,
    /// Shardy of jaxlib 0.12.
    #[default]
    V0_12,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Self; 2] = [Self::V0_10, Self::V0_12];
    /// The oldest version.
    pub const OLDEST: Self = Self::ALL[0];
    /// The newest version.
    pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];
    /// The number of versions.
    pub const COUNT: usize = Self::ALL.len();

    /// The first two numbers of the jaxlib release.
    const fn release(self) -> (u32, u32) {
        match self {
            Self::V0_10 => (0, 10),
            Self::V0_12 => (0, 12),
        }
    }
    /// The name, as in `shardy="0.12"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V0_10 => "0.10",
            Self::V0_12 => "0.12",
        }
    }
    /// The version that a jaxlib release, such as `0.12` or `0.12.0.1`, has: the newest version
    /// that is not newer than the release, or the oldest version if all are newer. `None` if `text`
    /// is not a release.
    pub fn of_release(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
        let release = (numbers.next()??, numbers.next()??);
        let known = Self::ALL.into_iter().rev().find(|version| version.release() <= release);
        Some(known.unwrap_or(Self::OLDEST))
    }
    /// The version for `text`, a jaxlib release that a user names: as [`Self::of_release`], but
    /// `None` for releases outside the range of known versions.
    pub fn named(text: &str) -> Option<Self> {
        let numbers = text.split('.').take(2).map(|part| part.parse::<u32>().ok());
        let release: Option<Vec<u32>> = numbers.collect();
        let [major, minor] = release?[..] else { return None };
        let known = Self::OLDEST.release()..=Self::NEWEST.release();
        known.contains(&(major, minor)).then(|| Self::of_release(text)).flatten()
    }
    /// The hint for a feature that `later` has and this version lacks.
    pub fn hint_for(self, later: Self) -> String {
        let (name, later) = (self.name(), later.name());
        format!("the Shardy of jaxlib {later} has it, not that of {name}: shardy=\"{later}\"")
    }
    /// Whether this version has `change`.
    #[inline]
    pub const fn has(self, change: Change) -> bool {
        self as u8 >= change.since() as u8
    }
}

/// Defines the changes.
macro_rules! changes {
    ($($version:ident: { $($name:ident = $text:literal;)* })*) => {
        /// What a version changed.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Change { $($(#[doc = $text] $name,)*)* }

        impl Change {
            /// All changes, those of the oldest version first.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)*)*];
            /// The first version that has the change.
            pub const fn since(self) -> Version {
                match self { $($(Self::$name => Version::$version,)*)* }
            }
            /// What changed, in one sentence.
            pub const fn text(self) -> &'static str {
                match self { $($(Self::$name => $text,)*)* }
            }
        }
    };
}

changes! {
    V0_12: {
        ConstraintsBeforeFuncCalls = "`sdy-propagation-pipeline` applies sharding constraints and imports sharding groups before it imports calls, and calls have data-flow edges.";
        PaddingInReshards = "`sdy-reshard-to-collectives` gathers a dim in full and slices it again if the old and the new sharding pad it to different sizes.";
        ReductionOps = "Unreduced axes, `sdy.all_reduce` and `sdy.reduce_scatter` have a reduction, as in `unreduced=max{\"c\"}`.";
        SubAxesAcrossReshapes = "A reshard is also reused across a reshape if sub-axes of one axis shard several dims before it and one dim after it.";
        SingleDeviceReshards = "`sdy-insert-explicit-reshards` reshards operands and results of ops on a single device to and from that device; arguments and results of functions may not be on a single device.";
        SingleDeviceReshardsKept = "`sdy-reshard-to-collectives` does not convert reshards from or to a single device.";
        ReductionOpOfBodies = "An all-reduce after a `stablehlo.reduce` or `stablehlo.scatter` has the reduction of its body; there is none unless its results are all sums, all maxima or all minima.";
        ModuleShardingsDropped = "`sdy-drop-sharding-and-mesh` drops `sdy.parameters_shardings` and `sdy.output_shardings` of the module, unless an option keeps them.";
        MeshesInlinedOnExport = "`sdy-export-pipeline` ends with `sdy-inline-meshes`.";
        OptimizeCollectives = "`sdy-export-pipeline` runs `sdy-optimize-collectives` after `sdy-reshard-to-collectives`.";
        PaddedReshapes = "The rule of a reshape does not end at dims without a common divisor: the rest of the operand's dim is a permutation factor, and factors of one side only need replication.";
        WindowsApart = "The rule of a convolution has permutation factors for windows, and for elements of windows, that do not fit into the input.";
        PermutedUpdates = "The rule of `dynamic_update_slice` has permutation factors for dims in which the update is smaller than the operand, independent of the start indices.";
        ConstraintsOnOpenValues = "`sdy-apply-sharding-constraints` also applies constraints to values with a fully open sharding, and inserts them after function data-flow edges as after other edges.";
        KnownOrigins = "Axes with an unknown origin have no entry in `sdy.sharding_origins`; before, the entry was empty.";
        DebugInfoOfAllEdges = "`sdy-sink-data-flow-edges` writes an empty entry for edges without debug information.";
        GroupsAcrossCalls = "`sdy-sharding-group-import` treats a function as part of the manual computation that calls it.";
        SourcesOfEdges = "`sdy.propagation_edges` of data-flow edges may have the index of any source and target of the edge.";
        ConstraintsInFunctions = "`sdy-apply-sharding-constraints` replaces returned values by the last constraint of a chain, except in the main function.";
        UsedMeshesKept = "`sdy-drop-sharding-and-mesh` keeps meshes that remaining attributes refer to.";
        ConstraintsInCallees = "`sdy-apply-sharding-constraints` visits callees before callers, so the numbers of recorded steps differ.";
        ReplicaGroupsInOrder = "`sdy-lift-inlined-meshes` names the meshes of replica groups in the order of the collectives; before, by kind of collective.";
        LowerCaseFlags = "Boolean options of passes are `true` or `false`; `True` and `TRUE` are errors.";
        SignlessSwitches = "The flag of `cf.switch` has to be a signless integer.";
        MovedPads = "The rule of a pad has a permutation factor for a padded dim whose size stays the same, as negative padding allows.";
        IfEdges = "`stablehlo.if` has data-flow edges, like `stablehlo.case`.";
        MainFuncResults = "`sdy-propagate-to-func-results` sets results of the main function without a sharding to that of the returned value, and does not copy shardings on a single device given by its id.";
        InlinedReplicaGroups = "`sdy-inline-meshes` also inlines the meshes of replica groups that are given by mesh axes.";
        UnreducedTransitions = "The verifier rejects ops that add or remove unreduced axes with a reduction other than their own, or change the reduction of unreduced axes.";
        VerifyUnreducedAxes = "`sdy-export-pipeline` runs `sdy-verify-unreduced-axes` before `sdy-insert-explicit-reshards`.";
        UnreducedEquivalence = "Shardings are equivalent only if they have the same unreduced axes.";
        UnreducedCallResults = "`sdy-insert-func-call-reshards` inserts no reshard for results of calls whose unreduced axes differ from those of the function.";
        SingleDeviceWording = "Error messages say single-device sharding instead of maximal sharding.";
        EdgesOfFuncEdges = "Propagation edges recorded on `sdy.func_data_flow_edge` may refer to values that the op does not have.";
        CollectiveRoots = "`stablehlo.collective_broadcast` takes several tensors, and with `has_dynamic_root` an operand with the root devices; `stablehlo.collective_reduce` is a new op.";
        StableTopK = "`chlo.top_k` has the attribute `is_stable`.";
        MeshVisibility = "The visibility of an `sdy.mesh` is not verified.";
        StrictDictionaries = "In custom syntax, the attribute dictionaries of ops of `builtin`, `func`, `arith` and `sdy` may not repeat attributes that have their own syntax.";
        ListsAsMemorySpaces = "The memory space of a `memref` may be an array attribute.";
        NamedHloShardings = "XLA's shardings with named axes are `single_device[...]` on one device, and have reductions, as in `unreduced=max{'c'}`.";
        WideFactors = "Factor sizes in the text of sharding rules are 64-bit integers.";
        PaddedConstants = "`sdy-pad-for-divisibility` pads constants: splats with the same element, others with zeros.";
        HaloExchanges = "`sdy-resolve-permutation-factors` uses halo exchanges for pads, slices and reshapes; for a reverse, the reshard that reorders devices is after the op.";
        ModuleShardings = "`sdy-convert-global-to-local` adds module attributes with the shardings of arguments and results of the main function.";
        RawDeviceIds = "`sdy-convert-global-to-local` indexes its tables of `i32` with the partition id, without a conversion.";
        ShardedBounds = "Index bounds that `sdy-convert-global-to-local` broadcasts have a replicated sharding.";
        FirstDeviceSelects = "An unreduced scatter selects between its input and the identity with a scalar predicate, without a broadcast.";
        KeptDictionaries = "`sdy-convert-global-to-local` keeps attributes of calls and returns.";
        StablehloAxisRefs = "Replica groups by mesh axes that `sdy-convert-global-to-local` creates have `stablehlo` axes, and adjacent sub-axes of one axis are merged.";
        NoCasts = "`sdy-pad-for-divisibility` fails on programs in which unresolved casts would remain.";
        PaddedCollectives = "`sdy-pad-for-divisibility` pads operands of `sdy.reduce_scatter`, `sdy.all_to_all`, `sdy.all_reduce`, `stablehlo.pad` and `stablehlo.convolution`, and tracks zero padding through collectives.";
        PaddedLoops = "`sdy-pad-for-divisibility` pads loops, and dims of gathers that slices take in full; in reductions, padding is replaced by the initial value.";
        ShardedMasks = "Masks that `sdy-pad-for-divisibility` creates have the shardings of the values that they mask.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_the_version_that_they_carry() {
        for (release, version) in [
            ("0.7.2", Some(Version::V0_10)),
            ("0.10", Some(Version::V0_10)),
            ("0.10.2", Some(Version::V0_10)),
            ("0.12", Some(Version::V0_12)),
            ("0.12.0.1", Some(Version::V0_12)),
            ("0.13.0.dev20261101", Some(Version::NEWEST)),
            ("1.0", Some(Version::NEWEST)),
            ("12", None),
            ("", None),
            ("0.x", None),
        ] {
            assert_eq!(Version::of_release(release), version, "{release}");
        }
    }

    #[test]
    fn releases_that_are_not_known_cannot_be_asked_for() {
        assert_eq!(Version::named("0.10.2"), Some(Version::V0_10));
        assert_eq!(Version::named("0.12.0.1"), Some(Version::V0_12));
        for release in ["0.7.2", "0.13", "1.0", "12", "", "0.x", "newest"] {
            assert_eq!(Version::named(release), None, "{release}");
        }
    }

    #[test]
    fn versions_are_in_order_and_have_what_came_before() {
        assert!(Version::ALL.is_sorted());
        assert!(Version::ALL.is_sorted_by_key(|version| version.release()));
        for version in Version::ALL {
            assert_eq!(Version::named(version.name()), Some(version));
            for &change in Change::ALL {
                assert_eq!(version.has(change), change.since() <= version);
            }
        }
    }
}
