//! Options and statistics of a propagation.

use super::origins::Settings;
use super::visit::direction::NUM_STEPS;
use super::visit::{Run, VisitStrategy};

/// How conflicts between axes are resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// An axis propagates only if no tensor of the op has a conflict.
    Basic,
    /// An axis propagates to each tensor that has no conflict itself.
    #[default]
    Aggressive,
    /// Each greedy run is made in the basic strategy, then in the aggressive one.
    BasicThenAggressive,
}

impl Strategy {
    /// The names of the strategies in pipelines.
    pub const NAMES: [&'static str; 3] =
        [Self::Aggressive.name(), Self::Basic.name(), Self::BasicThenAggressive.name()];

    /// The name of the strategy in pipelines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Aggressive => "aggressive",
            Self::BasicThenAggressive => "basic-then-aggressive",
        }
    }
    /// The strategy called `name` in pipelines.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Basic, Self::Aggressive, Self::BasicThenAggressive];
        all.into_iter().find(|strategy| strategy.name() == name)
    }
    /// The visit strategies of the greedy runs of one op-priority step, in order.
    const fn of_visits(self) -> &'static [VisitStrategy] {
        match self {
            Self::Basic => &[VisitStrategy::Basic],
            Self::Aggressive => &[VisitStrategy::Aggressive],
            Self::BasicThenAggressive => &[VisitStrategy::Basic, VisitStrategy::Aggressive],
        }
    }
}

/// Options of a propagation.
#[allow(clippy::struct_excessive_bools)] // Each is an option of a pass.
#[derive(Clone, Debug)]
pub struct Options {
    /// The strategy.
    pub strategy: Strategy,
    /// Whether ops take part in the order of their op priorities.
    pub run_op_priority: bool,
    /// Whether dims take part in the order of their user priorities.
    pub user_priority: bool,
    /// Whether neither sub-axes nor axes that do not divide a dim propagate.
    pub conservative: bool,
    /// Whether ops keep the rules that they were visited with.
    pub keep_sharding_rules: bool,
    /// The last user priority that takes part; `None` for all.
    pub up_to_priority: Option<i64>,
    /// Which records of origins to keep, and write as attributes.
    pub debug: Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strategy: Strategy::Aggressive,
            run_op_priority: true,
            user_priority: true,
            conservative: false,
            keep_sharding_rules: false,
            up_to_priority: None,
            debug: Settings::default(),
        }
    }
}

impl Options {
    /// The name of the pass that these options belong to.
    pub(super) fn pass(&self) -> &'static str {
        match (self.user_priority, self.run_op_priority, self.strategy) {
            (true, _, _) => "sdy-user-priority-propagate",
            (false, true, _) => "sdy-op-priority-propagate",
            (false, false, Strategy::Basic) => "sdy-basic-propagate",
            (false, false, Strategy::Aggressive | Strategy::BasicThenAggressive) => {
                "sdy-aggressive-propagate"
            }
        }
    }
    /// The greedy runs of one user priority.
    pub(super) fn runs(&self) -> Vec<Run> {
        let last = NUM_STEPS - 1;
        let steps = if self.run_op_priority { 0..=last } else { last..=last };
        let strategies = self.strategy.of_visits();
        let run = |step| strategies.iter().map(move |&strategy| Run { step, strategy });
        steps.flat_map(run).collect()
    }
}

/// Statistics of a propagation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Visits of marked ops.
    pub visits: usize,
    /// Visits whose outcome was in the memo.
    pub memo_hits: usize,
    /// Memo entries: different inputs of visits.
    pub memo_entries: usize,
    /// Updates of tensors by visits.
    pub updates: usize,
    /// Changes of shardings.
    pub changes: usize,
    /// Greedy runs.
    pub greedy_runs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_strategy() {
        for name in Strategy::NAMES {
            assert_eq!(Strategy::named(name).map(Strategy::name), Some(name));
        }
        assert_eq!(Strategy::named("cautious"), None);
    }
}
