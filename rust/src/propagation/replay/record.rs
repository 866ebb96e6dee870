//! Makes greedy runs and records their turns.

use super::times::{Time, Times};
use super::trace::{Log, Turns};
use crate::propagation::engine::Engine;

/// The largest number of visits per op in a greedy run that is recorded.
const MOST_VISITS_OF_RUN: usize = 1_000;

/// Makes all turns after the time `after`, and adds them to `turns`. Returns the number of visits;
/// `None` if there are too many.
pub fn record(
    engine: &mut Engine<'_>,
    log: &Log,
    times: Times,
    after: Time,
    turns: &mut Turns,
) -> Option<usize> {
    let first = match after {
        Time::START => 0,
        after => times.moment(after).0.run,
    };
    let (mut taken, mut visits) = (Vec::new(), 0);
    for run in first..times.num_runs() {
        let results = |engine: &mut Engine<'_>, turns: &mut Turns, is_after: bool| {
            for index in 0..times.num_results() {
                let time = times.of_result(run, index)[usize::from(is_after)];
                if time > after {
                    engine.visit_func_result(index as usize, run as usize);
                    if !log.is_empty() {
                        turns.add(time, log, &[]);
                    }
                }
            }
        };
        results(engine, turns, false);
        engine.restart_at(times.num_passed(run, after));
        let most_visits = visits + MOST_VISITS_OF_RUN * (times.num_ops() as usize + 1);
        while let Some(position) = engine.next_marked(run as usize) {
            taken.clear();
            taken.push(position);
            visits += engine.turn(position, run as usize, false, &mut taken);
            turns.add(times.of_op(run, position), log, &taken);
            if visits > most_visits {
                return None;
            }
        }
        results(engine, turns, true);
    }
    Some(visits)
}
