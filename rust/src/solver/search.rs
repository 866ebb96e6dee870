//! The search for a choice: first prices and messages, then moves; on one or more threads.

use super::anneal::Annealing;
use super::dual::Dual;
use super::graph::Graph;
use super::neighbourhood::Neighbourhoods;
use super::walk::{Trial, Walk};
use std::time::Instant;

/// The effort of a search.
#[derive(Clone, Debug)]
pub struct Effort {
    /// When to stop.
    pub deadline: Option<Instant>,
    /// The most rounds. A search that is limited by rounds and not by the deadline is
    /// deterministic.
    pub rounds: Option<u64>,
    /// Seed of the pseudo-random numbers.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
}

/// The best choice so far.
#[derive(Clone)]
pub(super) struct Incumbent {
    pub values: Vec<u16>,
    pub cost: f64,
    pub excess: i128,
}

impl Incumbent {
    pub fn of(walk: &Walk<'_>) -> Self {
        Self { values: walk.values.clone(), cost: walk.cost, excess: walk.excess }
    }
    fn is_feasible(&self, graph: &Graph) -> bool {
        self.excess == 0 && self.cost < graph.forbidden
    }
    fn is_better(&self, graph: &Graph, other: &Self) -> bool {
        let key = |this: &Self| (this.cost >= graph.forbidden, this.excess);
        key(self) < key(other) || key(self) == key(other) && self.cost < other.cost
    }
}

/// The state of the search of one thread.
struct Worker<'g> {
    walk: Walk<'g>,
    neighbourhoods: Neighbourhoods,
    /// The best choice of this thread.
    best: Incumbent,
    /// Only in the first thread.
    dual: Option<Dual>,
    /// In every second thread.
    annealing: Option<Annealing>,
    deadline: Option<Instant>,
    rounds: u64,
}

/// The result of a search.
pub(super) struct Found {
    pub best: Incumbent,
    pub bound: f64,
    pub rounds: u64,
}

/// Searches; after each round `progress` is called with the best cost within the limit, if any, and
/// the bound; it returns whether to go on.
pub(super) fn search(
    graph: &Graph,
    effort: &Effort,
    progress: &mut dyn FnMut(Option<f64>, f64) -> bool,
) -> Found {
    let mut workers: Vec<Worker<'_>> = (0..effort.threads.max(1) as u64)
        .map(|number| Worker::new(graph, effort, number))
        .collect();
    let mut rounds = 0;
    loop {
        if workers.len() == 1 {
            workers[0].round();
        } else {
            std::thread::scope(|scope| {
                for worker in &mut workers {
                    scope.spawn(|| worker.round());
                }
            });
        }
        rounds += 1;
        exchange(graph, &mut workers);
        let best = &workers[0].best;
        let bound = workers[0].dual.as_ref().map_or(f64::NEG_INFINITY, |dual| dual.bound);
        let feasible = best.is_feasible(graph);
        let proven = feasible && best.cost <= bound + 1e-9 * bound.abs();
        let ended = effort.rounds.is_some_and(|most| rounds >= most);
        let goes_on = progress(feasible.then_some(best.cost), bound);
        if proven || ended || !goes_on || workers[0].is_late() {
            return Found { best: best.clone(), bound, rounds };
        }
    }
}

/// Gives all threads the best choice and the prices.
fn exchange(graph: &Graph, workers: &mut [Worker<'_>]) {
    let mut best = workers[0].best.clone();
    for worker in &workers[1..] {
        if worker.best.is_better(graph, &best) {
            best = worker.best.clone();
        }
    }
    let prices = workers[0].dual.as_ref().map(|dual| dual.best.clone()).unwrap_or_default();
    for worker in workers {
        if best.is_better(graph, &worker.best) {
            worker.best = best.clone();
        }
        worker.walk.prices.copy_from_slice(&prices);
    }
}

/// The table entries that are visited in a round.
const ROUND: u64 = 20_000_000;

impl<'g> Worker<'g> {
    fn new(graph: &'g Graph, effort: &Effort, number: u64) -> Self {
        let seed = effort.seed.wrapping_mul(1_000_003).wrapping_add(number);
        let walk = Walk::new(graph, seed);
        Self {
            best: Incumbent::of(&walk),
            walk,
            neighbourhoods: Neighbourhoods::new(graph),
            dual: (number == 0).then(|| Dual::new(graph)),
            annealing: (number % 2 == 1).then(Annealing::new),
            deadline: effort.deadline,
            rounds: 0,
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn keep(&mut self) {
        let now = Incumbent::of(&self.walk);
        if now.is_better(self.walk.graph, &self.best) {
            self.best = now;
        }
    }

    fn round(&mut self) {
        let number = self.rounds;
        self.rounds += 1;
        if let Some(mut dual) = self.dual.take() {
            if number < 10 || number % 3 == 0 {
                self.climb(&mut dual);
                self.dual = Some(dual);
                return;
            }
            self.dual = Some(dual);
        }
        let best = self.best.is_feasible(self.walk.graph).then_some(self.best.cost);
        let random = &mut self.walk.random;
        if !self.annealing.as_mut().is_some_and(|annealing| annealing.round(best, random)) {
            self.walk.set(&self.best.values);
        }
        self.moves();
    }

    /// Takes steps of the prices.
    fn climb(&mut self, dual: &mut Dual) {
        let start = self.walk.work;
        while self.walk.work - start < ROUND && !self.is_late() {
            let bound = dual.evaluate(&mut self.walk);
            self.keep();
            let feasible = self.best.is_feasible(self.walk.graph);
            let goal = if feasible { self.best.cost } else { f64::INFINITY };
            dual.step(&mut self.walk, bound, goal);
        }
    }

    /// Makes moves from the current choice.
    fn moves(&mut self) {
        let start = self.walk.work;
        let graph = self.walk.graph;
        if graph.len() == 0 {
            return;
        }
        while self.walk.work - start < ROUND && !self.is_late() {
            let most = (graph.len().min(400) as f64).ln();
            let size = (self.walk.random.unit() * most).exp() as usize + 3;
            let slot = self.walk.worst_slot();
            let random = &mut self.walk.random;
            let free = if graph.len() < 2000 && random.unit() < 0.2 {
                (0..graph.len() as u32).collect()
            } else {
                self.neighbourhoods.pick(graph, size, slot, random)
            };
            let largest = 300 << random.below(6);
            self.one_move(&free, largest);
        }
        self.keep();
    }

    fn one_move(&mut self, free: &[u32], largest: u64) {
        let plan = self.walk.plan(free, largest);
        self.walk.start(&plan);
        let smallest = 1e-9 * self.walk.cost.abs();
        let random = &mut self.walk.random;
        let tolerance =
            self.annealing.as_ref().map_or(0.0, |annealing| annealing.tolerance(random));
        for _ in 0..8 {
            let trial = self.walk.evaluate(&plan);
            if self.is_progress(&trial, smallest) {
                self.walk.accept(&trial);
                return;
            }
            if self.walk.is_feasible() {
                if trial.excess == 0 && trial.cost != 0.0 && trial.cost < tolerance {
                    if self.walk.cost < self.best.cost {
                        self.keep();
                    }
                    self.walk.accept(&trial);
                    return;
                }
                if trial.bound > -smallest {
                    break;
                }
                self.walk.reprice(&trial, -trial.bound);
            } else {
                let rise = (-trial.bound).max(self.walk.graph.some_cost(self.walk.cost));
                self.walk.reprice(&trial, rise);
            }
        }
        self.walk.undo();
    }

    fn is_progress(&self, trial: &Trial, smallest: f64) -> bool {
        let walk = &self.walk;
        let forbidden = walk.graph.forbidden;
        let (was, is) = (walk.cost >= forbidden, walk.cost + trial.cost >= forbidden);
        if was || is {
            return !is || trial.cost < -smallest;
        }
        trial.excess < walk.excess || trial.excess == walk.excess && trial.cost <= smallest * 1e-3
    }
}
