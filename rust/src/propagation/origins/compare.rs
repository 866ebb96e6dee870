//! Which axes a visit has brought to which tensor, and from which other one.

use crate::axis::{prefix_status, AxisRef, PrefixStatus};
use crate::index::FactorId;
use crate::mesh::Mesh;
use crate::projection::{Projection, TensorFactorShardings};
use crate::rule::{OpShardingRule, TensorMapping};

/// An axis that is new on a tensor. Tensors are counted over operands, then results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// The tensor.
    pub target: usize,
    /// The axis.
    pub axis: AxisRef,
    /// The tensor that had it before.
    pub source: usize,
}

/// What is new in `new`, compared with `old`.
pub(super) fn arrivals(
    rule: &OpShardingRule,
    mesh: &Mesh,
    old: &Projection,
    new: &Projection,
) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for (target, mapping) in rule.tensors().enumerate() {
        let Some(before) = old.tensors.get(target) else { break };
        let after = &new.tensors[target];
        if before.factors == after.factors {
            continue;
        }
        let start = arrivals.len();
        let mut tensor = Tensor { target, mesh, old, arrivals: &mut arrivals, start };
        tensor.compare(mapping, before, after);
    }
    arrivals
}

/// One tensor under comparison.
struct Tensor<'a> {
    target: usize,
    mesh: &'a Mesh,
    old: &'a Projection,
    arrivals: &'a mut Vec<Arrival>,
    /// Where the arrivals of this tensor start.
    start: usize,
}

impl Tensor<'_> {
    fn compare(
        &mut self,
        mapping: &TensorMapping,
        before: &TensorFactorShardings,
        after: &TensorFactorShardings,
    ) {
        for dim in &mapping.dims {
            let mut previous: Option<AxisRef> = None;
            for &factor in dim {
                let (Some(before), Some(after)) = (before.factor(factor), after.factor(factor))
                else {
                    continue;
                };
                let (before, after) = (&before.axes, &after.axes);
                let Some((&last, rest)) = after.split_last().filter(|_| before != after) else {
                    continue;
                };
                // Two factors that split an axis between them show it as one.
                let mut merged = last;
                if let Some(previous) = previous.filter(|previous| previous.can_merge(last)) {
                    self.forget(previous);
                    merged = previous.merge(last, self.mesh);
                }
                previous = Some(last);
                if let Some(source) = self.source(factor, after) {
                    let shown: Vec<AxisRef> = rest.iter().copied().chain([merged]).collect();
                    self.add_new(before, &shown, source);
                }
            }
        }
    }

    fn forget(&mut self, axis: AxisRef) {
        let start = self.start;
        if let Some(at) = self.arrivals[start..].iter().position(|arrival| arrival.axis == axis) {
            self.arrivals.remove(start + at);
        }
    }

    /// The first tensor whose axes along `factor` started with `axes` before.
    fn source(&self, factor: FactorId, axes: &[AxisRef]) -> Option<usize> {
        self.old.tensors.iter().position(|tensor| {
            let sharding = tensor.factor(factor);
            sharding.is_some_and(|sharding| {
                prefix_status(axes, &sharding.axes) != PrefixStatus::NotAPrefix
            })
        })
    }

    /// Adds those of `after` that `before` does not have; the last of `before` may have grown.
    fn add_new(&mut self, before: &[AxisRef], after: &[AxisRef], source: usize) {
        let grown = before.len().checked_sub(1).filter(|&last| after.get(last) != before.last());
        let added = before.len().min(after.len())..after.len();
        for index in grown.into_iter().chain(added) {
            let Some(&axis) = after.get(index) else { continue };
            if self.arrivals[self.start..].iter().all(|arrival| arrival.axis != axis) {
                self.arrivals.push(Arrival { target: self.target, axis, source });
            }
        }
    }
}
