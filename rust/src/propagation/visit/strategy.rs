//! The strategies of a visit, and what each guarantees to shortcuts.
//!
//! All strategies keep two laws. A visit is a function of its spec, the directions of its step, the mesh
//! and the shardings of its tensors. And it adds axes only along factors along which tensors differ. What
//! is remembered of visits ([`crate::propagation::memo`]) needs no more than that.
//!
//! Everything else that a shortcut relies on is a [guarantee](StrategyGuarantees), declared here and nowhere else. To add a
//! strategy, add a variant: the compiler then asks what it guarantees, how it propagates
//! ([`super::workspace`]) and for its column in the cache of the process
//! ([`crate::propagation::memo::process_cache`]).

/// How one visit deals with conflicts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VisitStrategy {
    /// Axes go only where no tensor of the op has a conflict: [`super::basic`].
    Basic,
    /// Axes go to each tensor as far as that tensor has no conflict: [`super::aggressive`].
    Aggressive,
}

/// What a strategy guarantees of its visits.
#[derive(Clone, Copy, Debug)]
pub struct StrategyGuarantees {
    /// Whether the exact sizes of factors matter. If not, sizes say only how axes are split among the
    /// factors of one dim, and which tensor is larger. Asked by
    /// [`crate::propagation::memo::rule_equivalence`].
    pub uses_exact_factor_sizes: bool,
    /// Whether repeating a tensor changes nothing: one more tensor with the same mapping and the same
    /// sharding as one before it changes like that one, and others change as they did without it. Asked by
    /// [`crate::propagation::wide`], for groups of tensors. Holds as long as all parts of axes nest.
    pub repeating_is_idempotent: bool,
    /// Whether tensors that share no factor, directly or through others, have no effect on each other.
    /// Asked by [`crate::propagation::wide`], for components of a rule.
    pub components_are_independent: bool,
    /// How a visit can be worked out from the one before it and what has changed since. Asked by
    /// [`crate::propagation::wide`], for incremental visits.
    pub continuation: Option<Continuation>,
}

/// How a visit is worked out from the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continuation {
    /// By the claims of factors: what a tensor takes depends on its own row of the factor table and on
    /// what is claimed along its factors, as [`super::aggressive::expanded`] has it. Elementwise ops are
    /// excepted, whose operands look at results.
    FactorClaims,
}

impl VisitStrategy {
    /// What visits in this strategy guarantee.
    pub const fn guarantees(self) -> StrategyGuarantees {
        match self {
            // An axis that any tensor uses elsewhere stops all others, whichever component it is in.
            Self::Basic => StrategyGuarantees {
                uses_exact_factor_sizes: false,
                repeating_is_idempotent: true,
                components_are_independent: false,
                continuation: None,
            },
            Self::Aggressive => StrategyGuarantees {
                uses_exact_factor_sizes: false,
                repeating_is_idempotent: true,
                components_are_independent: true,
                continuation: Some(Continuation::FactorClaims),
            },
        }
    }
}
