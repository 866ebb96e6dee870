//! Maximizes the lower bound over prices of memory (Lagrange multipliers), by the volume algorithm
//! (Barahona and Anbil, 2000).
//!
//! A step moves from the best prices so far along the mean excess of recent choices over the limit.

use super::eliminate::Plan;
use super::graph::Graph;
use super::messages::Messages;
use super::walk::Walk;

/// Message sweeps before the first step, and between steps.
const FIRST_SWEEPS: u64 = 20;
const SWEEPS: u64 = 4;
/// Steps that use the same elimination plan.
const PLAN_STEPS: u64 = 6;
/// The largest table of the elimination that improves a choice.
const LARGEST: u64 = 10_000;
/// The largest such table in graphs of more than `MANY` variables.
const LARGEST_OF_MANY: u64 = 1_500;
const MANY: usize = 2_000;

/// The state of the maximization.
pub(super) struct Dual {
    messages: Messages,
    costs: Vec<f64>,
    /// The prices of the best bound.
    pub best: Vec<f64>,
    /// The best bound: no choice within the limit costs less.
    pub bound: f64,
    /// The mean excess of recent choices over the capacities.
    mean: Vec<f64>,
    rate: f64,
    /// The assumed distance of the best cost from the bound, while no choice within the limit is
    /// known.
    hope: f64,
    failures: u32,
    steps: u64,
    plan: Plan,
}

impl Dual {
    pub fn new(graph: &Graph) -> Self {
        let slots = graph.capacities.len();
        Self {
            messages: Messages::new(graph),
            costs: Vec::new(),
            best: vec![0.0; slots],
            bound: f64::NEG_INFINITY,
            mean: vec![0.0; slots],
            rate: 1.0,
            hope: 0.1,
            failures: 0,
            steps: 0,
            plan: Plan::default(),
        }
    }

    /// Sends messages at the prices of `walk`, and sets `walk` to the choice that they suggest,
    /// improved by one elimination at these prices. Returns the bound at these prices.
    pub fn evaluate(&mut self, walk: &mut Walk<'_>) -> f64 {
        let graph = walk.graph;
        walk.priced(&mut self.costs);
        let mut bound = 0.0;
        let sweeps = match self.steps {
            0 => FIRST_SWEEPS,
            _ if graph.len() > MANY => 1,
            _ => SWEEPS,
        };
        walk.work += sweeps * self.messages.work();
        for _ in 0..sweeps {
            bound = self.messages.sweep(graph, &self.costs);
        }
        bound += graph.constant - walk.worth();
        let choice = self.messages.choice(graph, &self.costs);
        walk.set(&choice);
        if self.steps % PLAN_STEPS == 0 {
            let all: Vec<u32> = (0..graph.len() as u32).collect();
            let largest = if graph.len() > MANY { LARGEST_OF_MANY } else { LARGEST };
            self.plan = walk.plan(&all, largest);
        }
        walk.start(&self.plan);
        let trial = walk.evaluate(&self.plan);
        walk.accept(&trial);
        bound
    }

    /// Takes a step from the prices of `walk`, whose bound is `bound`; `goal` is the best known
    /// cost.
    pub fn step(&mut self, walk: &mut Walk<'_>, bound: f64, goal: f64) {
        let better = bound > self.bound;
        let much = bound > self.bound + 1e-4 * self.bound.abs();
        if better || self.steps == 0 {
            self.bound = bound;
            self.best.copy_from_slice(&walk.prices);
        }
        let weight = if self.steps == 0 { 1.0 } else { 0.25 };
        self.steps += 1;
        if much {
            self.failures = 0;
            self.rate = (self.rate * 1.1).min(2.0);
        } else {
            self.failures += 1;
            if self.failures >= 5 {
                self.failures = 0;
                self.rate = if self.rate < 0.01 { 0.3 } else { self.rate * 0.66 };
            }
        }
        let mut slope = 0.0;
        for (slot, mean) in self.mean.iter_mut().enumerate() {
            *mean += weight * (walk.over(slot) as f64 - *mean);
            if *mean > 0.0 || self.best[slot] > 0.0 {
                slope += *mean * *mean;
            }
        }
        let rise = if goal.is_finite() {
            (goal - self.bound).max(1e-4 * goal.abs())
        } else {
            self.hope = (self.hope * 1.25).min(3.0);
            self.hope * walk.graph.some_cost(100.0 * self.bound)
        };
        let step = if slope > 0.0 { self.rate * rise / slope } else { 0.0 };
        for ((price, &best), &mean) in walk.prices.iter_mut().zip(&self.best).zip(&self.mean) {
            *price = (best + step * mean).max(0.0);
        }
    }
}
