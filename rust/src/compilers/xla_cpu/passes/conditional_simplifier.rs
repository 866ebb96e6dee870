//! Results of a `case` that are the same in all branches: a value from outside, of which the result is then an alias, or the value
//! of another result.
//!
//! Source: XLA's `ConditionalSimplifier`, and its analysis of which values flow where.

use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::FxHashMap;

/// The value that a result of a `case` is an alias of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// A value that is defined outside of the branches.
    Outside(ValueId),
    /// The result with this index.
    Result(usize),
}

/// For each result of `op` the value that it is an alias of; `first` maps a value to the first equal one. Empty if `op` is no
/// `case` or `if`.
#[inline]
pub fn alike(
    program: &Program,
    op: OpId,
    first: impl Fn(ValueId) -> ValueId,
) -> Vec<Option<Alike>> {
    match program.kind(op) {
        OpKind::Case | OpKind::If => returned_alike(program, op, first),
        _ => Vec::new(),
    }
}

fn returned_alike(
    program: &Program,
    op: OpId,
    first: impl Fn(ValueId) -> ValueId,
) -> Vec<Option<Alike>> {
    let blocks = program.op_regions(op).filter_map(|region| program.region_entry(region).get());
    let ends: Option<Vec<OpId>> = blocks.map(|block| program.last_op(block).get()).collect();
    let count = program.num_results(op);
    let Some(ends) = ends.filter(|ends| {
        !ends.is_empty() && ends.iter().all(|&end| program.num_operands(end) == count)
    }) else {
        return Vec::new();
    };
    let mut known: FxHashMap<Vec<ValueId>, usize> = FxHashMap::default();
    let find = |index: usize| {
        let values: Vec<ValueId> =
            ends.iter().map(|&end| first(program.operand(end, index))).collect();
        let is_inside = |(&value, &end): (&ValueId, &OpId)| {
            let block = match program.def(value) {
                ValueDef::Result(def) => program.parent_block(def),
                ValueDef::Arg(block) => block,
            };
            block == program.parent_block(end)
        };
        if values.iter().all(|&value| value == values[0])
            && !values.iter().zip(&ends).any(is_inside)
        {
            return Some(Alike::Outside(values[0]));
        }
        let other = *known.entry(values).or_insert(index);
        (other != index).then_some(Alike::Result(other))
    };
    (0..count).map(find).collect()
}
