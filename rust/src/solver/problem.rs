//! The problem as given by the user: nodes, edges, live intervals, a memory limit.

use crate::error::{Code, Diagnostic, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A node: its strategies and when it is live.
#[derive(Clone, Debug)]
pub struct Node {
    /// The cost of each strategy; infinite if it is forbidden.
    pub costs: Arc<[f64]>,
    /// The memory usage of each strategy.
    pub usages: Arc<[i64]>,
    /// First time at which the node takes memory.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

/// A cost for each pair of strategies of two nodes.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The two nodes.
    pub nodes: [u32; 2],
    /// A row for each strategy of the first node, a column for each of the second; infinite if the
    /// pair is forbidden.
    pub costs: Arc<[f64]>,
}

/// The problem: choose one strategy for each node.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    limit: Option<i64>,
    cost_tables: Tables<u64, f64>,
    usage_tables: Tables<i64, i64>,
}

/// Tables by their contents: equal tables are stored once.
type Tables<K, V> = FxHashMap<Box<[K]>, Arc<[V]>>;

/// The most strategies of one node.
pub const MOST_STRATEGIES: usize = 1 << 15;

/// No sum of usages reaches this.
const MOST_USAGE: i64 = 1 << 62;

impl Problem {
    /// A problem without nodes, in which at most `limit` bytes may be live at any time.
    pub fn new(limit: Option<i64>) -> Self {
        Self { limit, ..Self::default() }
    }
    /// The nodes, in the order in which they were added.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// The edges, in the order in which they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }
    /// The largest memory that may be live at any time.
    pub const fn limit(&self) -> Option<i64> {
        self.limit
    }
    /// Sets the largest memory that may be live at any time.
    pub fn set_limit(&mut self, limit: Option<i64>) {
        self.limit = limit;
    }

    /// Adds a node that is live from `start` up to, not including, `end`.
    pub fn add_node(
        &mut self,
        costs: &[f64],
        usages: &[i64],
        [start, end]: [i64; 2],
    ) -> Result<()> {
        let node = self.nodes.len();
        let name = || format!("node {node}");
        if costs.is_empty() || costs.len() > MOST_STRATEGIES {
            let most = MOST_STRATEGIES;
            return mistake(format!("{} has {} strategies, not 1 to {most}", name(), costs.len()));
        }
        if costs.len() != usages.len() {
            let (costs, usages) = (costs.len(), usages.len());
            return mistake(format!("{} has {costs} costs and {usages} usages", name()));
        }
        check_costs(costs, &name)?;
        if let Some(usage) = usages.iter().find(|usage| !(0..MOST_USAGE).contains(*usage)) {
            return mistake(format!("{} has the usage {usage}, not one from 0 to 2^62", name()));
        }
        let at = |time: i64| u32::try_from(time).ok().filter(|&time| time < u32::MAX);
        let (Some(start), Some(end)) = (at(start), at(end)) else {
            return mistake(format!(
                "{} is live from {start} to {end}, not at 32-bit times",
                name()
            ));
        };
        let costs = shared(&mut self.cost_tables, costs, f64::to_bits);
        let usages = shared(&mut self.usage_tables, usages, |usage| usage);
        self.nodes.push(Node { costs, usages, start, end });
        Ok(())
    }

    /// Adds an edge between two existing nodes.
    pub fn add_edge(&mut self, nodes: [i64; 2], costs: &[f64]) -> Result<()> {
        let name = || format!("edge {}", self.edges.len());
        let mut ends = [0; 2];
        let mut size = 1;
        for (end, node) in ends.iter_mut().zip(nodes) {
            let Some(there) = usize::try_from(node).ok().and_then(|node| self.nodes.get(node))
            else {
                let there = self.nodes.len();
                return mistake(format!("{} names node {node}; there are {there}", name()));
            };
            *end = node as u32;
            size *= there.costs.len();
        }
        if costs.len() != size {
            let found = costs.len();
            return mistake(format!("{} has {found} costs; its nodes have {size} pairs", name()));
        }
        check_costs(costs, &name)?;
        let costs = shared(&mut self.cost_tables, costs, f64::to_bits);
        self.edges.push(Edge { nodes: ends, costs });
        Ok(())
    }

    /// The cost and the memory peak of a choice; an error if the choice is invalid.
    pub fn evaluate(&self, strategies: &[u32]) -> Result<(f64, i64)> {
        if strategies.len() != self.nodes.len() {
            let (nodes, found) = (self.nodes.len(), strategies.len());
            return mistake(format!("there are {nodes} nodes and {found} strategies"));
        }
        let mut cost = 0.0;
        let mut changes = Vec::with_capacity(2 * self.nodes.len());
        for (index, (node, &strategy)) in self.nodes.iter().zip(strategies).enumerate() {
            let Some(&own) = node.costs.get(strategy as usize) else {
                return mistake(format!("node {index} has no strategy {strategy}"));
            };
            cost += own;
            if node.start < node.end {
                let usage = i128::from(node.usages[strategy as usize]);
                changes.extend([(node.start, usage), (node.end, -usage)]);
            }
        }
        for edge in &self.edges {
            let [row, column] = edge.nodes.map(|node| strategies[node as usize] as usize);
            let columns = self.nodes[edge.nodes[1] as usize].costs.len();
            cost += edge.costs[row * columns + column];
        }
        // At equal times, ends come before starts.
        changes.sort_unstable();
        let (mut live, mut peak) = (0, 0);
        for (_, change) in changes {
            live += change;
            peak = i128::max(peak, live);
        }
        Ok((cost, i64::try_from(peak).unwrap_or(i64::MAX)))
    }
}

fn mistake<T>(message: String) -> Result<T> {
    Err(Diagnostic::new(Code::InvalidProblem, message).into())
}

fn check_costs(costs: &[f64], name: &dyn Fn() -> String) -> Result<()> {
    match costs.iter().find(|cost| cost.is_nan() || **cost < -1e30) {
        Some(cost) => mistake(format!("{} has the cost {cost}", name())),
        None => Ok(()),
    }
}

fn shared<K: Eq + std::hash::Hash, V: Copy>(
    tables: &mut Tables<K, V>,
    values: &[V],
    key: impl Fn(V) -> K,
) -> Arc<[V]> {
    let key: Box<[K]> = values.iter().map(|&value| key(value)).collect();
    tables.entry(key).or_insert_with(|| values.into()).clone()
}
