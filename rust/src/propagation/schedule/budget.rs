//! How many visits a greedy run may make.

/// The visits of a greedy run before non-convergence is reported: a fixed part, and a part for each
/// op. Runs that converge make a few visits of each op. The worst case is about as many visits of
/// each op as there are axes, if every axis reaches a value in the middle of a chain of ops
/// separately.
const BUDGET: (usize, usize) = (1_000_000, 1_000);

/// Visits between two reports of progress.
const REPORT_EVERY: usize = 1 << 12;

/// Counts visits.
#[derive(Default)]
pub struct VisitBudget {
    visits: usize,
    /// The number of visits at which the budget of the greedy run is exceeded.
    last: usize,
    /// The number of visits at which the next report is due or the budget is exceeded.
    next_event: usize,
}

/// Where a greedy run is in its budget, before a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BudgetStatus {
    /// Within it.
    Within,
    /// Within it; progress is to be reported.
    ReportDue,
    /// Beyond it; non-convergence is to be reported.
    Exceeded,
}

impl VisitBudget {
    /// Starts a greedy run over `num_ops` ops.
    pub fn start_run(&mut self, num_ops: usize) {
        let (fixed, per_op) = BUDGET;
        self.last = self.visits + fixed + per_op * num_ops;
        self.next_event = self.event_after(self.visits);
    }
    /// The first number of visits after `visits` at which a report is due or the budget is
    /// exceeded.
    fn event_after(&self, visits: usize) -> usize {
        let report = (visits / REPORT_EVERY + 1) * REPORT_EVERY;
        report.min((self.last + 1).max(visits + 1))
    }
    /// Counts a visit.
    #[inline]
    pub fn spend(&mut self) -> BudgetStatus {
        self.visits += 1;
        if self.visits < self.next_event {
            return BudgetStatus::Within;
        }
        self.spend_event()
    }
    #[cold]
    fn spend_event(&mut self) -> BudgetStatus {
        self.next_event = self.event_after(self.visits);
        if self.visits % REPORT_EVERY == 0 {
            BudgetStatus::ReportDue
        } else {
            BudgetStatus::Exceeded
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
            let spent: Vec<BudgetStatus> = (0..=fixed + per_op).map(|_| budget.spend()).collect();
            let first = spent.iter().position(|&spent| spent == BudgetStatus::Exceeded);
            assert_eq!(first, Some(fixed + per_op));
            assert!(spent.contains(&BudgetStatus::ReportDue));
        }
        assert_eq!(budget.visits(), 2 * (fixed + per_op + 1));
    }
}
