//! Finds the best values of some variables while all others are fixed, by variable elimination.

use super::graph::Graph;

/// Where the costs of a factor are stored.
#[derive(Clone, Copy)]
enum Source {
    /// A table of the graph.
    Table(u32),
    /// A message, which starts at this entry.
    Message(usize),
}

/// A term of the cost that depends on a variable.
struct Factor {
    source: Source,
    /// The stride between the entries of two values of the variable.
    stride: usize,
    /// The strides between the entries of two values of each variable of the scope: a range of
    /// `Plan::strides`.
    strides: usize,
}

/// The elimination of one variable.
struct Step {
    /// The range of its scope in `Plan::scopes`: the remaining variables that it depends on, by
    /// position.
    scope: [usize; 2],
    factors: [usize; 2],
    /// The offset and the size of its message.
    message: usize,
    size: usize,
}

/// An edge to a variable that is not eliminated.
struct Border {
    position: u32,
    to: u32,
    table: u32,
    transposed: bool,
}

/// How variables are eliminated; independent of costs.
#[derive(Default)]
pub(super) struct Plan {
    /// The variables in the order of elimination; a variable's *position* is its index here.
    pub variables: Vec<u32>,
    /// The start of the costs of each position, and the end.
    pub starts: Vec<usize>,
    sizes: Vec<usize>,
    steps: Vec<Step>,
    scopes: Vec<u32>,
    factors: Vec<Factor>,
    strides: Vec<usize>,
    borders: Vec<Border>,
    messages: usize,
    work: u64,
}

impl Plan {
    /// The plan for an order; `position` is a buffer with `u32::MAX` for every variable, before and
    /// after.
    pub fn new(graph: &Graph, order: Vec<u32>, position: &mut [u32]) -> Self {
        let mut plan = Self { variables: order, ..Self::default() };
        let mut starts = 0;
        for (at, &variable) in plan.variables.iter().enumerate() {
            position[variable as usize] = at as u32;
            plan.starts.push(starts);
            plan.sizes.push(graph.sizes[variable as usize] as usize);
            starts += graph.sizes[variable as usize] as usize;
        }
        plan.starts.push(starts);
        // The steps whose messages each position receives.
        let mut received: Vec<Vec<u32>> = vec![Vec::new(); plan.variables.len()];
        for at in 0..plan.variables.len() {
            let messages = std::mem::take(&mut received[at]);
            let scope = plan.add_step(graph, at, &messages, position);
            if let Some(&next) = plan.scopes.get(scope) {
                received[next as usize].push(at as u32);
            }
        }
        for &variable in &plan.variables {
            position[variable as usize] = u32::MAX;
        }
        plan
    }

    /// An estimate of the entries that a run visits.
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// Adds the step of the variable at position `at`. Returns the start of its scope.
    fn add_step(&mut self, graph: &Graph, at: usize, messages: &[u32], position: &[u32]) -> usize {
        let variable = self.variables[at];
        let mut scope: Vec<u32> = Vec::new();
        for arc in graph.arcs(variable) {
            let to = position[arc.to as usize];
            if to == u32::MAX {
                let (table, transposed) = (arc.table, arc.transposed);
                self.borders.push(Border { position: at as u32, to: arc.to, table, transposed });
            } else if to > at as u32 {
                scope.push(to);
            }
        }
        for &message in messages {
            let [start, end] = self.steps[message as usize].scope;
            scope.extend(self.scopes[start..end].iter().filter(|&&to| to > at as u32));
        }
        scope.sort_unstable();
        scope.dedup();
        let factors = self.factors.len();
        let stride_at = |to: u32| scope.binary_search(&to).unwrap_or(usize::MAX);
        for arc in graph.arcs(variable) {
            let to = position[arc.to as usize];
            if to != u32::MAX && to > at as u32 {
                let [own, other] = [self.sizes[at], self.sizes[to as usize]];
                let (stride, across) = if arc.transposed { (1, own) } else { (other, 1) };
                let strides = self.strides.len();
                self.strides.resize(strides + scope.len(), 0);
                self.strides[strides + stride_at(to)] = across;
                self.factors.push(Factor { source: Source::Table(arc.table), stride, strides });
            }
        }
        for &message in messages {
            let Step { scope: [start, end], message, .. } = self.steps[message as usize];
            if end - start == 1 {
                // It is added to the costs of the variable instead.
                continue;
            }
            let strides = self.strides.len();
            self.strides.resize(strides + scope.len(), 0);
            let mut across = 1;
            for &to in self.scopes[start + 1..end].iter().rev() {
                self.strides[strides + stride_at(to)] = across;
                across *= self.sizes[to as usize];
            }
            self.factors.push(Factor { source: Source::Message(message), stride: across, strides });
        }
        let start = self.scopes.len();
        let size = scope.iter().map(|&to| self.sizes[to as usize]).product();
        self.steps.push(Step {
            scope: [start, start + scope.len()],
            factors: [factors, self.factors.len()],
            message: self.messages,
            size,
        });
        self.work += (size * self.sizes[at] + 30) as u64;
        if scope.len() > 1 {
            self.messages += size;
        }
        self.scopes.extend(scope);
        start
    }

    /// The unary costs of every variable of the plan, including those of its edges to fixed
    /// variables.
    pub fn costs(&self, graph: &Graph, values: &[u16], costs: &mut Vec<f64>) {
        costs.clear();
        for &variable in &self.variables {
            costs.extend_from_slice(graph.own_costs(variable));
        }
        for &Border { position, to, table, transposed } in &self.borders {
            let position = position as usize;
            let own = &mut costs[self.starts[position]..self.starts[position + 1]];
            let value = values[to as usize] as usize;
            let table = &graph.tables[table as usize];
            if transposed {
                let size = own.len();
                let row = &table[value * size..(value + 1) * size];
                own.iter_mut().zip(row).for_each(|(cost, more)| *cost += more);
            } else {
                let others = graph.sizes[to as usize] as usize;
                let column = table[value..].iter().step_by(others);
                own.iter_mut().zip(column).for_each(|(cost, more)| *cost += more);
            }
        }
    }
}

/// Buffers for running plans.
#[derive(Default)]
pub(super) struct Elimination {
    messages: Vec<f64>,
    sums: Vec<f64>,
    least: Vec<f64>,
    counters: Vec<usize>,
}

impl Elimination {
    /// Stores the best values of the variables of `plan` in `chosen`, by position. Returns their
    /// cost. `costs` has the cost of each value of each position, and is overwritten.
    pub fn run(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        costs: &mut [f64],
        chosen: &mut Vec<u16>,
    ) -> f64 {
        self.messages.resize(plan.messages.max(self.messages.len()), 0.0);
        let mut total = 0.0;
        for at in 0..plan.steps.len() {
            total += self.eliminate(graph, plan, costs, at);
        }
        chosen.clear();
        chosen.resize(plan.variables.len(), 0);
        for at in (0..plan.steps.len()).rev() {
            chosen[at] = self.best_value(graph, plan, costs, chosen, at);
        }
        total
    }

    /// Computes the message of a step. Returns the part of the cost that depends on no other
    /// variable.
    fn eliminate(&mut self, graph: &Graph, plan: &Plan, costs: &mut [f64], at: usize) -> f64 {
        let step = &plan.steps[at];
        let (own, later) = costs.split_at_mut(plan.starts[at + 1]);
        let own = &own[plan.starts[at]..];
        let scope = &plan.scopes[step.scope[0]..step.scope[1]];
        if scope.is_empty() {
            return own.iter().copied().fold(f64::INFINITY, f64::min);
        }
        let mut least = std::mem::take(&mut self.least);
        least.clear();
        least.resize(step.size, f64::INFINITY);
        let factors = &plan.factors[step.factors[0]..step.factors[1]];
        if let ([Factor { source: Source::Table(table), stride, strides }], 1) =
            (factors, scope.len())
        {
            one_table(
                own,
                &graph.tables[*table as usize],
                *stride,
                plan.strides[*strides],
                &mut least,
            );
        } else {
            for (value, &cost) in own.iter().enumerate() {
                if cost.is_finite() {
                    self.sum(graph, plan, step, value, cost);
                    least.iter_mut().zip(&self.sums).for_each(|(x, &y)| *x = x.min(y));
                }
            }
        }
        // A message stores only differences, so that long chains do not lose precision.
        let base = least.iter().copied().fold(f64::INFINITY, f64::min);
        if base.is_finite() {
            for x in &mut least {
                *x -= base;
            }
        }
        if let [to] = scope {
            let start = plan.starts[*to as usize] - plan.starts[at + 1];
            later[start..start + step.size].iter_mut().zip(&least).for_each(|(x, y)| *x += y);
        } else {
            self.messages[step.message..step.message + step.size].copy_from_slice(&least);
        }
        self.least = least;
        base
    }

    /// Sums the factors of a step for one value of its variable, for all values of the scope.
    fn sum(&mut self, graph: &Graph, plan: &Plan, step: &Step, value: usize, cost: f64) {
        self.sums.clear();
        self.sums.resize(step.size, cost);
        let scope = &plan.scopes[step.scope[0]..step.scope[1]];
        let (&last, outer) = scope.split_last().unwrap_or((&0, &[]));
        let width = plan.sizes[last as usize];
        for factor in &plan.factors[step.factors[0]..step.factors[1]] {
            let entries: &[f64] = match factor.source {
                Source::Table(table) => &graph.tables[table as usize],
                Source::Message(start) => &self.messages[start..],
            };
            let strides = &plan.strides[factor.strides..factor.strides + scope.len()];
            let along = strides[outer.len()];
            let mut at = factor.stride * value;
            self.counters.clear();
            self.counters.resize(outer.len(), 0);
            for row in self.sums.chunks_exact_mut(width) {
                match along {
                    0 => row.iter_mut().for_each(|sum| *sum += entries[at]),
                    1 => row.iter_mut().zip(&entries[at..at + width]).for_each(|(x, y)| *x += y),
                    _ => row
                        .iter_mut()
                        .zip(entries[at..].iter().step_by(along))
                        .for_each(|(x, y)| *x += y),
                }
                for (place, counter) in self.counters.iter_mut().enumerate().rev() {
                    *counter += 1;
                    at += strides[place];
                    if *counter < plan.sizes[outer[place] as usize] {
                        break;
                    }
                    at -= strides[place] * *counter;
                    *counter = 0;
                }
            }
        }
    }

    /// The best value of a step's variable, given the values of its scope.
    fn best_value(
        &self,
        graph: &Graph,
        plan: &Plan,
        costs: &[f64],
        chosen: &[u16],
        at: usize,
    ) -> u16 {
        let step = &plan.steps[at];
        let scope = &plan.scopes[step.scope[0]..step.scope[1]];
        let mut best = (f64::INFINITY, 0);
        for (value, &own) in costs[plan.starts[at]..plan.starts[at + 1]].iter().enumerate() {
            if !own.is_finite() {
                continue;
            }
            let mut cost = own;
            for factor in &plan.factors[step.factors[0]..step.factors[1]] {
                let entries: &[f64] = match factor.source {
                    Source::Table(table) => &graph.tables[table as usize],
                    Source::Message(start) => &self.messages[start..],
                };
                let strides = &plan.strides[factor.strides..];
                let along = scope
                    .iter()
                    .zip(strides)
                    .map(|(&to, stride)| chosen[to as usize] as usize * stride);
                cost += entries[factor.stride * value + along.sum::<usize>()];
            }
            if cost < best.0 {
                best = (cost, value as u16);
            }
        }
        best.1
    }
}

/// The message over one table.
fn one_table(own: &[f64], table: &[f64], stride: usize, along: usize, least: &mut [f64]) {
    if along == 1 {
        for (row, &cost) in table.chunks_exact(stride).zip(own) {
            if cost.is_finite() {
                least.iter_mut().zip(row).for_each(|(x, &y)| *x = x.min(cost + y));
            }
        }
    } else {
        for (row, x) in table.chunks_exact(along).zip(least) {
            *x = row.iter().zip(own).map(|(y, cost)| y + cost).fold(f64::INFINITY, f64::min);
        }
    }
}
