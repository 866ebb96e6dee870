//! The strategies of a visit, and the guarantees on which shortcuts rely.
//!
//! All strategies obey two laws. A visit is a function of its spec, the directions of its step, the
//! mesh and the shardings of its tensors. And it adds axes only along factors in which tensors
//! differ. The memo ([`crate::propagation::memo`]) relies on nothing else.
//!
//! Everything else that a shortcut relies on is a [guarantee](StrategyGuarantees), declared only
//! here. To add a strategy, add a variant: the compiler then asks for its guarantees, how it
//! propagates ([`super::workspace`]) and its column in the process-wide cache
//! ([`crate::propagation::memo::process_cache`]).

/// How one visit resolves conflicts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VisitStrategy {
    /// An axis propagates only if no tensor of the op has a conflict: [`super::basic`].
    Basic,
    /// An axis propagates to each tensor that has no conflict itself: [`super::aggressive`].
    Aggressive,
}

/// The guarantees of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct StrategyGuarantees {
    /// Whether the exact sizes of factors matter. If not, sizes matter only to split axes among the
    /// factors of one dim, and to compare the sizes of tensors. Used by
    /// [`crate::propagation::memo::rule_equivalence`].
    pub uses_exact_factor_sizes: bool,
    /// Whether repeating a tensor changes nothing: one more tensor with the same mapping and
    /// sharding as an earlier one changes in the same way, and others change as without it. Used by
    /// [`crate::propagation::wide`], for groups of tensors. Holds as long as all sub-axes of an
    /// axis nest.
    pub repeating_is_idempotent: bool,
    /// Whether tensors that share no factor, directly or through others, have no effect on each
    /// other. Used by [`crate::propagation::wide`], for components of a rule.
    pub components_are_independent: bool,
    /// How a visit can be computed from the previous one and the changes since. Used by
    /// [`crate::propagation::wide`], for incremental visits.
    pub continuation: Option<Continuation>,
}

/// How a visit is computed from the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continuation {
    /// By the claims of factors: what a tensor takes depends on its own row of the factor table and
    /// on the claims of its factors, as in [`super::aggressive::expanded`]. This does not hold for
    /// elementwise ops, whose operands depend on results.
    FactorClaims,
}

impl VisitStrategy {
    /// The guarantees of this strategy.
    pub const fn guarantees(self) -> StrategyGuarantees {
        match self {
            // An axis that any tensor uses in another factor is in conflict for all tensors,
            // whichever component that is in.
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
