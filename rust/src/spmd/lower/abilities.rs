//! How an op can be computed along each factor of its rule, as far as the rule alone does not determine it.

use super::super::ways::Ability;
use super::concatenate::concatenated_dim;
use super::convolution::is_spatial;
use super::custom_calls::target;
use super::geometry::Geometry;
use super::work::ByRule;
use super::{convolution, dynamic, indexing, reduce, top_k, windows};
use crate::index::{FactorId, Id};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;

/// The ability of the op along each factor.
pub(super) fn abilities(program: &Program, work: &ByRule) -> Vec<Ability> {
    let rule = work.rule;
    let has = |list: &[FactorId], factor| list.binary_search(&factor).is_ok();
    let mut all = Vec::with_capacity(rule.num_factors());
    for factor in (0..rule.num_factors()).map(FactorId::from_index) {
        let ability = if is_moved_along(program, work, factor) {
            Ability::Moved
        } else if has(&rule.need_replication, factor) || has(&rule.permutation, factor) {
            Ability::Whole
        } else if has(&rule.reduction, factor) {
            reduce::ability_along_reduction(program, work, factor)
        } else if is_local_along(program, work, factor) {
            Ability::Local
        } else {
            Ability::Whole
        };
        all.push(ability);
    }
    indexing::refine(program, work, &mut all);
    dynamic::refine(program, work, &mut all);
    convolution::refine(program, work, &mut all);
    windows::refine(program, work, &mut all);
    top_k::refine(program, work, &mut all);
    all
}

/// The abilities of `work` without those for which shards fetch elements, which takes a list of all shards.
pub(super) fn without_fetches(program: &Program, work: &ByRule) -> Vec<Ability> {
    let of_factor = |(factor, &ability): (usize, &Ability)| match ability {
        Ability::Moved => Ability::Whole,
        Ability::Terms
            if program.kind(work.op) == OpKind::Convolution
                && is_spatial(program, work, FactorId::from_index(factor)) =>
        {
            Ability::Whole
        }
        kept => kept,
    };
    work.abilities.iter().enumerate().map(of_factor).collect()
}

/// Whether the op moves elements along `factor` as a [`super::geometry::Geometry`] describes: the factor is a dim of
/// the first operand, which the op changes, and of the first result.
fn is_moved_along(program: &Program, work: &ByRule, factor: FactorId) -> bool {
    let dim_of = |tensor: Option<&crate::rule::TensorMapping>| {
        tensor?.dims.iter().position(|dim| dim[..] == [factor])
    };
    if let Some(dim) = concatenated_dim(program, work.op) {
        return dim_of(work.rule.results.first()) == Some(dim);
    }
    let Some(dim) = dim_of(work.rule.operands.first()) else { return false };
    dim_of(work.rule.results.first()).is_some()
        && Geometry::of(program, work, dim).is_some()
        && !is_local_along(program, work, factor)
}

/// Whether shards along `factor`, a pass-through factor of the rule, can be computed independently.
fn is_local_along(program: &Program, work: &ByRule, factor: FactorId) -> bool {
    let rule = work.rule;
    let size = rule.factor_size(factor);
    let dims_fit = rule.tensors().zip(work.shapes).all(|(mapping, shape)| {
        mapping
            .dims
            .iter()
            .zip(shape)
            .all(|(dim, &dim_size)| dim[..] != [factor] || dim_size == size)
    });
    let is_in = |tensors: &[crate::rule::TensorMapping]| {
        tensors.iter().any(|tensor| tensor.contains(factor))
    };
    let in_operands = is_in(&rule.operands);
    let in_all_results = rule.results.iter().all(|tensor| tensor.contains(factor));
    if !dims_fit || !in_all_results {
        return false;
    }
    let op = work.op;
    let dim_of = |tensor: usize| {
        let mapping = rule.tensors().nth(tensor)?;
        mapping.dims.iter().position(|dim| dim.contains(&factor))
    };
    let geometry = dim_of(0).and_then(|dim| Geometry::of(program, work, dim));
    if geometry.is_some_and(|geometry| geometry != Geometry::SAME) {
        return false;
    }
    match program.kind(op) {
        OpKind::BroadcastInDim => true,
        _ if !in_operands => false,
        OpKind::Sort => {
            let dim = op_attribute(program, op, "dimension").and_then(|value| value.as_int());
            let rank = work.shapes.first().map_or(0, Vec::len) as i64;
            let sorted = dim.map_or(rank - 1, |dim| if dim < 0 { dim + rank } else { dim });
            dim_of(0) != usize::try_from(sorted).ok()
        }
        _ if is_selected_along(program, work, factor) => false,
        // The number of groups would change.
        OpKind::Convolution => {
            let in_result = rule.results.first().is_some_and(|tensor| tensor.contains(factor));
            let both = rule.operands.iter().all(|tensor| tensor.contains(factor));
            in_result && !both
        }
        _ => true,
    }
}

/// Whether the op takes the k largest elements along `factor`, where k may be all of them.
fn is_selected_along(program: &Program, work: &ByRule, factor: FactorId) -> bool {
    let name = match program.kind(work.op) {
        OpKind::CustomCall => target(program, work.op),
        _ => program.op_name(work.op).to_owned(),
    };
    let Some(mapping) = work.rule.operands.first() else { return false };
    match &*name {
        "chlo.top_k" | "mhlo.topk" => mapping.dims.last().is_some_and(|dim| dim[..] == [factor]),
        // Of which dim is in attributes of its own. Of all elements nobody asks an approximation.
        "ApproxTopK" | "PartialReduce" => work.shapes.first() == work.shapes.last(),
        _ => false,
    }
}
