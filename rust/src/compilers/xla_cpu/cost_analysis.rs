//! XLA:CPU's `HloCostAnalysis`: a loop body counts once, equal ops of a block count once, library calls count nothing, and neither
//! does an add that is folded into a scatter ([`crate::compilers::xla_cpu::passes::scatter_sums`]).

use crate::compilers::xla_cpu::passes::common_subexpressions::Equal;
use crate::compilers::xla_cpu::passes::float_normalization::conversions;
use crate::compilers::xla_cpu::passes::scatter_sums::dropped;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::execution::Execution;

/// An op that becomes a library call.
const TOP_K: &str = "chlo.top_k";

/// How often the ops of a program run, as `HloCostAnalysis` counts on CPUs.
#[derive(Clone, Debug, Default)]
pub struct Once {
    /// Number of runs of the ops of each cost row.
    pub runs: Vec<u128>,
    /// The elements that CPUs convert from `bf16` to `f32` and back.
    pub conversions: u128,
}

/// The counts for `program`, whose cost has `num_rows` rows; `row_of` gives the row of an op, if it has one.
pub fn once(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    num_rows: usize,
    row_of: impl Fn(OpId) -> Option<u32>,
) -> Once {
    let functions = execution.functions.iter().map(|&func| program.func_op(func));
    let functions: Vec<OpId> = functions.collect();
    let equal = Equal::new(program, works, &functions, true);
    let mut runs = vec![0_u128; num_rows];
    let dropped = dropped(program);
    let top_k = program.strings().find(TOP_K);
    for &func in &functions {
        for &op in works.ops_inside(func).iter() {
            let Some(row) = row_of(op) else { continue };
            let is_library = program.kind(op) == OpKind::CustomCall
                || top_k.is_some_and(|name| program.op_name_id(op) == name);
            if !is_library && !equal.is_repeated(program, op) && dropped.binary_search(&op).is_err()
            {
                let runs = &mut runs[row as usize];
                *runs = runs.saturating_add(execution.times_once(program.parent_block(op)));
            }
        }
    }
    let conversions = conversions(program, works, execution, (&functions, &equal));
    Once { runs, conversions }
}
