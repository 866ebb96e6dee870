//! The greedy choice of common axes.
//!
//! Candidates are all pairs of a factor and a prefix of the axes that shard it in some tensor. The
//! best candidate is assigned repeatedly, and the others are truncated where they overlap it, until
//! none is left. Candidates are compared by the number of tensor elements that are sharded like
//! this already, then by the kind of factor (pass-through, reduction, permutation,
//! need-replication, in this order), then by the number of shards they add.
//!
//! A factor that is not the major-most of a dim can only be sharded if the factors before it are
//! fully sharded.

use super::super::axis_sets::{compare_lists, truncate_without_overlap};
use super::AxesPerFactor;
use crate::axis::{prefix_status, total_size, AxisRef, PrefixStatus};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::{Projection, TensorFactorShardings};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// A factor, and axes to shard it with.
struct Candidate {
    factor: FactorId,
    axes: Vec<AxisRef>,
    /// The number of elements of the tensors whose factor has these axes, possibly followed by
    /// others.
    source_size: i64,
    /// The number of shards that these axes add to those already assigned.
    sharding_size: i64,
    /// The precedence of the kind of factor; higher is better.
    precedence: u8,
}

impl Candidate {
    fn compare(&self, other: &Self, mesh: &Mesh) -> Ordering {
        let key = |candidate: &Self| {
            let Self { source_size, precedence, sharding_size, factor, .. } = candidate;
            (*source_size, *precedence, *sharding_size, *factor)
        };
        key(self).cmp(&key(other)).then_with(|| compare_lists(&self.axes, &other.axes, mesh))
    }
}

/// For each factor the factors right before it in some dim that are not fully sharded yet.
struct Dependencies(Vec<Vec<FactorId>>);

impl Dependencies {
    fn new(rule: &OpShardingRule) -> Self {
        let mut before = vec![Vec::new(); rule.num_factors()];
        for dim in rule.tensors().flat_map(|tensor| &tensor.dims) {
            for pair in dim.windows(2) {
                before[pair[1].index()].push(pair[0]);
            }
        }
        Self(before)
    }
    fn resolve(&mut self, factor: FactorId) {
        for before in &mut self.0 {
            before.retain(|&other| other != factor);
        }
    }
    fn is_free(&self, factor: FactorId) -> bool {
        self.0[factor.index()].is_empty()
    }
}

/// Chooses axes for each factor.
pub(super) fn common_axes(
    projection: &Projection,
    rule: &OpShardingRule,
    tensor_sizes: &[i64],
    mesh: &Mesh,
) -> AxesPerFactor {
    let mut assigned: AxesPerFactor = vec![Vec::new(); rule.num_factors()];
    let mut candidates = candidates(projection, rule, tensor_sizes, mesh);
    let mut dependencies = Dependencies::new(rule);
    loop {
        let free = candidates.iter().filter(|candidate| dependencies.is_free(candidate.factor));
        let Some(best) = free.max_by(|a, b| a.compare(b, mesh)) else { return assigned };
        let (factor, axes) = (best.factor, best.axes.clone());
        assigned[factor.index()].clone_from(&axes);
        if total_size(&axes, mesh) == rule.factor_size(factor) {
            dependencies.resolve(factor);
        }
        candidates.retain_mut(|candidate| update(candidate, factor, &axes, &assigned, mesh));
    }
}

/// Updates `candidate` after `axes` were chosen for `factor`; returns false if nothing of it is
/// left.
fn update(
    candidate: &mut Candidate,
    factor: FactorId,
    axes: &[AxisRef],
    assigned: &[Vec<AxisRef>],
    mesh: &Mesh,
) -> bool {
    let mut prefix: &[AxisRef] = &[];
    if candidate.factor == factor {
        if prefix_status(axes, &candidate.axes) != PrefixStatus::StrictPrefix {
            return false;
        }
        prefix = axes;
    } else if truncate_without_overlap(&mut candidate.axes, axes) {
        prefix = &assigned[candidate.factor.index()];
        if candidate.axes == prefix {
            return false;
        }
    }
    let prefix_size = total_size(prefix, mesh).max(1);
    candidate.sharding_size = total_size(&candidate.axes, mesh) / prefix_size;
    true
}

/// All candidates with their sizes.
fn candidates(
    projection: &Projection,
    rule: &OpShardingRule,
    tensor_sizes: &[i64],
    mesh: &Mesh,
) -> Vec<Candidate> {
    // Tensors with the same axes on a factor are added up: a concatenate may have thousands of
    // them.
    let mut sizes: FxHashMap<(FactorId, &[AxisRef]), i64> = FxHashMap::default();
    let mut sources: Vec<(FactorId, &[AxisRef])> = Vec::new();
    for (tensor, &size) in projection.tensors.iter().zip(tensor_sizes) {
        for (factor, axes) in sharded_factors(tensor) {
            let known = sizes.entry((factor, axes)).or_insert_with(|| {
                sources.push((factor, axes));
                0
            });
            *known = known.wrapping_add(size);
        }
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut seen: FxHashSet<(FactorId, &[AxisRef])> = FxHashSet::default();
    for &(factor, axes) in &sources {
        for len in 1..=axes.len() {
            if seen.insert((factor, &axes[..len])) {
                candidates.push(candidate(factor, &axes[..len], rule, mesh));
            }
        }
    }
    sources.sort_by_key(|(factor, _)| *factor);
    for candidate in &mut candidates {
        let start = sources.partition_point(|(factor, _)| *factor < candidate.factor);
        let of_factor =
            sources[start..].iter().take_while(|(factor, _)| *factor == candidate.factor);
        for source in of_factor {
            if prefix_status(&candidate.axes, source.1) != PrefixStatus::NotAPrefix {
                candidate.source_size = candidate.source_size.wrapping_add(sizes[source]);
            }
        }
    }
    candidates
}

/// The factors of `tensor` that have axes, with these.
fn sharded_factors(tensor: &TensorFactorShardings) -> impl Iterator<Item = (FactorId, &[AxisRef])> {
    let axes = tensor.factors.iter().map(|(factor, entry)| (factor, entry.axes.as_slice()));
    axes.filter(|(_, axes)| !axes.is_empty())
}

fn candidate(factor: FactorId, axes: &[AxisRef], rule: &OpShardingRule, mesh: &Mesh) -> Candidate {
    let has = |list: &[FactorId]| list.binary_search(&factor).is_ok();
    let precedence = if has(&rule.reduction) {
        2
    } else if has(&rule.need_replication) {
        0
    } else if has(&rule.permutation) {
        1
    } else {
        3
    };
    Candidate {
        factor,
        axes: axes.to_vec(),
        source_size: 0,
        sharding_size: total_size(axes, mesh),
        precedence,
    }
}
