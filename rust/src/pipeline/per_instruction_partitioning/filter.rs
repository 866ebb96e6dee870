//! Selects the ops that are partitioned.

use crate::error::Result;
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::mlir::op_attribute;

/// Which ops are partitioned.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter<'a> {
    /// The index of the first op, among those that could be partitioned.
    low: Option<usize>,
    /// The index of the last op.
    high: Option<usize>,
    /// Substrings, one of which the op's name has to contain; empty for any name.
    names: Vec<&'a str>,
}

impl<'a> Filter<'a> {
    /// The filter for a list `dot,add,selectLow=2,selectHigh=7`. Negative and invalid numbers are
    /// ignored.
    pub(super) fn parse(text: &'a str) -> Self {
        let mut filter = Self::default();
        let text = text.trim();
        let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
        let text = quoted('\'').or_else(|| quoted('"')).unwrap_or(text);
        for token in text.split(',').map(str::trim).filter(|token| !token.is_empty()) {
            let number = |text: &str| text.trim().parse().ok();
            if let Some(low) = token.strip_prefix("selectLow=") {
                filter.low = number(low).or(filter.low);
            } else if let Some(high) = token.strip_prefix("selectHigh=") {
                filter.high = number(high).or(filter.high);
            } else {
                filter.names.push(token);
            }
        }
        filter
    }
    /// Whether it accepts the op with this index and name.
    fn accepts(&self, number: usize, name: &str) -> bool {
        self.low.is_none_or(|low| number >= low)
            && self.high.is_none_or(|high| number <= high)
            && (self.names.is_empty() || self.names.iter().any(|part| name.contains(part)))
    }
}

/// The ops to partition: those of the entry function that could be partitioned and that the filter
/// accepts.
pub(super) fn selected(program: &mut Program, filter: &Filter<'_>) -> Result<Vec<OpId>> {
    let entry = program.func_op(entry_function(program)?);
    let blocks = program.op_regions(entry).flat_map(|region| program.region_blocks(region));
    let mut ops: Vec<OpId> = blocks.flat_map(|block| program.block_ops(block)).collect();
    ops.retain(|&op| can_be_partitioned(program, op));
    let accepted = |&(number, op): &(usize, OpId)| filter.accepts(number, program.op_name(op));
    Ok(ops.into_iter().enumerate().filter(accepted).map(|(_, op)| op).collect())
}

/// The function called `main`, or the only one, or the first that is not private.
fn entry_function(program: &Program) -> Result<FuncId> {
    program.main_function().or_else(|error| {
        let functions = program.functions_in_order();
        functions.into_iter().find(|&func| !program.is_private(func)).ok_or(error)
    })
}

/// Whether `op` is sharded and is a computation.
fn can_be_partitioned(program: &mut Program, op: OpId) -> bool {
    let kind = program.kind(op);
    let is_annotation = matches!(
        kind,
        OpKind::DataFlowEdge
            | OpKind::ManualComputation
            | OpKind::Mesh
            | OpKind::PropagationBarrier
            | OpKind::ReplicatedToUnreduced
            | OpKind::ShardedToUnreduced
            | OpKind::ShardingConstraint
            | OpKind::ShardingGroup
    );
    if is_annotation || program.has_traits(op, OpTraits::TERMINATOR) {
        return false;
    }
    let is_annotating_call = || {
        let target = op_attribute(program, op, "call_target_name");
        let target = target.as_ref().and_then(|target| target.as_str());
        matches!(target, Some("Sharding" | "mhlo.sharding"))
    };
    if kind == OpKind::CustomCall && is_annotating_call() {
        return false;
    }
    let values: Vec<ValueId> = program.operands(op).chain(program.op_results(op)).collect();
    values.into_iter().any(|value| {
        let sharding = program.sharding_of(value);
        sharding.is_some() && !program.is_fully_replicated(sharding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_lists_of_names_and_bounds() {
        let filter = Filter::parse("' dot, selectLow=2 ,selectHigh=x,,add'");
        assert_eq!(filter, Filter { low: Some(2), high: None, names: vec!["dot", "add"] });
        assert!(filter.accepts(2, "stablehlo.dot_general") && !filter.accepts(1, "stablehlo.add"));
        assert!(!filter.accepts(2, "stablehlo.multiply"));
        assert_eq!(Filter::parse(" "), Filter::default());
    }
}
