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
    /// Shardy of jaxlib 0.10, which is also that of older releases as far as programs of JAX show.
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
    /// The version of a jaxlib release, `0.12` or `0.12.0.1`: the last one that is not newer than the release, and of
    /// releases older than all versions the oldest. `None` if `text` is no release.
    pub fn of_release(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
        let release = (numbers.next()??, numbers.next()??);
        let known = Self::ALL.into_iter().rev().find(|version| version.release() <= release);
        Some(known.unwrap_or(Self::OLDEST))
    }
    /// The version that users call `text`, a jaxlib release: [`Self::of_release`], but for releases whose Shardy is
    /// not known, since they are older or newer than all versions.
    pub fn named(text: &str) -> Option<Self> {
        let numbers = text.split('.').take(2).map(|part| part.parse::<u32>().ok());
        let release: Option<Vec<u32>> = numbers.collect();
        let [major, minor] = release?[..] else { return None };
        let known = Self::OLDEST.release()..=Self::NEWEST.release();
        known.contains(&(major, minor)).then(|| Self::of_release(text)).flatten()
    }
    /// The hint for something that `later` has and this version has not.
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
        ReductionOps = "Unreduced axes say how they are reduced, `unreduced=max{\"c\"}`, and so do `sdy.all_reduce` and `sdy.reduce_scatter`.";
        NoCasts = "`sdy-pad-for-divisibility` leaves no casts: it refuses programs in which they would be left.";
        PaddedCollectives = "`sdy-pad-for-divisibility` pads what `sdy.reduce_scatter`, `sdy.all_to_all`, `sdy.all_reduce`, `stablehlo.pad` and `stablehlo.convolution` work on, and knows padding of zeros through collectives.";
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
