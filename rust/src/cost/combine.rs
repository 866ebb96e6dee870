//! Combined collectives: those of one kind in a block, with the same replica groups, that do not depend on each other.
//!
//! Compilers for accelerators combine them up to a threshold, so that many short messages become a long one. Here they are
//! combined in program order, for TPUs in the opposite one; a collective larger than the threshold runs alone. Takes linear time
//! for each kind, for TPUs for each set, up to a limit.
//!
//! Source: XLA's `AllReduceCombiner`, `AllGatherCombiner` and `ReduceScatterCombiner`.

use super::dataflow::Dataflow;
use crate::compilers::target::Compiler;
use std::ops::Range;

/// The most collectives that run as one.
const MAX_COUNT: usize = 256;

/// The most visits of tasks from the last to the first; collectives that are left then run alone.
const MAX_VISITS: usize = 1 << 24;

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

/// The sets of more than one row that are combined, as `compiler` does; `candidates` are by row, `None` for rows that run alone.
pub fn combined(
    flow: &Dataflow,
    candidates: &[Option<Candidate>],
    compiler: Compiler,
) -> Vec<Vec<u32>> {
    let kinds = candidates.iter().flatten().map(|row| row.kind + 1).max().unwrap_or(0);
    let (mut sets, mut visits) = (Vec::new(), 0);
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
            if compiler.combines_from_last() {
                combine_from_last(flow, &tasks, kind, candidates, (&mut sets, &mut visits));
            } else {
                combine(flow, &tasks, kind, candidates, &mut sets);
            }
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

/// Adds the sets of one kind among `tasks` of a block, from the last to the first: what a set depends on is left out of it.
fn combine_from_last(
    flow: &Dataflow,
    tasks: &Range<u32>,
    kind: u32,
    candidates: &[Option<Candidate>],
    (sets, visits): (&mut Vec<Vec<u32>>, &mut usize),
) {
    let known = |task: u32| {
        let row = flow.tasks[task as usize].collective?;
        let known = candidates[row as usize]?;
        (known.kind == kind && known.bytes <= known.most).then_some((row, known))
    };
    let place = |task: u32| (task - tasks.start) as usize;
    let mut left: Vec<bool> = tasks.clone().map(|task| known(task).is_some()).collect();
    let mut num_left = left.iter().filter(|&&is_left| is_left).count();
    // For each task the last set that it is in or that depends on it, counted from 1.
    let mut needed = vec![0_u32; tasks.len()];
    let mut number = 0;
    for last in tasks.clone().rev() {
        if !std::mem::take(&mut left[place(last)]) {
            continue;
        }
        let Some((row, first)) = known(last) else { continue };
        num_left -= 1;
        number += 1;
        needed[place(last)] = number;
        let (mut set, mut bytes) = (vec![row], first.bytes);
        for task in (tasks.start..last).rev() {
            if num_left == 0 || *visits > MAX_VISITS {
                break;
            }
            *visits += 1;
            let users = flow.users(task).iter().filter(|&&user| tasks.contains(&user));
            if users.into_iter().any(|&user| needed[place(user)] == number) {
                needed[place(task)] = number;
                continue;
            }
            if !left[place(task)] {
                continue;
            }
            let Some((row, other)) = known(task) else { continue };
            bytes = bytes.saturating_add(other.bytes);
            if set.len() == MAX_COUNT || bytes > other.most {
                break;
            }
            needed[place(task)] = number;
            left[place(task)] = false;
            num_left -= 1;
            set.push(row);
        }
        if set.len() > 1 {
            set.reverse();
            sets.push(set);
        }
    }
}
