//! Sets of collectives that XLA's combiner passes would run as one, for Python.

use crate::cost::collectives::CollectiveKind;
use crate::cost::combine::{combined, Candidate};
use crate::cost::ProgramCost;
use crate::error::Span;
use crate::index::{OpId, StrId, TypeId};
use crate::ir::Program;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Collectives that run as one: their kinds, with the number of each, and how often they run.
pub(super) type Combined = (Vec<(usize, usize)>, u128);

/// What collectives that run as one have in common: kind, element type, reduction, groups of devices.
type CandidateKey<'a> = (CollectiveKind, &'a str, StrId, &'a str);

/// The sets of collectives that run as one, given the most bytes of a set by kind; and for each row of collectives its place in
/// `of_rows`, that of its kind, or, in a set, the number of kinds and the place among the kinds of all sets.
pub(super) fn together(
    program: &Program,
    cost: &ProgramCost,
    most: &HashMap<String, u128>,
    (num_kinds, kind_of_rows): (usize, &[usize]),
) -> (Vec<Combined>, Vec<usize>) {
    let (mut of_rows, mut next, mut sets) = (kind_of_rows.to_vec(), num_kinds, Vec::new());
    for rows in combined(&cost.flow, &candidates(program, cost, most)) {
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

/// The collectives that may run as one with others, given the most bytes of a set by kind.
fn candidates(
    program: &Program,
    cost: &ProgramCost,
    most: &HashMap<String, u128>,
) -> Vec<Option<Candidate>> {
    let mut kinds: FxHashMap<CandidateKey<'_>, u32> = FxHashMap::default();
    // The kinds by the ids of what their keys say: ops with equal ids have equal keys.
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

/// The op that `op`, a reduction, reduces by.
fn reducer(program: &Program, op: OpId) -> StrId {
    let region = program.op_regions(op).next();
    let body = region.and_then(|region| program.region_entry(region).get());
    let first = body.and_then(|body| program.block_ops(body).next());
    first.map_or(StrId::NONE, |inner| program.op_name_id(inner))
}
