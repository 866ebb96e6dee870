//! Reductions of long dims, which XLA computes in two steps: a `reduce_window`, then a reduction of its result.
//!
//! The `reduce_window` reads a materialized operand. Reductions that a library computes are not split. Source: XLA's
//! `TreeReductionRewriter`.

use crate::compilers::xla_cpu::fusion::library_reductions::is_sum;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::priority_fusion::hero::Reduction;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;

/// The largest window along a dim.
const WINDOW: i64 = 32;

/// The number of elements of the result of the first step of `op`; `None` unless it is a reduction in two steps.
#[inline]
pub fn after_first_step(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    op: OpId,
) -> Option<u128> {
    if program.kind(op) != OpKind::Reduce || program.num_results(op) != 1 {
        return None;
    }
    after_windows(program, works, layouts, op)
}

/// As [`after_first_step`], for a reduction with one result.
fn after_windows(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    op: OpId,
) -> Option<u128> {
    let by_blocks = layouts.compiler().fuses_by_priority();
    if !by_blocks && is_sum(program, works, op) {
        return None;
    }
    let dims = layouts.reduced(program, op)?;
    let sizes = works.tensors.of(program.operand(op, 0)).dims.as_deref()?;
    if by_blocks {
        return of_blocks(sizes, dims);
    }
    if dims.iter().all(|&dim| sizes.get(dim).is_none_or(|&size| size <= WINDOW)) {
        return None;
    }
    let left = |(dim, &size): (usize, &i64)| {
        let window = if dims.contains(&dim) { size.clamp(1, WINDOW) } else { 1 };
        u128::try_from((size + window - 1) / window).unwrap_or(0)
    };
    Some(sizes.iter().enumerate().map(left).product())
}

/// The elements of the first step of a reduction on a GPU that is too large for one block of threads to reduce.
fn of_blocks(sizes: &[i64], dims: &[usize]) -> Option<u128> {
    let ([first, _], _) = Reduction::of(sizes, dims)?.steps()?;
    let [major, middle, minor] = first.dims.map(|size| size.max(1) as u128);
    Some(if first.is_row { middle } else { major.saturating_mul(minor) })
}
