//! Collectives that run as one: those of one kind in a block, among the same devices, that do not depend on each other.
//!
//! Compilers for accelerators combine them up to a threshold, so that many short messages become a long one. Here they are
//! combined in program order; a collective larger than the threshold runs alone. Takes linear time for each kind.
//!
//! Source: XLA's `AllReduceCombiner`, `AllGatherCombiner` and `ReduceScatterCombiner`.

use super::dataflow::{Dataflow, TaskBlock};

/// The most collectives that run as one.
const MAX_COUNT: usize = 256;

/// The most kinds of collectives that are combined.
const MAX_KINDS: u32 = 64;

/// A row of `ProgramCost::collectives` that may run as one with others.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its kind: those of one kind have equal devices, element types and reductions. Numbered from 0.
    pub kind: u32,
    /// Its bytes.
    pub bytes: u128,
    /// The most bytes of a set.
    pub most: u128,
}

/// The sets of more than one row that run as one; `candidates` are the rows, `None` for those that run alone.
pub fn combined(flow: &Dataflow, candidates: &[Option<Candidate>]) -> Vec<Vec<u32>> {
    let kinds = candidates.iter().flatten().map(|row| row.kind + 1).max().unwrap_or(0);
    let mut sets = Vec::new();
    for block in &flow.blocks {
        let mut counts = vec![0_u32; kinds.min(MAX_KINDS) as usize];
        for task in &flow.tasks[block.tasks.0 as usize..block.tasks.1 as usize] {
            let row = task.collective.and_then(|row| candidates[row as usize]);
            if let Some(count) = row.and_then(|row| counts.get_mut(row.kind as usize)) {
                *count += 1;
            }
        }
        for kind in (0..).zip(&counts).filter(|(_, &count)| count > 1).map(|(kind, _)| kind) {
            combine(flow, block, kind, candidates, &mut sets);
        }
    }
    sets
}

/// Adds the sets of one kind in `block`.
fn combine(
    flow: &Dataflow,
    block: &TaskBlock,
    kind: u32,
    candidates: &[Option<Candidate>],
    sets: &mut Vec<Vec<u32>>,
) {
    let (first, end) = block.tasks;
    // For each task the last set that it depends on, counted from 1.
    let mut reached = vec![0_u32; (end - first) as usize];
    let (mut number, mut set, mut bytes) = (1_u32, Vec::new(), 0_u128);
    let mut close = |set: &mut Vec<u32>| {
        let set = std::mem::take(set);
        if set.len() > 1 {
            sets.push(set);
        }
    };
    for task in first..end {
        let mut own = reached[(task - first) as usize];
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
        for &user in flow.users(task).iter().filter(|&&user| (first..end).contains(&user)) {
            let reached = &mut reached[(user - first) as usize];
            *reached = own.max(*reached);
        }
    }
    close(&mut set);
}
