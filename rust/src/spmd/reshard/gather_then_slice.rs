//! Plans between any two placements, even if sub-axes do not nest, as the major 2 and the major 3 of an axis of 6. No collective
//! leads from shards along one to shards along the other: the digits that they do not share are gathered, then sliced.

use super::super::digits::{Cuts, Digit};
use super::super::placement::Placement;
use super::one_permute;
use super::reordered;
use super::search::{nested, straight, Plan};
use super::steps::Abilities;

/// The plan from `from` to `target` for a tensor of shape `shape`. Both are in the same order of devices; `target` is unreduced
/// only over digits over which `from` is. The plan takes only steps that `abilities` allow.
pub fn plan(from: &Placement, target: &Placement, shape: &[i64], abilities: Abilities) -> Plan {
    if from == target {
        return Plan::default();
    }
    let found = nested(from, target, shape, abilities).unwrap_or_else(|| {
        let all = straight(from, target, shape);
        let less = through_common(from, target, shape);
        less.filter(|plan| plan.sent() < all.sent()).unwrap_or(all)
    });
    if found.sent() == 0 {
        return found;
    }
    let other = one_permute::plan(from, target, shape, abilities);
    other.filter(|other| other.sent() < found.sent()).unwrap_or(found)
}

/// As [`plan`], where `target` may be in another order of devices than `from`.
pub fn plan_between(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Plan {
    if from.order == target.order || from.is_replicated() || target.is_replicated() {
        return plan(from, target, shape, abilities);
    }
    let here = Placement { order: from.order, ..target.clone() };
    let permuted = one_permute::plan(from, &here, shape, abilities);
    let plans = std::iter::once(plan(from, &here, shape, abilities)).chain(permuted);
    let plans = plans.map(|plan| reordered::in_order(&plan, from, target.order, shape));
    plans.min_by_key(|plan| (plan.sent(), plan.steps.len())).unwrap_or_default()
}

/// The plan through the placement with the digits of `from` that `target` shares, or that are disjoint from all of its digits, and
/// with digits of `target` that can be sliced before the other digits of `from` are gathered.
fn through_common(from: &Placement, target: &Placement, shape: &[i64]) -> Option<Plan> {
    if !target.partial.is_empty() {
        return None;
    }
    let parts = |placement: &Placement, other: &Placement| -> Vec<Vec<Digit>> {
        let part = |digit: &Digit| Cuts::common(*digit, other.digits());
        placement.dims.iter().map(|digits| digits.iter().flat_map(part).collect()).collect()
    };
    let (own, wanted) = (parts(from, target), parts(target, from));
    let is_common = |digit: &Digit, others: &[Vec<Digit>]| {
        others.iter().flatten().all(|other| other == digit || other.is_apart(*digit))
    };
    let mut dims = own.clone();
    for (digits, wanted_here) in dims.iter_mut().zip(&wanted) {
        digits.retain(|digit| is_common(digit, &wanted));
        if wanted_here.starts_with(digits) {
            let more = &wanted_here[digits.len()..];
            digits.extend(more.iter().take_while(|digit| {
                let is_free = |other: &Digit| other.is_apart(**digit);
                own.iter().flatten().chain(&from.partial).all(is_free)
            }));
        }
    }
    let between = Placement { order: from.order, dims, partial: Vec::new() }.merged();
    let mut plan = nested(from, &between, shape, Abilities::default())?;
    plan.steps.extend(nested(&between, target, shape, Abilities::default())?.steps);
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::super::steps::Step;
    use super::*;

    const SPREADS: Abilities = Abilities { spreads: true, exchanges: false, refines: false };

    fn place(dims: &[&[(i64, i64)]]) -> Placement {
        let digit = |&(stride, size): &(i64, i64)| Digit { stride, size };
        let dims = dims.iter().map(|digits| digits.iter().map(digit).collect());
        Placement { dims: dims.collect(), ..Placement::default() }
    }

    #[test]
    fn only_parts_that_do_not_nest_are_gathered() {
        // An axis of 12, then one of 2: the major 6 of the one to its major 4, whose major 2 stays.
        let (from, to) = (place(&[&[(4, 6)], &[]]), place(&[&[(6, 4)], &[(1, 2)]]));
        let plan = plan(&from, &to, &[24, 8], SPREADS);
        let gathers = plan.steps.iter().filter_map(|reached| match &reached.step {
            Step::AllGather { digits, .. } => Some(digits.clone()),
            _ => None,
        });
        assert_eq!(gathers.collect::<Vec<_>>(), [[Digit { stride: 4, size: 3 }]]);
        assert_eq!(plan.sent(), 4 * 4 * 2);
        assert_eq!(plan.steps.last().unwrap().placement, to);
    }

    #[test]
    fn terms_are_reduced_first() {
        let (mut from, to) = (place(&[&[(3, 2)]]), place(&[&[(2, 3)]]));
        from.partial = vec![Digit { stride: 6, size: 2 }];
        let plan = plan(&from, &to, &[6], SPREADS);
        assert_eq!(plan.steps.last().unwrap().placement, to);
        assert!(matches!(plan.steps[0].step, Step::AllReduce { .. }));
    }
}
