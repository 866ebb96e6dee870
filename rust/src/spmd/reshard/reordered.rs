//! Plans between two orders of devices: somewhere in the plan a permute sends every shard to the device with the same position in
//! the other order.

use super::super::placement::Placement;
use super::search::Plan;
use super::steps::{Position, Reached, Step};

/// `plan`, which starts at `from`, with all placements after the permute in `order`. If the plan has a permute, it changes the
/// order, too; none is needed where every device holds the whole tensor; else shards are permuted where they are smallest.
pub(in super::super) fn in_order(plan: &Plan, from: &Placement, order: u32, shape: &[i64]) -> Plan {
    let is_permute = |reached: &Reached| matches!(reached.step, Step::Permute);
    if let Some(at) = plan.steps.iter().position(is_permute) {
        let mut plan = plan.clone();
        plan.steps[at..].iter_mut().for_each(|reached| set_order(&mut reached.placement, order));
        return plan;
    }
    let reached = plan.steps.iter().map(|reached| &reached.placement);
    let places: Vec<&Placement> = std::iter::once(from).chain(reached).collect();
    let sent = |at: &Placement| {
        if at.is_replicated() {
            0
        } else {
            Position::of(at, shape).elements()
        }
    };
    let least = (0..places.len()).min_by_key(|&at| sent(places[at])).unwrap_or_default();
    let mut permuted = places[least].clone();
    let mut steps = plan.steps.clone();
    steps[least..].iter_mut().for_each(|reached| set_order(&mut reached.placement, order));
    if permuted.is_replicated() {
        // In no order.
        steps[..least]
            .last_mut()
            .into_iter()
            .for_each(|last| set_order(&mut last.placement, order));
    } else {
        let sent = sent(&permuted);
        set_order(&mut permuted, order);
        steps.insert(least, Reached { step: Step::Permute, placement: permuted, sent });
    }
    Plan { steps, rematerializes: plan.rematerializes }
}

fn set_order(placement: &mut Placement, order: u32) {
    placement.order = if placement.is_replicated() { 0 } else { order };
}

#[cfg(test)]
mod tests {
    use super::super::super::digits::Digit;
    use super::super::{plan, Abilities};
    use super::*;

    // Mesh "x"=2, "y"=4.
    const X: Digit = Digit { stride: 4, size: 2 };
    const Y: Digit = Digit { stride: 1, size: 4 };

    fn planned(from: &[&[Digit]], to: &[&[Digit]]) -> (Vec<bool>, i64) {
        let place = |dims: &[&[Digit]]| Placement {
            dims: dims.iter().map(|digits| digits.to_vec()).collect(),
            ..Placement::default()
        };
        let (from, to, shape) = (place(from), place(to), [8, 8]);
        let plan = in_order(&plan(&from, &to, &shape, Abilities::default()), &from, 1, &shape);
        let last = plan.steps.last().unwrap();
        assert_eq!(last.placement.dims, to.dims);
        let permutes = plan.steps.iter().map(|reached| matches!(reached.step, Step::Permute));
        (permutes.collect(), plan.sent())
    }

    #[test]
    fn shards_are_permuted_where_they_are_smallest() {
        assert_eq!(planned(&[&[X], &[Y]], &[&[], &[Y]]), (vec![true, false], 8 + 8));
        assert_eq!(planned(&[&[X], &[]], &[&[X], &[Y]]), (vec![false, true], 8));
        assert_eq!(planned(&[&[X], &[]], &[&[X], &[]]), (vec![true], 32));
    }

    #[test]
    fn a_permute_of_the_plan_changes_the_order() {
        assert_eq!(planned(&[&[X, Y], &[]], &[&[Y, X], &[]]), (vec![true], 8));
    }
}
