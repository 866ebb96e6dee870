//! `all-reduce-folder`: makes one all-reduce of two that follow each other.
//!
//! An all-reduce over one axis after one over another, of which nothing else is used, sums over both. Each device of the new
//! groups must contribute once.
//!
//! Source: XLA's `AllReduceFolder`.

use super::super::collectives::matrix_text;
use super::super::reducer::Reducer;
use super::{matrix, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::Program;

const SUM: &str = "stablehlo.all_reduce";

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-reduce-folder", 0, 1)?;
    for second in Names::new(program, &[SUM]).ops(program) {
        let Some((first, groups)) = folded(program, second) else { continue };
        let input = program.operand(first, 0);
        let slot = program.op_uses(second).next();
        if let Some(slot) = slot {
            program.set_operand(slot, input);
            program.set_attr(second, "replica_groups", &matrix_text(&groups));
            program.erase_op(first);
        }
    }
    Ok(())
}

/// The all-reduce that defines the operand of `second`, and the groups of both as one.
fn folded(program: &Program, second: OpId) -> Option<(OpId, Vec<Vec<i64>>)> {
    if program.num_operands(second) != 1 {
        return None;
    }
    let between = program.operand(second, 0);
    let first = program.defining_op(between).filter(|_| program.has_one_use(between))?;
    let reducer = Reducer::of_region(program, first)?;
    let are_alike = program.op_name(first) == SUM
        && program.num_operands(first) == 1
        && program.parent_block(first) == program.parent_block(second)
        && Reducer::of_region(program, second) == Some(reducer);
    if !are_alike {
        return None;
    }
    let groups = |op| matrix(program, op, "replica_groups");
    Some((first, both(&groups(first)?, &groups(second)?)?))
}

/// The groups that reduce at once what `first` and then `second` do; `None` if there are none.
fn both(first: &[Vec<i64>], second: &[Vec<i64>]) -> Option<Vec<Vec<i64>>> {
    // All devices take part in the first one; tables are as long as they are many.
    let count: usize = first.iter().map(Vec::len).sum();
    let mut inner: Vec<Option<&[i64]>> = vec![None; count];
    for group in first {
        for &device in group {
            *inner.get_mut(usize::try_from(device).ok()?)? = Some(group);
        }
    }
    let mut found: Vec<Vec<i64>> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; count];
    for group in second {
        let mut all = Vec::new();
        for &device in group {
            all.extend_from_slice((*inner.get(usize::try_from(device).ok()?)?)?);
        }
        all.sort_unstable();
        let is_each_once = all.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_each_once || group.iter().any(|device| all.binary_search(device).is_err()) {
            return None;
        }
        // Devices of one of the new groups have the same one, whichever group of `second` they are in.
        let known = *group_of.get(usize::try_from(*all.first()?).ok()?)?;
        let at = known.unwrap_or(found.len());
        match known {
            Some(known) if found[known] != all => return None,
            Some(_) => {}
            None => found.push(all),
        }
        for &device in &found[at] {
            if *group_of[device as usize].get_or_insert(at) != at {
                return None;
            }
        }
    }
    let covered = found.iter().map(Vec::len).sum::<usize>();
    (covered == second.iter().map(Vec::len).sum::<usize>()).then_some(found)
}
