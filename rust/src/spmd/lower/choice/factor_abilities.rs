//! The factors along which an op can be partitioned, if its rule alone does not determine that.

use crate::index::{FactorId, Id};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::lower::choice::factor_placements::{factor_places, FactorPlaces};
use crate::spmd::lower::control_flow::scan_bodies::is_elementwise_scan;
use crate::spmd::lower::custom_calls::target;
use crate::spmd::lower::gather_scatter::{dynamic_slices, on_indexed_dims};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::reduction::{reduce, top_k};
use crate::spmd::lower::windows::concatenate::concatenated_dim;
use crate::spmd::lower::windows::convolution::is_spatial;
use crate::spmd::lower::windows::elements_needed::{Geometries, Geometry};
use crate::spmd::lower::windows::{convolution, select_and_scatter};
use crate::spmd::strategy::Ability;

/// The ability of the op along each factor.
pub(in crate::spmd::lower) fn abilities(program: &Program, work: &OpWithRule) -> Vec<Ability> {
    let rule = work.rule;
    let has = |list: &[FactorId], factor| list.binary_search(&factor).is_ok();
    let facts = Facts::of(program, work);
    let terms = reduce::ability_of_reductions(program, work);
    let mut all = Vec::with_capacity(rule.num_factors());
    for (index, places) in factor_places(work).iter().enumerate() {
        let factor = FactorId::from_index(index);
        let ability = if facts.is_moved_along(places) {
            Ability::Moved
        } else if has(&rule.need_replication, factor) || has(&rule.permutation, factor) {
            Ability::Whole
        } else if has(&rule.reduction, factor) {
            // By the user's rule, if no result has the factor.
            let is_terms = facts.kind == OpKind::CustomCall && places.results == 0;
            if is_terms {
                Ability::Terms
            } else {
                terms
            }
        } else if facts.is_local_along(places) {
            Ability::Local
        } else {
            Ability::Whole
        };
        all.push(ability);
    }
    on_indexed_dims::refine(program, work, &mut all);
    dynamic_slices::refine(program, work, &mut all);
    convolution::refine(program, work, &mut all);
    select_and_scatter::refine(program, work, &mut all);
    top_k::refine(program, work, &mut all);
    if has_rounded_terms(program, work) {
        all.iter_mut()
            .filter(|ability| **ability == Ability::Terms)
            .for_each(|ability| *ability = Ability::Whole);
    }
    all
}

/// Whether partial results would be rounded before they are added: those of quantized types, except for ops that add only one
/// element to zeros.
fn has_rounded_terms(program: &Program, work: &OpWithRule) -> bool {
    let picks = matches!(program.kind(work.op), OpKind::Gather | OpKind::DynamicSlice);
    !picks && work.results.iter().any(|&(ty, _)| program.is_quantized(ty))
}

/// The abilities of `work` without those for which shards fetch elements: that needs a list of all shards.
pub(in crate::spmd::lower) fn without_fetches(
    program: &Program,
    work: &OpWithRule,
) -> Vec<Ability> {
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

/// The properties of an op, besides the factor, that determine abilities.
struct Facts<'a> {
    kind: OpKind,
    num_operands: usize,
    num_results: usize,
    geometries: Geometries<'a>,
    /// The dim along which operands are concatenated.
    concatenated: Option<usize>,
    /// The dim along which elements are sorted or scanned.
    sorted: Option<usize>,
    /// Whether the op is a scan whose body does not compute each element by itself.
    mixes_slices: bool,
    selected: Selected,
}

/// The dims along which an op selects the k largest elements; k may cover the whole dim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selected {
    None,
    Last,
    /// Any dim: the op's attributes name it.
    Any,
}

impl<'a> Facts<'a> {
    fn of(program: &Program, work: &'a OpWithRule<'a>) -> Self {
        let kind = program.kind(work.op);
        Self {
            kind,
            num_operands: work.rule.operands.len(),
            num_results: work.rule.results.len(),
            geometries: Geometries::of(program, work),
            concatenated: concatenated_dim(program, work.op),
            sorted: if matches!(kind, OpKind::Sort | OpKind::Scan) {
                sorted_dim(program, work)
            } else {
                None
            },
            mixes_slices: kind == OpKind::Scan && !is_elementwise_scan(program, work.op),
            selected: Selected::of(program, work),
        }
    }
    /// Whether the op moves elements along a factor as a [`crate::spmd::lower::windows::elements_needed::Geometry`] describes: the
    /// factor is a dim of the first operand and of the first result.
    fn is_moved_along(&self, factor: &FactorPlaces) -> bool {
        if let Some(dim) = self.concatenated {
            return factor.alone_in_result == Some(dim);
        }
        let Some(dim) = factor.alone_in_operand else { return false };
        factor.alone_in_result.is_some()
            && self.geometries.along(dim).is_some()
            && !self.is_local_along(factor)
    }
    /// Whether shards along a pass-through factor of the rule can be computed independently.
    fn is_local_along(&self, factor: &FactorPlaces) -> bool {
        if !factor.fits || factor.results < self.num_results {
            return false;
        }
        let geometry = factor.in_first.and_then(|dim| self.geometries.along(dim));
        if geometry.is_some_and(|geometry| geometry != Geometry::SAME) {
            return false;
        }
        match self.kind {
            OpKind::BroadcastInDim => true,
            _ if factor.operands == 0 => false,
            OpKind::Scan if self.mixes_slices => false,
            OpKind::Sort | OpKind::Scan => factor.in_first != self.sorted,
            _ if self.selected == Selected::Any => false,
            _ if self.selected == Selected::Last && factor.is_last_of_operand => false,
            // The number of groups would change.
            OpKind::Convolution => factor.results > 0 && factor.operands < self.num_operands,
            _ => true,
        }
    }
}

/// The dim along which `work`, a sort or a scan, goes.
fn sorted_dim(program: &Program, work: &OpWithRule) -> Option<usize> {
    let dim = op_attribute(program, work.op, "dimension").and_then(|value| value.as_int());
    let rank = work.shapes.first().map_or(0, Vec::len) as i64;
    let sorted = dim.map_or(rank - 1, |dim| if dim < 0 { dim + rank } else { dim });
    usize::try_from(sorted).ok()
}

impl Selected {
    fn of(program: &Program, work: &OpWithRule) -> Self {
        let name = match program.kind(work.op) {
            OpKind::CustomCall => target(program, work.op),
            _ => program.op_name(work.op).to_owned(),
        };
        match &*name {
            _ if work.rule.operands.is_empty() => Self::None,
            "chlo.top_k" | "mhlo.topk" => Self::Last,
            // Of all elements nobody asks an approximation.
            "ApproxTopK" | "PartialReduce" if work.shapes.first() == work.shapes.last() => {
                Self::Any
            }
            _ => Self::None,
        }
    }
}
