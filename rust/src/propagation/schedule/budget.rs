//! How many visits a greedy run may make.

/// Visit budget before non-convergence is reported: a fixed part, and a part per op. Runs that converge
/// make a few visits per op; even where each axis reaches a value that all ops use one by one, it is as
/// many per op as there are axes.
const BUDGET: (usize, usize) = (1_000_000, 1_000);

/// Visits between two reports of progress.
const REPORT_EVERY: usize = 1 << 12;

/// Counts visits.
#[derive(Default)]
pub struct VisitBudget {
    visits: usize,
    /// The number of visits after which the budget of the greedy run is exceeded.
    last: usize,
}

/// What is to be done before a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spent {
    /// Nothing.
    Visit,
    /// Progress is to be reported.
    Report,
    /// Non-convergence is to be reported.
    Exceeded,
}

impl VisitBudget {
    /// Starts a greedy run over `num_ops` ops.
    pub fn start_run(&mut self, num_ops: usize) {
        let (fixed, per_op) = BUDGET;
        self.last = self.visits + fixed + per_op * num_ops;
    }
    /// Counts a visit.
    #[inline]
    pub fn spend(&mut self) -> Spent {
        self.visits += 1;
        if self.visits % REPORT_EVERY == 0 {
            Spent::Report
        } else if self.visits > self.last {
            Spent::Exceeded
        } else {
            Spent::Visit
        }
    }
    /// Number of visits so far, of all runs.
    pub fn visits(&self) -> usize {
        self.visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_own_budget() {
        let mut budget = VisitBudget::default();
        let (fixed, per_op) = BUDGET;
        for _ in 0..2 {
            budget.start_run(1);
            let spent: Vec<Spent> = (0..=fixed + per_op).map(|_| budget.spend()).collect();
            let first = spent.iter().position(|&spent| spent == Spent::Exceeded);
            assert_eq!(first, Some(fixed + per_op));
            assert!(spent.contains(&Spent::Report));
        }
        assert_eq!(budget.visits(), 2 * (fixed + per_op + 1));
    }
}
