//! A choice that is changed by large-neighbourhood moves.
//!
//! A *move* frees some variables and finds their best values by elimination, where the memory of
//! each slot has a price (its Lagrange multiplier). It raises the prices where the limit is
//! exceeded, lowers them where memory is left, and repeats. The prices follow Polyak's rule for
//! subgradients: the step size is such that the bound given by the prices would rise to the cost to
//! be beaten. If the bound reaches that cost, the neighbourhood has nothing better.

use super::eliminate::{Elimination, Plan};
use super::graph::Graph;
use super::order::Orders;
use super::random::Random;

/// A choice, its memory usage, and buffers for moves.
pub(super) struct Walk<'g> {
    pub graph: &'g Graph,
    pub values: Vec<u16>,
    /// The values before the move.
    before: Vec<u16>,
    pub cost: f64,
    /// The memory usage of each slot beyond the smallest one.
    usage: Vec<i64>,
    /// The sum over all slots of the excess over the limit.
    pub excess: i128,
    /// The price of memory in each slot.
    pub prices: Vec<f64>,
    trial_prices: Vec<f64>,
    /// Prefix sums of the trial prices over slots.
    sums: Vec<f64>,
    trial: Vec<i64>,
    /// The slots in which variables of the move have memory.
    span: std::ops::Range<usize>,
    base: Vec<f64>,
    costs: Vec<f64>,
    chosen: Vec<u16>,
    changed: Vec<u32>,
    position: Vec<u32>,
    orders: Orders,
    elimination: Elimination,
    pub random: Random,
    /// An estimate of the table entries visited so far.
    pub work: u64,
}

/// The result of one evaluation of prices.
pub(super) struct Trial {
    /// The change of the cost.
    pub cost: f64,
    pub excess: i128,
    /// A lower bound on the change of the cost by any values within the limit.
    pub bound: f64,
    /// The squared norm of the subgradient.
    slope: f64,
}

impl<'g> Walk<'g> {
    pub fn new(graph: &'g Graph, seed: u64) -> Self {
        let slots = graph.capacities.len();
        let mut walk = Self {
            graph,
            values: vec![0; graph.len()],
            before: vec![0; graph.len()],
            cost: 0.0,
            usage: vec![0; slots],
            excess: 0,
            prices: vec![0.0; slots],
            trial_prices: vec![0.0; slots],
            sums: vec![0.0; slots + 1],
            trial: vec![0; slots + 1],
            span: 0..slots,
            base: Vec::new(),
            costs: Vec::new(),
            chosen: Vec::new(),
            changed: Vec::new(),
            position: vec![u32::MAX; graph.len()],
            orders: Orders::new(graph),
            elimination: Elimination::default(),
            random: Random::new(seed),
            work: 0,
        };
        let values = (0..graph.len() as u32).map(|variable| {
            let costs = graph.own_costs(variable);
            (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0) as u16
        });
        let values: Vec<u16> = values.collect();
        walk.set(&values);
        walk
    }

    /// Sets the choice.
    pub fn set(&mut self, values: &[u16]) {
        self.values.copy_from_slice(values);
        self.before.copy_from_slice(values);
        self.cost = self.graph.cost(values);
        self.trial.fill(0);
        for (variable, &value) in values.iter().enumerate() {
            for load in self.graph.loads(variable as u32) {
                let usage = self.graph.usages[load.at as usize + value as usize];
                self.trial[load.from as usize] += usage;
                self.trial[load.to as usize] -= usage;
            }
        }
        let mut sum = 0;
        for (usage, change) in self.usage.iter_mut().zip(&self.trial) {
            sum += change;
            *usage = sum;
        }
        self.changed.clear();
        self.excess = excess(&self.usage, &self.graph.capacities);
    }

    /// Whether the choice is within the limit and has no forbidden cost.
    pub fn is_feasible(&self) -> bool {
        self.excess == 0 && self.cost < self.graph.forbidden
    }

    /// A plan that frees the variables `free`, except those that would need tables larger than
    /// `largest`.
    pub fn plan(&mut self, free: &[u32], largest: u64) -> Plan {
        self.work += 2000 + 50 * free.len() as u64;
        let order = self.orders.order(self.graph, free, largest, &mut self.random);
        Plan::new(self.graph, order, &mut self.position)
    }

    /// Starts a move.
    pub fn start(&mut self, plan: &Plan) {
        plan.costs(self.graph, &self.values, &mut self.base);
        let mut span = self.usage.len()..0;
        for load in plan.variables.iter().flat_map(|&variable| self.graph.loads(variable)) {
            span = span.start.min(load.from as usize)..span.end.max(load.to as usize);
        }
        self.span = if span.is_empty() { 0..0 } else { span };
        let span = self.span.clone();
        self.trial_prices[span.clone()].copy_from_slice(&self.prices[span]);
    }

    /// The slot with the largest excess over the limit.
    pub fn worst_slot(&self) -> Option<u32> {
        if self.excess == 0 {
            return None;
        }
        (0..self.usage.len()).max_by_key(|&slot| self.over(slot)).map(|slot| slot as u32)
    }

    /// The excess of the choice over the capacity of a slot.
    pub fn over(&self, slot: usize) -> i64 {
        self.usage[slot] - self.graph.capacities[slot]
    }

    /// Adds the prices of memory to the unary costs of all variables.
    pub fn priced(&mut self, costs: &mut Vec<f64>) {
        self.span = 0..self.usage.len();
        self.trial_prices.copy_from_slice(&self.prices);
        self.sum_prices();
        costs.clone_from(&self.graph.costs);
        for variable in 0..self.graph.len() {
            let start = self.graph.starts[variable] as usize;
            let own = &mut costs[start..start + self.graph.sizes[variable] as usize];
            self.add_prices(variable as u32, own);
        }
    }

    /// The value of the capacities at the current prices.
    pub fn worth(&self) -> f64 {
        let capacities = self.graph.capacities.iter().map(|&capacity| capacity as f64);
        self.prices.iter().zip(capacities).map(|(price, capacity)| price * capacity).sum()
    }

    fn sum_prices(&mut self) {
        let mut sum = 0.0;
        self.sums[self.span.start] = sum;
        let prices = &self.trial_prices[self.span.clone()];
        for (after, price) in self.sums[self.span.start + 1..].iter_mut().zip(prices) {
            sum += price;
            *after = sum;
        }
    }

    fn add_prices(&self, variable: u32, own: &mut [f64]) {
        for load in self.graph.loads(variable) {
            let price = self.sums[load.to as usize] - self.sums[load.from as usize];
            if price > 0.0 {
                let usages = &self.graph.usages[load.at as usize..];
                own.iter_mut().zip(usages).for_each(|(cost, &usage)| *cost += price * usage as f64);
            }
        }
    }

    /// Finds the best values at the trial prices, and sets the trial values to them.
    pub fn evaluate(&mut self, plan: &Plan) -> Trial {
        self.work += plan.work() + 4 * self.span.len() as u64;
        self.sum_prices();
        let mut costs = std::mem::take(&mut self.costs);
        costs.clone_from(&self.base);
        for (at, &variable) in plan.variables.iter().enumerate() {
            self.add_prices(variable, &mut costs[plan.starts[at]..plan.starts[at + 1]]);
        }
        self.elimination.run(self.graph, plan, &mut costs, &mut self.chosen);
        self.costs = costs;
        self.undo();
        for (at, &variable) in plan.variables.iter().enumerate() {
            if self.values[variable as usize] != self.chosen[at] {
                self.values[variable as usize] = self.chosen[at];
                self.changed.push(variable);
            }
        }
        self.measure()
    }

    /// Computes what the trial values change.
    fn measure(&mut self) -> Trial {
        self.trial[self.span.start..=self.span.end].fill(0);
        let mut cost = 0.0;
        for &variable in &self.changed {
            let [old, new] = [&self.before, &self.values].map(|values| values[variable as usize]);
            let own = self.graph.own_costs(variable);
            cost += own[new as usize] - own[old as usize];
            for &arc in self.graph.arcs(variable) {
                let [was, is] = [&self.before, &self.values].map(|values| values[arc.to as usize]);
                if was == is || variable < arc.to {
                    cost += self.graph.pair(variable, new, arc, is)
                        - self.graph.pair(variable, old, arc, was);
                }
            }
            for load in self.graph.loads(variable) {
                let usages = &self.graph.usages[load.at as usize..];
                let more = usages[new as usize] - usages[old as usize];
                self.trial[load.from as usize] += more;
                self.trial[load.to as usize] -= more;
            }
        }
        let mut trial = Trial { cost, excess: self.excess, bound: cost, slope: 0.0 };
        let mut more = 0;
        for slot in self.span.clone() {
            more += self.trial[slot];
            let before = self.over(slot);
            let over = before + more;
            self.trial[slot] = over;
            if before > 0 {
                trial.excess -= i128::from(before);
            }
            let price = self.trial_prices[slot];
            if over > 0 {
                trial.excess += i128::from(over);
            }
            if over > 0 || price > 0.0 {
                trial.bound += price * over as f64;
                trial.slope += (over as f64).powi(2);
            }
        }
        trial
    }

    /// Moves the trial prices so that the bound would rise by `rise`.
    pub fn reprice(&mut self, trial: &Trial, rise: f64) {
        if trial.slope > 0.0 {
            let step = rise / trial.slope;
            let span = self.span.clone();
            for (price, &over) in self.trial_prices[span.clone()].iter_mut().zip(&self.trial[span])
            {
                *price = (*price + step * over as f64).max(0.0);
            }
        }
    }

    /// Sets the choice to the trial values.
    pub fn accept(&mut self, trial: &Trial) {
        self.cost += trial.cost;
        self.excess = trial.excess;
        for slot in self.span.clone() {
            self.usage[slot] = self.trial[slot] + self.graph.capacities[slot];
        }
        for variable in self.changed.drain(..) {
            self.before[variable as usize] = self.values[variable as usize];
        }
    }

    /// Restores the values before the move.
    pub fn undo(&mut self) {
        for variable in self.changed.drain(..) {
            self.values[variable as usize] = self.before[variable as usize];
        }
    }
}

fn excess(usage: &[i64], capacities: &[i64]) -> i128 {
    let over = usage.iter().zip(capacities).map(|(usage, capacity)| usage - capacity);
    over.filter(|&over| over > 0).map(i128::from).sum()
}
