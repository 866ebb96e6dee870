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
use rustc_hash::FxHashMap;

const SUM: &str = "stablehlo.all_reduce";
const GROUPS: &str = "replica_groups";

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-reduce-folder", 0, 1)?;
    let mut known = KnownGroups::default();
    for second in Names::new(program, &[SUM]).ops(program) {
        let Some(first) = folded(program, second) else { continue };
        let Some(groups) = known.of_both(program, first, second) else { continue };
        let input = program.operand(first, 0);
        let slot = program.op_uses(second).next();
        if let Some(slot) = slot {
            program.set_operand(slot, input);
            program.set_attr(second, GROUPS, &groups);
            program.erase_op(first);
        }
    }
    Ok(())
}

/// The all-reduce that defines the operand of `second`, if both have the same reducer.
fn folded(program: &Program, second: OpId) -> Option<OpId> {
    if program.num_operands(second) != 1 {
        return None;
    }
    let between = program.operand(second, 0);
    let first = program.defining_op(between).filter(|_| program.has_one_use(between))?;
    let are_alike = program.op_name(first) == SUM
        && program.num_operands(first) == 1
        && program.parent_block(first) == program.parent_block(second)
        && Reducer::of_region(program, second) == Some(Reducer::of_region(program, first)?);
    are_alike.then_some(first)
}

/// The text of the groups that reduce at once what two all-reduces do, by the texts of theirs; most layers have the same ones.
#[derive(Default)]
struct KnownGroups(FxHashMap<[String; 2], Option<String>>);

impl KnownGroups {
    /// The groups that reduce at once what `first` and then `second` do; `None` if there are none.
    fn of_both(&mut self, program: &Program, first: OpId, second: OpId) -> Option<String> {
        let text = |op| program.attr(op, GROUPS).map(str::to_owned);
        let key = [text(first)?, text(second)?];
        let find = || {
            let groups = |op| matrix(program, op, GROUPS);
            Some(matrix_text(&both(&groups(first)?, &groups(second)?)?))
        };
        self.0.entry(key).or_insert_with(find).clone()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// An all-reduce of `operand` among `groups`.
    fn sum(result: &str, operand: &str, groups: &str) -> String {
        format!(
            "{result} = \"stablehlo.all_reduce\"({operand}) ({{\n\
             ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n\
             %s = stablehlo.add %x, %y : tensor<f32>\n\
             stablehlo.return %s : tensor<f32> }}) {{replica_groups = dense<{groups}> : \
             tensor<2x2xi64>}} : (tensor<4xf32>) -> tensor<4xf32>\n"
        )
    }

    #[test]
    fn groups_are_those_of_both() {
        let (rows, columns) = ("[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]");
        let ty = "tensor<4xf32>";
        let pairs = [(rows, columns), (rows, rows), (columns, rows), (rows, columns)];
        let mut text = format!("func.func @main(%a: {ty}) -> ({ty}, {ty}, {ty}, {ty}) {{\n");
        for (number, (first, second)) in pairs.into_iter().enumerate() {
            text += &sum(&format!("%f{number}"), "%a", first);
            text += &sum(&format!("%s{number}"), &format!("%f{number}"), second);
        }
        let _ = writeln!(text, "return %s0, %s1, %s2, %s3 : {ty}, {ty}, {ty}, {ty}\n}}");
        let mut program = crate::mlir::parse(text.into()).unwrap();
        crate::propagation::tests::with_context(|context| run(&mut program, context)).unwrap();
        let names = Names::new(&program, &[SUM]);
        let ops = names.ops(&mut program);
        let groups = ops.into_iter().map(|op| matrix(&program, op, GROUPS).unwrap());
        let groups: Vec<Vec<Vec<i64>>> = groups.collect();
        let all = |first: i64, second: i64| vec![vec![0, first, second, 3]];
        let own = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(groups, [all(1, 2), own.clone(), own, all(1, 2), all(1, 2)]);
    }
}
