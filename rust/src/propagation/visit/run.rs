//! The kinds of greedy runs.

use super::direction::NUM_STEPS;
use super::strategy::VisitStrategy;

/// A kind of greedy run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The op-priority step, see [`super::direction`].
    pub step: usize,
    /// The strategy of its visits.
    pub strategy: VisitStrategy,
}

/// The most kinds of greedy runs: each op-priority step in two strategies.
pub const MAX_RUNS: usize = 2 * NUM_STEPS;

/// A set of kinds of greedy runs: one bit for each, by its index in the list of all.
pub type RunMask = u16;
