//! Sets of collectives that XLA's combiner passes would combine, for Python.

use crate::cost::collectives::CollectiveKind;
use crate::cost::combine::{combined, Candidate};
use crate::cost::ProgramCost;
use crate::error::Span;
use crate::index::{OpId, StrId, TypeId};
use crate::ir::Program;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// A set of combined collectives: the number of collectives of each kind, and the number of runs.
pub(super) type Combined = (Vec<(usize, usize)>, u128);

/// The properties that collectives need to have in common to be combined: kind, element type,
/// reduction, replica groups.
type CandidateKey<'a> = (CollectiveKind, &'a str, StrId, &'a str);

/// The sets of combined collectives, given the byte threshold of a set for each kind. Also, for
/// each row of collectives, an index: that of its kind, or, if it is in a set, the number of kinds
/// plus its index among the kinds of all sets.
pub(super) fn together(
    program: &Program,
    cost: &ProgramCost,
    most: &HashMap<String, u128>,
    (num_kinds, kind_of_rows): (usize, &[usize]),
) -> (Vec<Combined>, Vec<usize>) {
    let (mut of_rows, mut next, mut sets) = (kind_of_rows.to_vec(), num_kinds, Vec::new());
    for rows in combined(&cost.flow, &candidates(program, cost, most), cost.compiler) {
        let mut kinds: Vec<(usize, usize)> = Vec::new();
        let Some(&first) = rows.first() else { continue };
        for row in rows {
            let kind = kind_of_rows[row as usize];
            let known = kinds.iter().position(|&(other, _)| other == kind);
            let at = known.unwrap_or_else(|| {
                kinds.push((kind, 0));
                kinds.len() - 1
            });
            kinds[at].1 += 1;
            of_rows[row as usize] = next + at;
        }
        next += kinds.len();
        sets.push((kinds, cost.collectives[first as usize].count));
    }
    (sets, of_rows)
}

/// For each collective that may be combined, its key and threshold, given the byte threshold for
/// each kind.
fn candidates(
    program: &Program,
    cost: &ProgramCost,
    most: &HashMap<String, u128>,
) -> Vec<Option<Candidate>> {
    let mut kinds: FxHashMap<CandidateKey<'_>, u32> = FxHashMap::default();
    // Look up kinds by ids first: ops with equal ids have equal keys.
    let mut by_ids: FxHashMap<(CollectiveKind, TypeId, StrId, Span), u32> = FxHashMap::default();
    let find = |name| program.strings().find(name).unwrap_or_default();
    let (groups_name, pairs_name) = (find("replica_groups"), find("source_target_pairs"));
    let mut candidates = Vec::with_capacity(cost.collectives.len());
    let mut limits: FxHashMap<CollectiveKind, Option<u128>> = FxHashMap::default();
    for row in &cost.collectives {
        let limit = limits.entry(row.kind);
        let most = *limit.or_insert_with(|| most.get(row.kind.as_str()).copied());
        let most = most.filter(|_| row.axes.is_some() && row.mesh.is_some());
        let candidate = most.filter(|_| program.num_operands(row.op) == 1).map(|most| {
            let ty = program.op_results(row.op).next().map(|value| program.type_of(value));
            let (ty, reducer) = (ty.unwrap_or_default(), reducer(program, row.op));
            let is_permute = row.kind == CollectiveKind::CollectivePermute;
            let name = if is_permute { pairs_name } else { groups_name };
            let groups = program.op_attrs(row.op).iter().find(|attr| attr.name == name);
            let groups = groups.map(|attr| attr.value).unwrap_or_default();
            let kind = *by_ids.entry((row.kind, ty, reducer, groups)).or_insert_with(|| {
                // Combined gathers and permutes have results of several types.
                let element = if is_sum(row.kind) { element(program, ty) } else { "" };
                let key = (row.kind, element, reducer, program.text().get(groups));
                let next = kinds.len() as u32;
                *kinds.entry(key).or_insert(next)
            });
            Candidate { kind, bytes: row.bytes, most }
        });
        candidates.push(candidate);
    }
    candidates
}

/// Whether collectives of `kind` reduce.
const fn is_sum(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::AllReduce | CollectiveKind::ReduceScatter)
}

/// The element type of `ty`.
fn element(program: &Program, ty: TypeId) -> &str {
    let text = ty.get().map_or("", |ty| program.type_text(ty));
    text.rsplit(['x', '<']).next().unwrap_or_default()
}

/// The op that `op`, a reduction, reduces with.
fn reducer(program: &Program, op: OpId) -> StrId {
    let region = program.op_regions(op).next();
    let body = region.and_then(|region| program.region_entry(region).get());
    let first = body.and_then(|body| program.block_ops(body).next());
    first.map_or(StrId::NONE, |inner| program.op_name_id(inner))
}
