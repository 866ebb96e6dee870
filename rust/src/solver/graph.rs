//! The contracted problem as flat arrays, for the search.

use super::contract::{Contracted, Map};
use super::problem::Problem;
use super::timeline::{Span, Timeline};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A neighbour of a variable.
#[derive(Clone, Copy)]
pub(super) struct Neighbour {
    pub to: u32,
    pub table: u32,
    /// Whether the rows of the table are for the neighbour's values.
    pub transposed: bool,
}

/// Memory of a variable in the slots `from..to`: `usages[at + value]`, without the smallest usage.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub from: u32,
    pub to: u32,
    pub at: u32,
}

/// Variables, the tables between them, and their loads.
pub(super) struct Graph {
    /// The number of values of each variable.
    pub sizes: Vec<u32>,
    /// The start of the costs of each variable in `costs`.
    pub starts: Vec<u32>,
    pub costs: Vec<f64>,
    arcs_from: Vec<u32>,
    arcs: Vec<Neighbour>,
    pub tables: Vec<Arc<[f64]>>,
    loads_from: Vec<u32>,
    loads: Vec<Load>,
    pub usages: Vec<i64>,
    pub capacities: Vec<i64>,
    /// A constant part of the cost of every choice.
    pub constant: f64,
    /// The number that replaces a forbidden cost: larger than the cost of any choice without
    /// forbidden costs.
    pub forbidden: f64,
    pub least_peak: i128,
    members: Vec<Vec<(u32, Map)>>,
    fixed: Vec<(u32, u16)>,
    nodes: usize,
}

impl Graph {
    /// The graph of `problem`; `None` if every choice has a forbidden cost.
    pub fn new(problem: &Problem) -> Option<Self> {
        let contracted = Contracted::new(problem)?;
        let timeline = timeline(problem, &contracted);
        let mut graph = Self {
            sizes: Vec::new(),
            starts: Vec::new(),
            costs: Vec::new(),
            arcs_from: vec![0],
            arcs: Vec::new(),
            tables: Vec::new(),
            loads_from: vec![0],
            loads: Vec::new(),
            usages: Vec::new(),
            constant: contracted.constant,
            least_peak: timeline.least_peak,
            members: Vec::new(),
            fixed: contracted.fixed.clone(),
            nodes: problem.nodes().len(),
            capacities: Vec::new(),
            forbidden: 0.0,
        };
        graph.add_variables(problem, contracted, &timeline);
        graph.capacities = timeline.capacities;
        graph.replace_infinities();
        Some(graph)
    }

    /// Replaces infinite costs by a number, so that choices with fewer forbidden pairs are better.
    fn replace_infinities(&mut self) {
        let most = |costs: &[f64]| {
            costs.iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()))
        };
        let own: f64 = (0..self.len() as u32).map(|variable| most(self.own_costs(variable))).sum();
        let tables: Vec<f64> = self.tables.iter().map(|table| most(table)).collect();
        let pairs: f64 = self.arcs.iter().map(|arc| tables[arc.table as usize]).sum();
        self.forbidden = 10.0 * (own + pairs + self.constant.abs()).max(1e-30);
        let forbidden = self.forbidden;
        for table in &mut self.tables {
            *table = table.iter().map(|&x| if x.is_finite() { x } else { forbidden }).collect();
        }
    }

    fn add_variables(&mut self, problem: &Problem, contracted: Contracted, timeline: &Timeline) {
        let mut number = vec![u32::MAX; contracted.variables.len()];
        for (index, variable) in contracted.variables.iter().enumerate() {
            if !variable.members.is_empty() {
                number[index] = self.sizes.len() as u32;
                self.sizes.push(variable.costs.len() as u32);
            }
        }
        let mut shared: FxHashMap<Box<[u64]>, u32> = FxHashMap::default();
        let mut tables = vec![u32::MAX; contracted.tables.len()];
        for variable in contracted.variables {
            if variable.members.is_empty() {
                continue;
            }
            self.starts.push(self.costs.len() as u32);
            self.costs.extend_from_slice(&variable.costs);
            let own = self.starts.len() as u32 - 1;
            for (other, table) in variable.edges {
                let slot = &mut tables[table as usize];
                if *slot == u32::MAX {
                    let costs = &contracted.tables[table as usize].costs;
                    let key = costs.iter().map(|cost| cost.to_bits()).collect();
                    *slot = *shared.entry(key).or_insert_with(|| {
                        self.tables.push(costs.clone());
                        self.tables.len() as u32 - 1
                    });
                }
                let to = number[other as usize];
                self.arcs.push(Neighbour { to, table: *slot, transposed: to < own });
            }
            self.arcs_from.push(self.arcs.len() as u32);
            self.add_loads(problem, &variable.members, variable.costs.len(), timeline);
            self.members.push(variable.members);
        }
    }

    /// Adds the loads of a variable, one for each range of slots.
    fn add_loads(
        &mut self,
        problem: &Problem,
        members: &[(u32, Map)],
        size: usize,
        timeline: &Timeline,
    ) {
        let mut ranges: Vec<([u32; 2], u32)> = Vec::new();
        for (index, (node, map)) in members.iter().enumerate() {
            let node = &problem.nodes()[*node as usize];
            let range = timeline.range(node.start, node.end);
            if range[0] < range[1]
                && map.iter().any(|&s| node.usages[s as usize] != node.usages[map[0] as usize])
            {
                ranges.push((range, index as u32));
            }
        }
        ranges.sort_unstable();
        for same in ranges.chunk_by(|a, b| a.0 == b.0) {
            let at = self.usages.len();
            self.usages.resize(at + size, 0);
            for (_, index) in same {
                let (node, map) = &members[*index as usize];
                let usages = &problem.nodes()[*node as usize].usages;
                let least = map.iter().map(|&s| usages[s as usize]).min().unwrap_or(0);
                for (sum, &s) in self.usages[at..].iter_mut().zip(map.iter()) {
                    *sum = sum.saturating_add(usages[s as usize] - least);
                }
            }
            self.loads.push(Load { from: same[0].0[0], to: same[0].0[1], at: at as u32 });
        }
        self.loads_from.push(self.loads.len() as u32);
    }

    /// The number of variables.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }
    pub fn arcs(&self, variable: u32) -> &[Neighbour] {
        let variable = variable as usize;
        &self.arcs[self.arcs_from[variable] as usize..self.arcs_from[variable + 1] as usize]
    }
    /// The index of the first neighbour of a variable in the list of all neighbours.
    pub fn first_arc(&self, variable: u32) -> u32 {
        self.arcs_from[variable as usize]
    }
    pub fn loads(&self, variable: u32) -> &[Load] {
        let variable = variable as usize;
        &self.loads[self.loads_from[variable] as usize..self.loads_from[variable + 1] as usize]
    }
    /// A load by its index in the list of all loads.
    pub fn load(&self, number: usize) -> Load {
        self.loads[number]
    }
    pub fn own_costs(&self, variable: u32) -> &[f64] {
        let start = self.starts[variable as usize] as usize;
        &self.costs[start..start + self.sizes[variable as usize] as usize]
    }
    /// The cost of a pair of values of a variable and its neighbour.
    pub fn pair(&self, variable: u32, value: u16, arc: Neighbour, other: u16) -> f64 {
        let table = &self.tables[arc.table as usize];
        if arc.transposed {
            table[other as usize * self.sizes[variable as usize] as usize + value as usize]
        } else {
            table[value as usize * self.sizes[arc.to as usize] as usize + other as usize]
        }
    }
    /// A positive cost that is significant relative to `cost`.
    pub fn some_cost(&self, cost: f64) -> f64 {
        (0.01 * cost.abs()).max(1e-9 * self.forbidden)
    }
    /// The cost of a choice of values.
    pub fn cost(&self, values: &[u16]) -> f64 {
        let mut cost = self.constant;
        for variable in 0..self.len() as u32 {
            let value = values[variable as usize];
            cost += self.own_costs(variable)[value as usize];
            for &arc in self.arcs(variable).iter().filter(|arc| !arc.transposed) {
                cost += self.pair(variable, value, arc, values[arc.to as usize]);
            }
        }
        cost
    }
    /// For each variable the value with the smallest memory usage, summed over time.
    pub fn least_usages(&self) -> Vec<u16> {
        let least = |variable: u32| {
            let usage = |value: u32| {
                let loads = self.loads(variable).iter();
                let usages = loads.map(|load| {
                    self.usages[(load.at + value) as usize] as f64 * f64::from(load.to - load.from)
                });
                usages.sum::<f64>()
            };
            let values = 0..self.sizes[variable as usize];
            values.min_by(|&a, &b| usage(a).total_cmp(&usage(b))).unwrap_or(0) as u16
        };
        (0..self.len() as u32).map(least).collect()
    }
    /// The strategies of the nodes.
    pub fn strategies(&self, values: &[u16]) -> Vec<u32> {
        let mut strategies = vec![0; self.nodes];
        for &(node, strategy) in &self.fixed {
            strategies[node as usize] = u32::from(strategy);
        }
        for (members, &value) in self.members.iter().zip(values) {
            for (node, map) in members {
                strategies[*node as usize] = u32::from(map[value as usize]);
            }
        }
        strategies
    }
}

fn timeline(problem: &Problem, contracted: &Contracted) -> Timeline {
    let mut spans = Vec::with_capacity(problem.nodes().len());
    let mut add = |node: u32, strategies: &[u16]| {
        let node = &problem.nodes()[node as usize];
        let usages = || strategies.iter().map(|&strategy| node.usages[strategy as usize]);
        let (least, most) = (usages().min().unwrap_or(0), usages().max().unwrap_or(0));
        spans.push(Span { start: node.start, end: node.end, least, most });
    };
    for (node, strategy) in &contracted.fixed {
        add(*node, &[*strategy]);
    }
    for (node, map) in contracted.variables.iter().flat_map(|variable| &variable.members) {
        add(*node, map);
    }
    Timeline::new(&spans, problem.limit())
}
