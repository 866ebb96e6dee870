//! Annealing: where moves that only improve find nothing better, moves that make a choice worse are taken for some
//! rounds, the less worse the later. What is then found is often a better choice far from the one before.

use super::random::Random;

/// Rounds without progress before a cycle starts.
const PATIENCE: u64 = 4;
/// The fall of the cost, as a share, that is progress.
const PROGRESS: f64 = 3e-3;
/// Rounds of a cycle.
const CYCLE: u64 = 12;
/// The temperatures that cycles start with, as shares of the cost.
const HEATS: [f64; 2] = [1e-4, 3.0];

/// When to take moves that make a choice worse, and how much worse.
pub(super) struct Annealing {
    /// The cost when there was progress last.
    cost: f64,
    /// Rounds since then.
    still: u64,
    /// Rounds left of the present cycle.
    left: u64,
    /// The temperature that the present cycle started with.
    heat: f64,
}

impl Annealing {
    pub fn new() -> Self {
        Self { cost: f64::INFINITY, still: 0, left: 0, heat: 0.0 }
    }

    /// Starts a round; `best` is the cost of the best choice, if it meets the limit. Returns whether the round goes on
    /// from where the one before ended, and not from the best choice.
    pub fn round(&mut self, best: Option<f64>, random: &mut Random) -> bool {
        let Some(best) = best else {
            self.left = 0;
            return false;
        };
        if best < self.cost - PROGRESS * self.cost.abs() || self.cost.is_infinite() {
            (self.cost, self.still) = (best, 0);
        }
        self.still += 1;
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        if self.still > PATIENCE {
            let [least, most] = HEATS;
            self.heat = best.abs() * least * (most / least).powf(random.unit());
            (self.left, self.still) = (CYCLE, 0);
        }
        false
    }

    /// How much worse the next move may make the choice.
    pub fn tolerance(&self, random: &mut Random) -> f64 {
        if self.left == 0 {
            return 0.0;
        }
        let cooled = self.heat * (self.left as f64 / CYCLE as f64).powi(2);
        -cooled * (1.0 - random.unit()).ln()
    }
}
