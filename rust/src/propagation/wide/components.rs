//! Components of a rule: sets of tensors, with their factors, that are connected by factors.
//! Tensors of different components share no factor, directly or through others.

use crate::index::{FactorId, Id};
use crate::op_sharding_rule::OpShardingRule;

/// A component of a rule as a rule of its own.
pub struct SubRule {
    /// The indices of its tensors among operands and results, in order.
    pub tensors: Vec<u32>,
    /// The rule of these tensors; its factors are in the order of the whole rule.
    pub rule: OpShardingRule,
}

/// The components of `rule`. Tensors without factors are in no component.
pub fn components(rule: &OpShardingRule) -> Vec<SubRule> {
    let roots = connected_factors(rule);
    let mut found: Vec<SubRule> = Vec::new();
    // For each factor its component, and its index there.
    let mut places: Vec<(usize, FactorId)> = Vec::with_capacity(roots.len());
    for (factor, &root) in roots.iter().enumerate() {
        let component = if root == factor { found.len() } else { places[root].0 };
        if root == factor {
            let is_custom = rule.is_custom;
            let rule = OpShardingRule { is_custom, ..OpShardingRule::default() };
            found.push(SubRule { tensors: Vec::new(), rule });
        }
        let sizes = &mut found[component].rule.factor_sizes;
        places.push((component, FactorId::from_index(sizes.len())));
        sizes.push(rule.factor_sizes[factor]);
    }
    for (index, mapping) in rule.tensors().enumerate() {
        let Some(&factor) = mapping.dims.iter().flatten().next() else { continue };
        let component = &mut found[places[factor.index()].0];
        component.tensors.push(index as u32);
        let is_operand = index < rule.operands.len();
        let side =
            if is_operand { &mut component.rule.operands } else { &mut component.rule.results };
        let mut mapping = mapping.clone();
        for factor in mapping.dims.iter_mut().flatten() {
            *factor = places[factor.index()].1;
        }
        side.push(mapping);
    }
    let mut spread = |factors: &[FactorId], list: fn(&mut OpShardingRule) -> &mut Vec<FactorId>| {
        for factor in factors {
            let (component, factor) = places[factor.index()];
            list(&mut found[component].rule).push(factor);
        }
    };
    spread(&rule.reduction, |rule| &mut rule.reduction);
    spread(&rule.need_replication, |rule| &mut rule.need_replication);
    spread(&rule.permutation, |rule| &mut rule.permutation);
    spread(&rule.blocked, |rule| &mut rule.blocked);
    found
}

/// For each factor the first factor of its component.
fn connected_factors(rule: &OpShardingRule) -> Vec<usize> {
    fn root(roots: &mut [usize], mut factor: usize) -> usize {
        while roots[factor] != factor {
            roots[factor] = roots[roots[factor]];
            factor = roots[factor];
        }
        factor
    }
    let mut roots: Vec<usize> = (0..rule.num_factors()).collect();
    for mapping in rule.tensors() {
        let mut factors = mapping.dims.iter().flatten().map(|factor| factor.index());
        let Some(first) = factors.next() else { continue };
        for other in factors {
            let (a, b) = (root(&mut roots, first), root(&mut roots, other));
            roots[a.max(b)] = a.min(b);
        }
    }
    for factor in 0..roots.len() {
        roots[factor] = root(&mut roots, factor);
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op_sharding_rule::TensorMapping;

    #[test]
    fn components_share_no_factor() {
        let tensor = |factors: &[usize]| TensorMapping {
            dims: factors.iter().map(|&factor| vec![FactorId::from_index(factor)]).collect(),
        };
        let rule = OpShardingRule {
            factor_sizes: vec![2, 3, 4, 5, 6],
            operands: vec![tensor(&[0, 3]), tensor(&[1]), tensor(&[]), tensor(&[4, 1])],
            results: vec![tensor(&[3]), tensor(&[4]), tensor(&[2])],
            reduction: vec![FactorId::new(0), FactorId::new(1)],
            blocked: vec![FactorId::new(4)],
            ..OpShardingRule::default()
        };
        let found = components(&rule);
        let tensors: Vec<&[u32]> = found.iter().map(|component| &component.tensors[..]).collect();
        assert_eq!(tensors, [&[0, 4][..], &[1, 3, 5], &[6]]);
        let second = OpShardingRule {
            factor_sizes: vec![3, 6],
            operands: vec![tensor(&[0]), tensor(&[1, 0])],
            results: vec![tensor(&[1])],
            reduction: vec![FactorId::new(0)],
            blocked: vec![FactorId::new(1)],
            ..OpShardingRule::default()
        };
        assert_eq!(found[1].rule, second);
    }
}
