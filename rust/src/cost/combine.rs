//! Combined collectives: those of one kind in a block, with the same replica groups, that do not depend on each other.
//!
//! Compilers for accelerators combine them up to a threshold, so that many short messages become a long one. Here they are
//! combined in program order; a collective larger than the threshold runs alone. Takes linear time for each kind.
//!
//! Source: XLA's `AllReduceCombiner`, `AllGatherCombiner` and `ReduceScatterCombiner`.

use super::dataflow::Dataflow;
use std::ops::Range;

/// The most collectives that run as one.
const MAX_COUNT: usize = 256;

/// The most kinds of collectives that are combined.
const MAX_KINDS: u32 = 64;

/// A row of `ProgramCost::collectives` that may run as one with others.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its kind: collectives of one kind have equal groups, element types and reducers. Numbered from 0.
    pub kind: u32,
    /// Its bytes.
    pub bytes: u128,
    /// The byte threshold of its set.
    pub most: u128,
}

/// The sets of more than one row that are combined; `candidates` are by row, `None` for rows that run alone.
pub fn combined(flow: &Dataflow, candidates: &[Option<Candidate>]) -> Vec<Vec<u32>> {
    let kinds = candidates.iter().flatten().map(|row| row.kind + 1).max().unwrap_or(0);
    let mut sets = Vec::new();
    for block in &flow.blocks {
        // From the first task of each kind to the last.
        let mut ranges: Vec<Range<u32>> = vec![0..0; kinds.min(MAX_KINDS) as usize];
        for task in block.tasks.0..block.tasks.1 {
            let row = flow.tasks[task as usize].collective;
            let row = row.and_then(|row| candidates[row as usize]);
            if let Some(range) = row.and_then(|row| ranges.get_mut(row.kind as usize)) {
                let first = if range.start == range.end { task } else { range.start };
                *range = first..task + 1;
            }
        }
        for (kind, tasks) in (0..).zip(ranges).filter(|(_, tasks)| tasks.len() > 1) {
            combine(flow, &tasks, kind, candidates, &mut sets);
        }
    }
    sets
}

/// Adds the sets of one kind among `tasks` of a block.
fn combine(
    flow: &Dataflow,
    tasks: &Range<u32>,
    kind: u32,
    candidates: &[Option<Candidate>],
    sets: &mut Vec<Vec<u32>>,
) {
    // For each task the last set that it depends on, counted from 1.
    let mut reached = vec![0_u32; tasks.len()];
    let (mut number, mut set, mut bytes) = (1_u32, Vec::new(), 0_u128);
    let mut close = |set: &mut Vec<u32>| {
        let set = std::mem::take(set);
        if set.len() > 1 {
            sets.push(set);
        }
    };
    for task in tasks.clone() {
        let mut own = reached[(task - tasks.start) as usize];
        let row = flow.tasks[task as usize].collective;
        let known = row.and_then(|row| Some((row, candidates[row as usize]?)));
        let known = known.filter(|(_, known)| known.kind == kind && known.bytes <= known.most);
        if let Some((row, known)) = known {
            let sum = bytes.saturating_add(known.bytes);
            if own == number || set.len() == MAX_COUNT || sum > known.most {
                close(&mut set);
                (number, bytes) = (number + 1, 0);
            }
            set.push(row);
            bytes = bytes.saturating_add(known.bytes);
            own = number;
        }
        if own == 0 {
            continue;
        }
        for &user in flow.users(task).iter().filter(|&user| tasks.contains(user)) {
            let reached = &mut reached[(user - tasks.start) as usize];
            *reached = own.max(*reached);
        }
    }
    close(&mut set);
}
