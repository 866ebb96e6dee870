//! Checks of lists of dims, with the messages of `StableHLO`.

use super::mistake::{bare, ensure, Mistake};

/// Numbers as MLIR prints them in messages.
pub fn list(dims: &[i64]) -> String {
    dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// Lists of at most this many numbers are compared pairwise, without an allocation.
const NUM_SHORT: usize = 8;

/// Whether no number occurs twice in `list`.
pub fn is_unique(list: &[i64]) -> bool {
    if list.len() <= NUM_SHORT {
        return (1..list.len()).all(|at| !list[..at].contains(&list[at]));
    }
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Checks that no dim occurs twice in the two lists together.
pub fn distinct(a: &[i64], b: &[i64], a_name: &str, b_name: &str) -> Result<(), Mistake> {
    let is_short = a.len() + b.len() <= NUM_SHORT;
    if is_short && is_unique(a) && is_unique(b) && !a.iter().any(|dim| b.contains(dim)) {
        return Ok(());
    }
    let all: Vec<i64> = a.iter().chain(b).copied().collect();
    if is_unique(&all) {
        return Ok(());
    }
    let again = |at: &usize| all[..*at].contains(&all[*at]);
    let dim = (0..all.len()).find(again).map_or(0, |at| all[at]);
    Err(bare(format!("has duplicated dimension from {a_name} and {b_name}: {dim}")))
}

/// Checks that `dim` is less than `rank`, or at most `rank` if `is_inclusive`.
pub fn in_bounds(
    dim: i64,
    rank: usize,
    name: &str,
    rank_name: &str,
    is_inclusive: bool,
) -> Result<(), Mistake> {
    let end = if is_inclusive { ']' } else { ')' };
    ensure((0..rank as i64 + i64::from(is_inclusive)).contains(&dim), || {
        format!(
            "Expects {name} to be in range [0, {rank_name}{end} i.e. [0, {rank}{end}. got: {dim}."
        )
    })
}

/// Checks that all of `dims` are less than `rank`.
pub fn all_in_bounds(
    dims: &[i64],
    rank: usize,
    name: &str,
    rank_name: &str,
) -> Result<(), Mistake> {
    match dims.iter().find(|dim| !(0..rank as i64).contains(dim)) {
        Some(dim) => Err(bare(format!(
            "Expects each element of {name} to be in range [0, {rank_name}) i.e. [0, {rank}). got: \
             {dim}."
        ))),
        None => Ok(()),
    }
}
