//! The visits of each greedy run that changed a sharding, in order.

use super::steps::Explanation;
use crate::propagation::observe::{Cause, Change};
use crate::propagation::visit::Run;

/// A greedy run, and the shardings that it changed.
#[derive(Clone, Debug)]
pub struct RunVisits<'a> {
    /// The user priority up to which dims take part.
    pub priority: i64,
    /// The op-priority step, and the strategy.
    pub run: Run,
    /// The changes, grouped by cause, in order. Changes of dims by a user priority come before the
    /// first run of that priority.
    pub visits: Vec<&'a [Change]>,
}

impl Explanation {
    /// All greedy runs, in order.
    pub fn runs(&self) -> Vec<RunVisits<'_>> {
        let changes = self.trace.changes();
        let mut last = 0;
        let runs = self.trace.runs().map(|(start, first)| {
            let before = changes[last..first].iter().rev();
            let opened = before.take_while(|change| change.cause == Cause::UserPriority).count();
            last = first;
            (start, first - opened)
        });
        let runs: Vec<_> = runs.collect();
        let ends = runs.iter().skip(1).map(|(_, first)| *first).chain([changes.len()]);
        let visits = |first: usize, end: usize| {
            let of_run = changes.get(first..end).unwrap_or(&[]);
            of_run.chunk_by(|one, next| one.visit == next.visit).collect()
        };
        runs.iter()
            .zip(ends)
            .map(|(&(start, first), end)| RunVisits {
                priority: start.priority,
                run: start.run,
                visits: visits(first, end),
            })
            .collect()
    }
}
