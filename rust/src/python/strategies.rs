//! `shardcore.StrategyProblem`: chooses one strategy for each node, with `crate::solver`.

use super::arguments::{items, Int, Limit};
use super::errors::{raise, raise_unlocated};
use super::user_code;
use crate::error::Result;
use crate::solver::problem::Problem;
use crate::solver::{json, solve, Effort, Solution, Status};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// The most nodes, edges, or costs of a node or edge.
const MAX_LISTED: usize = 1 << 24;

type Node = (Vec<f64>, Vec<i64>, (i64, i64));
type Edge = ((i64, i64), Vec<f64>);

/// The numbers of a sequence.
fn numbers<'py, T>(list: &Bound<'py, PyAny>, what: &str) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    items(list, what, MAX_LISTED, |item| item.extract().map(|Int(number)| number))
}

/// A node: costs, usages, and the interval in which it is live.
fn node(item: &Bound<'_, PyAny>) -> PyResult<Node> {
    let (costs, usages, (Int(start), Int(end))) =
        item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, _)>()?;
    Ok((numbers(&costs, "costs")?, numbers(&usages, "usages")?, (start, end)))
}

/// An edge: its nodes, and a cost for each pair of strategies.
fn edge(item: &Bound<'_, PyAny>) -> PyResult<Edge> {
    let ((Int(first), Int(second)), costs) = item.extract::<(_, Bound<'_, PyAny>)>()?;
    Ok(((first, second), numbers(&costs, "costs")?))
}

/// Nodes with strategies, edges between them, a limit on memory.
#[pyclass(name = "StrategyProblem", module = "shardcore", frozen)]
pub struct PyStrategyProblem {
    problem: Problem,
}

#[pymethods]
impl PyStrategyProblem {
    #[new]
    #[pyo3(signature = (nodes, edges, limit=None))]
    fn new(
        py: Python<'_>,
        nodes: &Bound<'_, PyAny>,
        edges: &Bound<'_, PyAny>,
        limit: Option<Limit>,
    ) -> PyResult<Self> {
        let nodes = items(nodes, "nodes", MAX_LISTED, node)?;
        let edges = items(edges, "edges", MAX_LISTED, edge)?;
        let made = py.detach(|| -> Result<Problem> {
            let mut problem = Problem::new(limit.map(|Limit(limit)| limit));
            for (costs, usages, (start, end)) in nodes {
                problem.add_node(&costs, &usages, [start, end])?;
            }
            for ((first, second), costs) in edges {
                problem.add_edge([first, second], &costs)?;
            }
            Ok(problem)
        });
        let problem = made.map_err(|error| raise_unlocated(py, error.diagnostics))?;
        Ok(Self { problem })
    }
    #[staticmethod]
    #[pyo3(signature = (text, filename="<string>"))]
    fn from_json(py: Python<'_>, text: &str, filename: &str) -> PyResult<Self> {
        let read = py.detach(|| json::read(text));
        let problem = read.map_err(|error| raise(py, &error, text, filename))?;
        Ok(Self { problem })
    }
    #[getter]
    fn num_nodes(&self) -> usize {
        self.problem.nodes().len()
    }
    #[getter]
    fn num_edges(&self) -> usize {
        self.problem.edges().len()
    }
    #[getter]
    fn limit(&self) -> Option<i64> {
        self.problem.limit()
    }
    fn with_limit(&self, limit: Option<Limit>) -> Self {
        let mut problem = self.problem.clone();
        problem.set_limit(limit.map(|Limit(limit)| limit));
        Self { problem }
    }
    fn evaluate(&self, py: Python<'_>, strategies: &Bound<'_, PyAny>) -> PyResult<(f64, i64)> {
        let strategies: Vec<u32> = numbers(strategies, "strategies")?;
        let evaluated = py.detach(|| self.problem.evaluate(&strategies));
        evaluated.map_err(|error| raise_unlocated(py, error.diagnostics))
    }
    #[pyo3(
        signature = (seconds=None, *, rounds=None, seed=Int(0), threads=Int(2), progress=None),
        text_signature = "($self, /, seconds=None, *, rounds=None, seed=0, threads=2, progress=None)"
    )]
    fn solve(
        &self,
        py: Python<'_>,
        seconds: Option<f64>,
        rounds: Option<Int<u64>>,
        seed: Int<u64>,
        threads: Int<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyStrategySolution> {
        /// The default time limit of a search, in seconds.
        const SECONDS: f64 = 10.0;
        /// The most threads.
        const THREADS: usize = 64;
        user_code::check_depth().map_err(|error| raise_unlocated(py, error.diagnostics))?;
        let (Int(seed), Int(threads)) = (seed, threads);
        let seconds = seconds.or_else(|| rounds.is_none().then_some(SECONDS));
        let wait = seconds.map(Duration::try_from_secs_f64).transpose();
        let wait = wait
            .map_err(|_| PyValueError::new_err("seconds is a number of seconds, not negative"))?;
        if !(1..=THREADS).contains(&threads) {
            return Err(PyValueError::new_err(format!("threads is a number from 1 to {THREADS}")));
        }
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        let effort =
            Effort { deadline, rounds: rounds.map(|Int(rounds)| rounds.max(1)), seed, threads };
        let mut raised: Option<PyErr> = None;
        let solution = py.detach(|| {
            solve(&self.problem, &effort, &mut |cost, bound| {
                let called = user_code::attach(|py| {
                    py.check_signals()?;
                    let Some(progress) = &progress else { return Ok(true) };
                    let answer = progress.bind(py).call1((cost, bound))?;
                    Ok(answer.is_none() || answer.is_truthy()?)
                });
                called.map_err(|error| raised = Some(error)).unwrap_or(false)
            })
        });
        match raised {
            Some(error) => Err(error),
            None => Ok(PyStrategySolution { solution }),
        }
    }
    fn __repr__(&self) -> String {
        let (nodes, edges) = (self.num_nodes(), self.num_edges());
        let limit = self.limit().map_or_else(|| "None".to_owned(), |limit| limit.to_string());
        format!("<StrategyProblem of {nodes} nodes, {edges} edges, limit {limit}>")
    }
}

/// A choice of strategies.
#[pyclass(name = "StrategySolution", module = "shardcore", frozen)]
pub struct PyStrategySolution {
    solution: Solution,
}

#[pymethods]
impl PyStrategySolution {
    #[getter]
    fn strategies(&self) -> Vec<u32> {
        self.solution.strategies.clone()
    }
    #[getter]
    fn cost(&self) -> f64 {
        self.solution.cost
    }
    #[getter]
    fn peak(&self) -> i64 {
        self.solution.peak
    }
    #[getter]
    fn bound(&self) -> f64 {
        self.solution.bound
    }
    #[getter]
    fn least_peak(&self) -> i128 {
        self.solution.least_peak
    }
    #[getter]
    fn status(&self) -> &'static str {
        match self.solution.status {
            Status::Feasible => "feasible",
            Status::Unknown => "unknown",
            Status::Infeasible => "infeasible",
        }
    }
    #[getter]
    fn rounds(&self) -> u64 {
        self.solution.rounds
    }
    fn __repr__(&self) -> String {
        let Solution { cost, bound, .. } = &self.solution;
        format!("<StrategySolution {}: cost {cost}, bound {bound}>", self.status())
    }
}
