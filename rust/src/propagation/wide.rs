//! Visits of ops with many tensors.
//!
//! What a visit does depends on the tensors only through the different pairs of mapping and sharding
//! among them, in the order of their first appearance: merging axes and looking for conflicts is a
//! fold over the tensors, and folding in the same pair again later changes nothing. (Both folds only
//! ever shorten a list that the pair already agrees with.) So of a concatenation of thousands of
//! operands a handful are looked at, and all others change like them.
//!
//! That does not hold where parts of an axis need not nest, which takes an axis whose size is not a
//! power of two, and parts of it; such a visit looks at every tensor.

use super::memo::{Memo, Outcome};
use super::queue::RunMask;
use super::visit::{directions, visit, Subset, Tables, Update, VisitKind};
use crate::index::{RuleId, ShardingId};
use crate::rule::{OpShardingRule, TensorMapping};
use rustc_hash::FxHashMap;

/// What is known of wide ops.
#[derive(Default)]
pub(super) struct Wide {
    /// For each tensor of a rule the first one on the same side that has the same mapping.
    canonical: FxHashMap<RuleId, Vec<u32>>,
}

/// What a visit of a wide op does.
pub(super) enum WideOutcome {
    /// Nothing, in all of these runs.
    Nothing(RunMask),
    /// These updates, in order.
    Updates(Vec<Update>),
}

impl Wide {
    /// Visits an op whose tensors have these shardings.
    pub fn visit(
        &mut self,
        memo: &mut Memo,
        tables: &mut Tables<'_>,
        kind: VisitKind,
        shardings: &[ShardingId],
        run: usize,
    ) -> WideOutcome {
        let rule = &tables.rules[kind.rule];
        let canonical = self.canonical.entry(kind.rule).or_insert_with(|| canonical(rule));
        let mut pairs: FxHashMap<(u32, ShardingId), u32> = FxHashMap::default();
        let (mut firsts, mut reduced) = (Vec::new(), Vec::new());
        let mut pair_of = Vec::with_capacity(shardings.len());
        for (&tensor, &sharding) in canonical.iter().zip(shardings) {
            let next = firsts.len() as u32;
            let pair = *pairs.entry((tensor, sharding)).or_insert(next);
            if pair == next {
                firsts.push(tensor);
                reduced.push(sharding);
            }
            pair_of.push(pair);
        }
        if !is_reducible(tables, rule, &reduced) {
            return visit_all(memo, tables, kind, shardings, run);
        }
        match memo.outcome(tables, kind, Subset(Some(&firsts)), &reduced, run) {
            Outcome::Nothing(runs) => WideOutcome::Nothing(runs),
            Outcome::Updates(range) => {
                let mut new = vec![ShardingId::NONE; firsts.len()];
                for index in range {
                    let (pair, sharding) = memo.update(index);
                    new[pair as usize] = sharding;
                }
                let tensors = pair_of.iter().enumerate();
                let updates = tensors
                    .map(|(tensor, &pair)| (tensor as u32, new[pair as usize]))
                    .filter(|(_, sharding)| sharding.is_some());
                WideOutcome::Updates(updates.collect())
            }
        }
    }
}

/// Visits with every tensor. Not remembered: the key would be as long as the op.
fn visit_all(
    memo: &Memo,
    tables: &mut Tables<'_>,
    kind: VisitKind,
    shardings: &[ShardingId],
    run: usize,
) -> WideOutcome {
    let directions = directions(kind, &tables.rules[kind.rule], memo.runs()[run].step);
    let strategy = memo.runs()[run].strategy;
    let updates = visit(tables, kind, Subset::ALL, shardings, &directions, strategy);
    if updates.is_empty() {
        WideOutcome::Nothing(1 << run)
    } else {
        WideOutcome::Updates(updates)
    }
}

fn canonical(rule: &OpShardingRule) -> Vec<u32> {
    let mut canonical = Vec::with_capacity(rule.operands.len() + rule.results.len());
    let mut start = 0;
    for side in [&rule.operands, &rule.results] {
        let mut firsts: FxHashMap<&TensorMapping, u32> = FxHashMap::default();
        for (index, mapping) in side.iter().enumerate() {
            canonical.push(*firsts.entry(mapping).or_insert(start + index as u32));
        }
        start += side.len() as u32;
    }
    canonical
}

/// Whether all parts of axes that the visit can meet nest.
fn is_reducible(tables: &Tables<'_>, rule: &OpShardingRule, shardings: &[ShardingId]) -> bool {
    let splits = rule.tensors().any(|tensor| tensor.dims.iter().any(|dim| dim.len() > 1));
    shardings.iter().filter_map(|&id| tables.shardings.get(id)).all(|sharding| {
        let mesh = &tables.meshes[sharding.mesh].mesh;
        sharding.axis_refs().all(|axis| {
            let size = mesh.axis_size(axis.axis);
            size & (size - 1) == 0 || !(splits || axis.sub.is_some())
        })
    })
}
