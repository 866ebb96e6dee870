//! Finds which axes a visit brings to which tensor, and from which tensor.

use crate::axis::{prefix_status, AxisRef, PrefixStatus};
use crate::index::FactorId;
use crate::mesh::Mesh;
use crate::op_sharding_rule::TensorMapping;
use crate::projection::{AxisList, FactorSharding, Projection, TensorFactorShardings};
use rustc_hash::FxHashMap;

/// An axis that a tensor gets. Tensors are numbered operands first, then results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// The tensor.
    pub target: u32,
    /// The new axis.
    pub axis: AxisRef,
    /// The tensor that had it before.
    pub source: u32,
    /// The factor along which it propagates.
    pub factor: FactorId,
}

/// The axes in `new` that `old` lacks, in the order of the tensors, which have these `mappings`.
pub(crate) fn arrivals<'a>(
    mappings: impl Iterator<Item = &'a TensorMapping>,
    mesh: &Mesh,
    old: &Projection,
    new: &Projection,
) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut sources = Sources { old, known: FxHashMap::default() };
    let pairs = old.tensors.iter().zip(&new.tensors);
    for (target, (mapping, (before, after))) in (0..).zip(mappings.zip(pairs)) {
        if before.factors == after.factors {
            continue;
        }
        let start = arrivals.len();
        let (arrivals, sources) = (&mut arrivals, &mut sources);
        Tensor { target, mesh, sources, arrivals, start }.compare(mapping, before, after);
    }
    arrivals
}

/// Where axes come from.
struct Sources<'a> {
    old: &'a Projection,
    /// Results so far.
    known: FxHashMap<(FactorId, AxisList), Option<u32>>,
}

impl Sources<'_> {
    /// The first tensor whose axes along `factor` started with `axes` before the visit.
    fn of(&mut self, factor: FactorId, axes: &AxisList) -> Option<u32> {
        if let Some(&known) = self.known.get(&(factor, axes.clone())) {
            return known;
        }
        let tensors = self.old.tensors_with(factor).iter();
        let mut pairs = tensors.zip(self.old.along(factor));
        let starts_so = |sharding: &FactorSharding| {
            prefix_status(axes, &sharding.axes) != PrefixStatus::NotAPrefix
        };
        let source = pairs.find(|(_, sharding)| starts_so(sharding)).map(|(&tensor, _)| tensor);
        self.known.insert((factor, axes.clone()), source);
        source
    }
}

/// A tensor that is compared.
struct Tensor<'a, 'p> {
    target: u32,
    mesh: &'a Mesh,
    sources: &'a mut Sources<'p>,
    arrivals: &'a mut Vec<Arrival>,
    /// Index of the first arrival of this tensor.
    start: usize,
}

impl Tensor<'_, '_> {
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
                // Consecutive parts of an axis along two factors are reported as one axis.
                let mut merged = last;
                if let Some(previous) = previous.filter(|previous| previous.can_merge(last)) {
                    self.forget(previous);
                    merged = previous.merge(last, self.mesh);
                }
                previous = Some(last);
                if let Some(source) = self.sources.of(factor, after) {
                    let shown: Vec<AxisRef> = rest.iter().copied().chain([merged]).collect();
                    self.add_new(before, &shown, (source, factor));
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

    /// Adds the axes of `after` that `before` lacks; the last axis of `before` may have grown.
    fn add_new(
        &mut self,
        before: &[AxisRef],
        after: &[AxisRef],
        (source, factor): (u32, FactorId),
    ) {
        let grown = before.len().checked_sub(1).filter(|&last| after.get(last) != before.last());
        let added = before.len().min(after.len())..after.len();
        for index in grown.into_iter().chain(added) {
            let Some(&axis) = after.get(index) else { continue };
            if self.arrivals[self.start..].iter().all(|arrival| arrival.axis != axis) {
                self.arrivals.push(Arrival { target: self.target, axis, source, factor });
            }
        }
    }
}
