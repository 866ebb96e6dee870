//! Small results of large arrays, such as the mask of a dropout, which is computed of random bits: they are stored where computing them
//! anew in each kernel that reads them would read more.
//!
//! A result of `R` bytes, computed of arrays of `S` bytes, takes `n S` bytes of traffic if `n` kernels compute it, and `S + R + n R` if
//! it is stored. Compiled programs show masks stored, and sums of arrays of their own type computed anew.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::{OpId, ValueId};
use crate::inline_list::InlineList;
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;

/// The most values that are followed from one.
const MAX_STEPS: usize = 64;

/// As many values as are mostly followed from one.
const INLINE: usize = 8;

/// Whether `op` is elementwise, and it takes less traffic to store its result than to compute it anew.
pub fn is_small_result(
    program: &Program,
    works: &mut Works<'_>,
    storage: &Storage,
    op: OpId,
) -> bool {
    if !storage.facts.has(op, Fact::SINGLE) || !storage.facts.has(op, Fact::POINTWISE) {
        return false;
    }
    let value = program.result(op, 0);
    is_recomputed(program, storage, value)
        && is_small(program, works, storage, value).unwrap_or(false)
}

/// Whether several ops compute `value` anew.
fn is_recomputed(program: &Program, storage: &Storage, value: ValueId) -> bool {
    let is_nothing = storage.row(value).is_nothing;
    !storage.is_written(value) && !is_nothing && program.users(value).nth(1).is_some()
}

/// Whether it takes less traffic to store `value`; `None` if too much is computed of it, or it of too much.
fn is_small(
    program: &Program,
    works: &mut Works<'_>,
    storage: &Storage,
    value: ValueId,
) -> Option<bool> {
    let result = works.tensors.bytes(value);
    let sources = bytes_of_sources(program, works, storage, value)?;
    if sources <= result {
        return Some(false);
    }
    let kernels = kernels_with(program, storage, value)?;
    let stored = sources.saturating_add(result.saturating_mul(kernels + 1));
    Some(sources.saturating_mul(kernels) > stored)
}

/// The bytes of the arrays in memory that `value` is computed of.
pub fn bytes_of_sources(
    program: &Program,
    works: &mut Works<'_>,
    storage: &Storage,
    value: ValueId,
) -> Option<u128> {
    let mut seen = InlineList::<ValueId, INLINE>::of(&[value]);
    let mut read = InlineList::<ValueId, INLINE>::new();
    let (mut bytes, mut at) = (0_u128, 0);
    while at < seen.len() {
        for operand in program.operands(program.defining_op(seen[at])?) {
            if seen.len() + read.len() > MAX_STEPS {
                return None;
            }
            if storage.is_written(operand) || program.defining_op(operand).is_none() {
                if !read.contains(&operand) {
                    read.push(operand);
                    bytes = bytes.saturating_add(works.tensors.bytes(operand));
                }
            } else if !seen.contains(&operand) {
                seen.push(operand);
            }
        }
        at += 1;
    }
    Some(bytes)
}

/// How many kernels compute `value`, or at least do; reductions of one value are one.
fn kernels_with(program: &Program, storage: &Storage, value: ValueId) -> Option<u128> {
    let (mut seen, mut at) = (InlineList::<ValueId, INLINE>::of(&[value]), 0);
    let mut kernels = InlineList::<(bool, ValueId), INLINE>::new();
    while at < seen.len() {
        let reader = seen[at];
        for user in program.users(reader) {
            if kernels.len() > MAX_STEPS {
                return Some(kernels.len() as u128);
            }
            if seen.len() > MAX_STEPS {
                return None;
            }
            let result = program.op_results(user).next()?;
            let is_reduce = program.kind(user) == OpKind::Reduce;
            if is_reduce || storage.is_written(result) {
                let kernel = (is_reduce, if is_reduce { reader } else { result });
                if !kernels.contains(&kernel) {
                    kernels.push(kernel);
                }
            } else if !seen.contains(&result) {
                seen.push(result);
            }
        }
        at += 1;
    }
    Some(kernels.len() as u128)
}
