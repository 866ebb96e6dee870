//! For each factor of an op's rule, the dims of its tensors that have it.

use crate::index::{FactorId, Id};
use crate::op_sharding_rule::TensorMapping;
use crate::spmd::lower::op_with_rule::OpWithRule;

/// The dims that have one factor.
#[derive(Clone, Debug)]
pub(in crate::spmd::lower) struct FactorPlaces {
    /// The first dim with the factor, of the first operand, or of the first result if there are no operands.
    pub in_first: Option<usize>,
    /// The first dim of the first operand that has only this factor.
    pub alone_in_operand: Option<usize>,
    /// The first dim of the first result that has only this factor.
    pub alone_in_result: Option<usize>,
    /// Whether the last dim of the first operand has only this factor.
    pub is_last_of_operand: bool,
    /// The number of operands with the factor.
    pub operands: usize,
    /// The number of results with the factor.
    pub results: usize,
    /// Whether all dims that have only this factor have its size.
    pub fits: bool,
}

/// The dims of each factor in the rule of `work`, in one pass over its tensors.
pub(in crate::spmd::lower) fn factor_places(work: &OpWithRule) -> Vec<FactorPlaces> {
    let rule = work.rule;
    let nowhere = FactorPlaces {
        in_first: None,
        alone_in_operand: None,
        alone_in_result: None,
        is_last_of_operand: false,
        operands: 0,
        results: 0,
        fits: true,
    };
    let mut all = vec![nowhere; rule.num_factors()];
    let num_operands = rule.operands.len();
    // The last tensor in which each factor was seen, from 1.
    let mut seen = vec![0; rule.num_factors()];
    for (tensor, mapping) in rule.tensors().enumerate() {
        for (dim, factors) in mapping.dims.iter().enumerate() {
            for factor in factors {
                let places = &mut all[factor.index()];
                if seen[factor.index()] != tensor + 1 {
                    seen[factor.index()] = tensor + 1;
                    let count = if tensor < num_operands {
                        &mut places.operands
                    } else {
                        &mut places.results
                    };
                    *count += 1;
                    if tensor == 0 {
                        places.in_first = Some(dim);
                    }
                }
            }
            let size = work.shapes.get(tensor).and_then(|shape| shape.get(dim));
            if let (&[factor], Some(&size)) = (&factors[..], size) {
                all[factor.index()].fits &= size == rule.factor_size(factor);
            }
        }
    }
    for (dim, factor) in lone_factors(rule.operands.first()) {
        all[factor.index()].alone_in_operand.get_or_insert(dim);
    }
    for (dim, factor) in lone_factors(rule.results.first()) {
        all[factor.index()].alone_in_result.get_or_insert(dim);
    }
    let last = rule.operands.first().and_then(|first| first.dims.last());
    if let Some(&[factor]) = last.map(Vec::as_slice) {
        all[factor.index()].is_last_of_operand = true;
    }
    all
}

/// The dims of `mapping` that have one factor, with that factor.
fn lone_factors(mapping: Option<&TensorMapping>) -> impl Iterator<Item = (usize, FactorId)> + '_ {
    let dims = mapping.into_iter().flat_map(|mapping| mapping.dims.iter().enumerate());
    dims.filter_map(|(dim, factors)| match factors[..] {
        [factor] => Some((dim, factor)),
        _ => None,
    })
}
