//! Simulated annealing: if moves that lower the cost find nothing for some time, moves that raise
//! the cost are accepted for some rounds, up to an increase that falls with time. This often leads
//! to a better choice far from the previous one.

use super::random::Random;

/// Rounds without progress before an annealing cycle starts.
const PATIENCE: u64 = 4;
/// The relative decrease of the cost that counts as progress.
const PROGRESS: f64 = 3e-3;
/// Rounds of an annealing cycle.
const CYCLE: u64 = 12;
/// The initial temperatures of cycles, relative to the cost.
const HEATS: [f64; 2] = [1e-4, 3.0];

/// Decides when to accept moves that raise the cost, and by how much.
pub(super) struct Annealing {
    /// The cost at the last progress.
    cost: f64,
    /// Rounds since the last progress.
    still: u64,
    /// Rounds left of the current cycle.
    left: u64,
    /// The initial temperature of the current cycle.
    heat: f64,
}

impl Annealing {
    pub fn new() -> Self {
        Self { cost: f64::INFINITY, still: 0, left: 0, heat: 0.0 }
    }

    /// Starts a round; `best` is the cost of the best choice, if it is within the limit. Returns
    /// whether the round continues from the end of the previous one instead of from the best
    /// choice.
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

    /// The increase of the cost that the next move may cause.
    pub fn tolerance(&self, random: &mut Random) -> f64 {
        if self.left == 0 {
            return 0.0;
        }
        let cooled = self.heat * (self.left as f64 / CYCLE as f64).powi(2);
        -cooled * (1.0 - random.unit()).ln()
    }
}
