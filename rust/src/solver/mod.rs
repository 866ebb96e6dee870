//! Chooses one strategy for each node of a graph: the problem of XLA's automatic sharding.
//!
//! A node has a cost and a memory usage for each of its strategies, and is live during an interval
//! of time; an edge has a cost for each pair of strategies of its two nodes. The sum of all costs
//! is minimized, where at any time the usages of the live nodes may not exceed a limit in total.
//!
//! The steps, from the lowest file to the highest:
//!
//! 1. [`json`] reads a [`problem`]; equal tables are stored once.
//! 2. `contract` merges nodes whose strategies are functions of each other to variables, and
//!    removes strategies that no choice of finite cost contains; `timeline` finds the times at
//!    which the limit can bind; `graph` stores the result in flat arrays.
//! 3. `dual` finds a price of memory for each time. `messages` computes a bound at these prices,
//!    and a choice.
//! 4. `walk` improves a choice: it frees a set of variables (`neighbourhood`) and finds their best
//!    values by elimination (`order`, `eliminate`), with its own prices of memory.
//! 5. `search` runs both on several threads that exchange their best choices.

mod anneal;
mod contract;
mod dual;
mod eliminate;
mod graph;
pub mod json;
mod messages;
mod neighbourhood;
mod order;
pub mod problem;
mod random;
mod search;
mod timeline;
mod walk;

use graph::Graph;
use problem::Problem;
pub use search::Effort;

/// Whether a choice within the limit was found, and whether one exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The choice meets the limit and has no forbidden cost.
    Feasible,
    /// No such choice was found.
    Unknown,
    /// No such choice exists.
    Infeasible,
}

/// A choice of strategies.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The strategy of each node: the best choice found, even if it is not feasible.
    pub strategies: Vec<u32>,
    /// Its cost.
    pub cost: f64,
    /// The largest memory usage at any time.
    pub peak: i64,
    /// A lower bound on the cost of feasible choices; infinite if there are none.
    pub bound: f64,
    /// A lower bound on the peak of choices without forbidden costs.
    pub least_peak: i128,
    /// Whether it is feasible.
    pub status: Status,
    /// The number of rounds.
    pub rounds: u64,
}

/// The best choice found for `problem`. After each round `progress` is called with the lowest cost
/// of a feasible choice so far and the bound; it returns whether to go on.
pub fn solve(
    problem: &Problem,
    effort: &Effort,
    progress: &mut dyn FnMut(Option<f64>, f64) -> bool,
) -> Solution {
    let Some(graph) = Graph::new(problem) else {
        return solution(problem, vec![0; problem.nodes().len()], Status::Infeasible);
    };
    let is_too_large = problem.limit().is_some_and(|limit| graph.least_peak > i128::from(limit));
    let found = (!is_too_large).then(|| search::search(&graph, effort, progress));
    let values =
        found.as_ref().map_or_else(|| graph.least_usages(), |found| found.best.values.clone());
    let mut solution = solution(problem, graph.strategies(&values), Status::Infeasible);
    solution.least_peak = graph.least_peak;
    if let Some(found) = found {
        let fits = problem.limit().is_none_or(|limit| solution.peak <= limit);
        let is_feasible = fits && solution.cost.is_finite();
        solution.status = if is_feasible { Status::Feasible } else { Status::Unknown };
        // The bound is a sum of rounded numbers.
        let bound = found.bound - 1e-9 * found.bound.abs();
        solution.bound = if is_feasible { bound.min(solution.cost) } else { bound };
        solution.rounds = found.rounds;
    }
    solution
}

fn solution(problem: &Problem, strategies: Vec<u32>, status: Status) -> Solution {
    let (cost, peak) = problem.evaluate(&strategies).unwrap_or((f64::INFINITY, i64::MAX));
    let (bound, least_peak) = (f64::INFINITY, 0);
    Solution { strategies, cost, peak, bound, least_peak, status, rounds: 0 }
}
