//! A lower bound on the cost of every choice, and a first choice, by messages between neighbours.
//!
//! Kolmogorov's sequential tree-reweighted message passing (TRW-S, 2006), which approaches the
//! bound of the linear relaxation. A sweep visits the variables in order and in reverse order; it
//! takes linear time in the entries of the tables.

use super::graph::{Graph, Neighbour};

/// The messages of all edges, one in each direction.
pub(super) struct Messages {
    /// The start in `entries` of the message from each neighbour of a variable; neighbours are
    /// numbered as in the graph.
    starts: Vec<u32>,
    /// The number of the same edge as seen from the neighbour.
    reverse: Vec<u32>,
    entries: Vec<f64>,
    own: Vec<f64>,
    scaled: Vec<f64>,
    out: Vec<f64>,
    work: u64,
}

impl Messages {
    pub fn new(graph: &Graph) -> Self {
        let mut starts = Vec::new();
        let mut reverse = Vec::new();
        let mut size = 0;
        for variable in 0..graph.len() as u32 {
            for arc in graph.arcs(variable) {
                starts.push(size);
                size += graph.sizes[variable as usize];
                let back = graph.arcs(arc.to).iter().position(|arc| arc.to == variable);
                reverse.push(graph.first_arc(arc.to) + back.unwrap_or(0) as u32);
            }
        }
        let entries = vec![0.0; size as usize];
        let arcs = (0..graph.len() as u32).flat_map(|variable| graph.arcs(variable));
        let work = arcs.map(|arc| graph.tables[arc.table as usize].len() as u64).sum();
        let (own, scaled, out) = (Vec::new(), Vec::new(), Vec::new());
        Self { starts, reverse, entries, own, scaled, out, work }
    }

    /// An estimate of the entries that a sweep visits.
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// Makes one forward and one backward sweep. `costs` are the unary costs of the variables.
    /// Returns a lower bound.
    pub fn sweep(&mut self, graph: &Graph, costs: &[f64]) -> f64 {
        for variable in 0..graph.len() as u32 {
            self.visit(graph, costs, variable, false);
        }
        let mut bound = 0.0;
        for variable in (0..graph.len() as u32).rev() {
            bound += self.visit(graph, costs, variable, true);
        }
        bound
    }

    /// Sends messages to the neighbours with higher numbers, or, if `back`, to those with lower
    /// ones.
    fn visit(&mut self, graph: &Graph, costs: &[f64], variable: u32, back: bool) -> f64 {
        let start = graph.starts[variable as usize] as usize;
        let size = graph.sizes[variable as usize] as usize;
        self.own.clear();
        self.own.extend_from_slice(&costs[start..start + size]);
        let first = graph.first_arc(variable);
        let arcs = graph.arcs(variable);
        for number in first..first + arcs.len() as u32 {
            let at = self.starts[number as usize] as usize;
            self.own.iter_mut().zip(&self.entries[at..at + size]).for_each(|(x, y)| *x += y);
        }
        let mut bound = subtract_least(&mut self.own);
        let lower = arcs.iter().filter(|arc| arc.to < variable).count();
        let share = 1.0 / lower.max(arcs.len() - lower).max(1) as f64;
        for (number, arc) in (first..).zip(arcs) {
            if (arc.to < variable) == back {
                let at = self.starts[number as usize] as usize;
                let received = &self.entries[at..at + size];
                self.scaled.clear();
                self.scaled
                    .extend(self.own.iter().zip(received).map(|(own, more)| share * own - more));
                least_pairs(graph, *arc, &self.scaled, &mut self.out);
                bound += subtract_least(&mut self.out);
                let to = self.starts[self.reverse[number as usize] as usize] as usize;
                self.entries[to..to + self.out.len()].copy_from_slice(&self.out);
            }
        }
        bound
    }

    /// The choice that the messages suggest: each variable is chosen given the variables before it,
    /// and the messages of those after it.
    pub fn choice(&mut self, graph: &Graph, costs: &[f64]) -> Vec<u16> {
        let mut values: Vec<u16> = vec![0; graph.len()];
        for variable in 0..graph.len() as u32 {
            let start = graph.starts[variable as usize] as usize;
            let size = graph.sizes[variable as usize] as usize;
            let mut own = costs[start..start + size].to_vec();
            for (number, &arc) in (graph.first_arc(variable)..).zip(graph.arcs(variable)) {
                let at = self.starts[number as usize] as usize;
                for (value, cost) in own.iter_mut().enumerate() {
                    *cost += if arc.to < variable {
                        graph.pair(variable, value as u16, arc, values[arc.to as usize])
                    } else {
                        self.entries[at + value]
                    };
                }
            }
            let best = (0..size).min_by(|&a, &b| own[a].total_cmp(&own[b]));
            values[variable as usize] = best.unwrap_or(0) as u16;
        }
        values
    }
}

/// For each value of the neighbour the minimum of `costs` plus the table's entry.
fn least_pairs(graph: &Graph, arc: Neighbour, costs: &[f64], out: &mut Vec<f64>) {
    let table = &graph.tables[arc.table as usize];
    let others = graph.sizes[arc.to as usize] as usize;
    out.clear();
    if arc.transposed {
        out.extend(table.chunks_exact(costs.len()).map(|row| {
            let sums = row.iter().zip(costs).map(|(x, y)| x + y);
            sums.fold(f64::INFINITY, |x, y| if y < x { y } else { x })
        }));
    } else {
        out.resize(others, f64::INFINITY);
        for (row, cost) in table.chunks_exact(others).zip(costs) {
            out.iter_mut()
                .zip(row)
                .for_each(|(x, y)| *x = if cost + y < *x { cost + y } else { *x });
        }
    }
}

fn subtract_least(values: &mut [f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    for x in values {
        *x -= least;
    }
    least
}
