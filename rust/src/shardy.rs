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
        ConstraintsBeforeFuncCalls = "`sdy-propagation-pipeline` applies sharding constraints and imports sharding groups before it imports calls, with data-flow edges at the calls.";
        PaddingInReshards = "`sdy-reshard-to-collectives` gathers a dim as a whole, before it is sliced again, where the old and the new sharding pad it to different sizes.";
        ReductionOps = "Unreduced axes say how they are reduced, `unreduced=max{\"c\"}`, and so do `sdy.all_reduce` and `sdy.reduce_scatter`.";
        SubAxesAcrossReshapes = "A reshard is reused across reshapes also where sub-axes of one axis shard several dims before a reshape and one dim after it.";
        SingleDeviceReshards = "`sdy-insert-explicit-reshards` reshards the operands of ops on a single device to it, and their results from it; arguments and results of functions must not be on a single device.";
        SingleDeviceReshardsKept = "`sdy-reshard-to-collectives` leaves reshards from and to a single device as they are.";
        ReductionOpOfBodies = "All-reduces after a `stablehlo.reduce` or `stablehlo.scatter` reduce as its body does, and there are none where its results are not all sums, all maxima or all minima.";
        ModuleShardingsDropped = "`sdy-drop-sharding-and-mesh` drops `sdy.parameters_shardings` and `sdy.output_shardings` of the module, unless told to keep them.";
        MeshesInlinedOnExport = "`sdy-export-pipeline` ends with `sdy-inline-meshes`.";
        OptimizeCollectives = "`sdy-export-pipeline` runs `sdy-optimize-collectives` after `sdy-reshard-to-collectives`.";
        PaddedReshapes = "The rule of a reshape goes on where sizes have no common divisor, with a permutation factor of what is left of the operand's dim; factors of one side need replication.";
        WindowsApart = "The rule of a convolution has permutation factors for windows and for elements of windows for which the input has no room.";
        PermutedUpdates = "The rule of `dynamic_update_slice` has permutation factors for dims in which the update is smaller, whatever the start indices are.";
        ConstraintsOnOpenValues = "`sdy-apply-sharding-constraints` also applies constraints to values whose sharding is fully open, and puts them after function data-flow edges as after other edges.";
        KnownOrigins = "Axes whose origin is not known have none in `sdy.sharding_origins`; before, they have an empty one.";
        DebugInfoOfAllEdges = "`sdy-sink-data-flow-edges` has an empty entry for an edge without debug information.";
        GroupsAcrossCalls = "`sdy-sharding-group-import` takes a function for part of the manual computation that it is called in.";
        SourcesOfEdges = "`sdy.propagation_edges` of data-flow edges may refer to any source and target of the edge by their numbers.";
        ConstraintsInFunctions = "`sdy-apply-sharding-constraints` lets the ends of chains replace what functions return, except for the main function.";
        UsedMeshesKept = "`sdy-drop-sharding-and-mesh` keeps the meshes that what it leaves refers to.";
        ConstraintsInCallees = "`sdy-apply-sharding-constraints` goes through callees before callers, which the numbers of recorded steps show.";
        ReplicaGroupsInOrder = "`sdy-lift-inlined-meshes` names the meshes of replica groups in the order of the collectives, whatever their kinds.";
        LowerCaseFlags = "Options of passes that are flags are `true` or `false`, no longer `True` or `TRUE`.";
        SignlessSwitches = "`cf.switch` takes a signless integer.";
        MovedPads = "The rule of a pad has a permutation factor for a dim that keeps its size but is padded all the same.";
        IfEdges = "`stablehlo.if` has data-flow edges, as `stablehlo.case` has.";
        MainFuncResults = "`sdy-propagate-to-func-results` gives results of the main function that have no sharding that of the returned value, and copies no sharding of one device by its id.";
        InlinedReplicaGroups = "`sdy-inline-meshes` also writes meshes into replica groups by mesh axes.";
        UnreducedTransitions = "Ops are verified not to add or take away unreduced axes of another reduction than theirs, nor to change the reduction of others.";
        VerifyUnreducedAxes = "`sdy-export-pipeline` has `sdy-verify-unreduced-axes` right before it inserts reshards.";
        UnreducedEquivalence = "Shardings are equivalent only if they are unreduced over the same axes.";
        UnreducedCallResults = "`sdy-insert-func-call-reshards` leaves results of calls alone that are unreduced over other axes than the function's.";
        SingleDeviceWording = "Messages call a maximal sharding a single-device sharding.";
        EdgesOfFuncEdges = "Propagation edges recorded on `sdy.func_data_flow_edge` may be of values that this op does not have.";
        CollectiveRoots = "`stablehlo.collective_broadcast` takes several tensors, and the devices that they come from as operand with `has_dynamic_root`; `stablehlo.collective_reduce` is an op.";
        StableTopK = "`chlo.top_k` may say `is_stable`.";
        MeshVisibility = "The visibility of an `sdy.mesh` is not verified.";
        StrictDictionaries = "In custom syntax, dictionaries of ops of `builtin`, `func`, `arith` and `sdy` may not have attributes that are part of the syntax.";
        ListsAsMemorySpaces = "The memory space of a buffer may be a list.";
        NamedHloShardings = "Shardings of XLA by names of axes are `single_device[...]` on one device, and say how unreduced axes are reduced, `unreduced=max{'c'}`.";
        WideFactors = "The sizes of factors in the text of sharding rules have 64 bits.";
        PaddedConstants = "`sdy-pad-for-divisibility` pads constants: with more of the same element, or with zeros.";
        HaloExchanges = "`sdy-resolve-permutation-factors` lets devices exchange elements of pads, slices and reshapes with devices near them, and reverses before it reorders devices.";
        ModuleShardings = "`sdy-convert-global-to-local` writes the shardings of arguments and results of the main function as attributes of the module.";
        RawDeviceIds = "`sdy-convert-global-to-local` looks up by the device's number as it is, in tables of `i32`.";
        ShardedBounds = "Bounds that `sdy-convert-global-to-local` broadcasts to indices have a sharding, the replicated one.";
        FirstDeviceSelects = "Scatters of terms select their input or the identity by one truth value, which is not broadcast.";
        KeptDictionaries = "`sdy-convert-global-to-local` keeps the attributes of calls and returns.";
        StablehloAxisRefs = "Replica groups by mesh axes that `sdy-convert-global-to-local` makes have axes of `stablehlo`, of which those that are parts of one are merged.";
        NoCasts = "`sdy-pad-for-divisibility` leaves no casts: it refuses programs in which they would be left.";
        PaddedCollectives = "`sdy-pad-for-divisibility` pads what `sdy.reduce_scatter`, `sdy.all_to_all`, `sdy.all_reduce`, `stablehlo.pad` and `stablehlo.convolution` work on, and knows padding of zeros through collectives.";
        PaddedLoops = "`sdy-pad-for-divisibility` pads loops and whole slices of gathers, and lets reductions see their initial value in place of padding.";
        ShardedMasks = "Masks that `sdy-pad-for-divisibility` makes have the shardings of the values they mask.";
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
