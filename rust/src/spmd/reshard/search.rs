//! Finds the steps from one placement to another that send the fewest bytes, and of those the fewest steps.
//!
//! Placements are the nodes of a graph, steps its edges; the A* algorithm finds the shortest path. Its estimate is
//! [`missing`]. There are few nodes, since a mesh has few axes. If there are too many, the plan is the one that always exists:
//! reduce, gather the dims that differ, slice.

use super::super::digits::{merged, Cuts};
use super::super::placement::Placement;
use super::kept_dims::KeptDims;
use super::lower::shard_elements;
use super::steps::{all_reduced, Abilities, Moved, Moves, Position, Reached, Step};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most nodes that the search visits.
const MAX_NODES: usize = 4096;

/// The steps from one placement to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, each with the placement after it.
    pub steps: Vec<Reached>,
    /// Whether it is a full rematerialization: every device gathers the whole tensor, as no other case applied; see
    /// [`super::super::xla::reshard`].
    pub rematerializes: bool,
}

impl Plan {
    /// Elements that a device sends in all.
    pub fn sent(&self) -> i64 {
        self.steps.iter().fold(0i64, |sum, reached| sum.saturating_add(reached.sent))
    }
    /// Merges consecutive digits of its placements and steps that form one digit.
    pub fn merge(&mut self) {
        for reached in &mut self.steps {
            merge(reached);
        }
    }
}

/// The plan between placements whose sub-axes nest; `None` if they do not.
pub(super) fn nested(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Option<Plan> {
    let cuts = Cuts::of(from.digits().chain(target.digits()))?;
    let (from, target) = (from.split(&cuts), target.split(&cuts));
    let mut plan =
        search(&from, &target, shape, abilities).unwrap_or_else(|| straight(&from, &target, shape));
    plan.merge();
    Some(plan)
}

/// Merges consecutive digits that form one digit.
fn merge(reached: &mut Reached) {
    reached.placement = reached.placement.merged();
    match &mut reached.step {
        Step::Slice { digits, .. }
        | Step::Refine { digits, .. }
        | Step::AllGather { digits, .. }
        | Step::Spread { digits, .. }
        | Step::AllReduce { digits }
        | Step::ReduceScatter { digits, .. } => *digits = merged(digits.iter().copied()),
        Step::AllToAll { moved } => {
            for Moved { digits, .. } in moved {
                *digits = merged(digits.iter().copied());
            }
        }
        Step::Permute => {}
    }
}

/// The cost of a plan: elements sent, then number of steps that send, then number of steps.
type Cost = (i64, u32, u32);

/// A visited node: the index of the node before, and the step.
struct Node {
    placement: Placement,
    cost: Cost,
    before: Option<(usize, Reached)>,
    is_done: bool,
}

/// A lower bound of the elements that a device of placement `at` receives until it has a shard of `wanted` elements. No step that
/// grows shards sends fewer elements than it adds.
fn missing(at: &Placement, wanted: i64, (shape, others): (&[i64], i64)) -> i64 {
    (wanted - shard_elements(at, shape)).max(0).saturating_mul(others)
}

/// The shortest plan, found over the kept dims.
fn search(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Option<Plan> {
    let dims = KeptDims::of(from, target, shape);
    let (from, target) = (dims.placement(from), dims.placement(target));
    let mut plan = shortest(&from, &target, (&dims.choose(shape), dims.others), abilities)?;
    dims.widen(&mut plan.steps);
    Some(plan)
}

/// The shortest plan for a tensor of shape `shape`, and `others` elements along other dims.
fn shortest(
    from: &Placement,
    target: &Placement,
    (shape, others): (&[i64], i64),
    abilities: Abilities,
) -> Option<Plan> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut numbers: FxHashMap<Placement, usize> = FxHashMap::default();
    let mut queue = BinaryHeap::new();
    nodes.push(Node { placement: from.clone(), cost: (0, 0, 0), before: None, is_done: false });
    numbers.insert(from.clone(), 0);
    let wanted = shard_elements(target, shape);
    queue.push(Reverse(((missing(from, wanted, (shape, others)), 0u32, 0u32), 0usize)));
    while let Some(Reverse((_, number))) = queue.pop() {
        if std::mem::replace(&mut nodes[number].is_done, true) {
            continue;
        }
        let cost = nodes[number].cost;
        if nodes[number].placement == *target {
            return Some(strategy_to(nodes, number));
        }
        if nodes.len() > MAX_NODES {
            return None;
        }
        let at = nodes[number].placement.clone();
        let from = Position { at: &at, shape, others };
        for reached in (Moves { from, target, abilities }).list() {
            let sends = u32::from(!matches!(reached.step, Step::Slice { .. }));
            let cost = (cost.0.saturating_add(reached.sent), cost.1 + sends, cost.2 + 1);
            let next = nodes.len();
            let left = missing(&reached.placement, wanted, (shape, others));
            let to = *numbers.entry(reached.placement.clone()).or_insert(next);
            if to == next {
                let placement = reached.placement.clone();
                let before = Some((number, reached));
                nodes.push(Node { placement, cost, before, is_done: false });
            } else if cost < nodes[to].cost {
                (nodes[to].cost, nodes[to].before) = (cost, Some((number, reached)));
            } else {
                continue;
            }
            queue.push(Reverse(((cost.0.saturating_add(left), cost.1, cost.2), to)));
        }
    }
    None
}

fn strategy_to(mut nodes: Vec<Node>, mut number: usize) -> Plan {
    let mut steps = Vec::new();
    while let Some((before, reached)) = nodes[number].before.take() {
        steps.push(reached);
        number = before;
    }
    steps.reverse();
    Plan { steps: joined(steps), rematerializes: false }
}

/// Merges consecutive slices of one dim, and consecutive gathers.
fn joined(steps: Vec<Reached>) -> Vec<Reached> {
    let mut joined: Vec<Reached> = Vec::new();
    for reached in steps {
        if let Some(last) = joined.last_mut() {
            let is_one = match (&mut last.step, &reached.step) {
                (Step::Slice { dim, digits }, Step::Slice { dim: other, digits: more })
                    if dim == other =>
                {
                    digits.extend(more);
                    true
                }
                (
                    Step::ReduceScatter { dim, digits },
                    Step::ReduceScatter { dim: other, digits: more },
                ) if dim == other => {
                    digits.extend(more);
                    true
                }
                _ => false,
            };
            if is_one {
                last.placement = reached.placement;
                last.sent += reached.sent;
                continue;
            }
        }
        joined.push(reached);
    }
    joined
}

/// The plan that always exists: reduce, gather every dim that changes, slice.
pub(super) fn straight(from: &Placement, target: &Placement, shape: &[i64]) -> Plan {
    let mut steps = Vec::new();
    let mut at = from.clone();
    let elements = |at: &Placement| -> i64 {
        at.local_shape(shape).iter().fold(1i64, |product, &size| product.saturating_mul(size))
    };
    if !at.partial.is_empty() && target.partial.is_empty() {
        let digits = std::mem::take(&mut at.partial);
        let devices = super::super::digits::total_size(&digits);
        let sent = all_reduced(elements(&at), devices);
        steps.push(Reached { step: Step::AllReduce { digits }, placement: at.clone(), sent });
    }
    let differs = |at: &Placement, dim: usize| at.dims[dim] != target.dims[dim];
    for dim in 0..at.dims.len() {
        if differs(&at, dim) && !at.dims[dim].is_empty() {
            let sent = elements(&at).saturating_mul(at.num_shards(dim) - 1);
            let digits = std::mem::take(&mut at.dims[dim]);
            let step = Step::AllGather { dim, digits };
            steps.push(Reached { step, placement: at.clone(), sent });
        }
    }
    for dim in 0..at.dims.len() {
        if differs(&at, dim) {
            at.dims[dim].clone_from(&target.dims[dim]);
            let step = Step::Slice { dim, digits: at.dims[dim].clone() };
            steps.push(Reached { step, placement: at.clone(), sent: 0 });
        }
    }
    Plan { steps, rematerializes: false }
}

#[cfg(test)]
mod tests {
    use super::super::super::digits::Digit;
    use super::*;

    fn planned_between(from: &Placement, target: &Placement, shape: &[i64]) -> Plan {
        nested(from, target, shape, Abilities::default()).unwrap()
    }

    // Mesh "x"=2, "y"=4.
    const X: Digit = Digit { stride: 4, size: 2 };
    const Y: Digit = Digit { stride: 1, size: 4 };

    const SPREADS: Abilities = Abilities { spreads: true, exchanges: false, refines: false };

    fn place(dims: &[&[Digit]]) -> Placement {
        Placement {
            dims: dims.iter().map(|digits| digits.to_vec()).collect(),
            ..Placement::default()
        }
    }
    fn names(plan: &Plan) -> Vec<&'static str> {
        let name = |reached: &Reached| match reached.step {
            Step::Slice { .. } => "slice",
            Step::Refine { .. } => "refine",
            Step::AllGather { .. } => "all_gather",
            Step::Spread { .. } => "spread",
            Step::AllToAll { .. } => "all_to_all",
            Step::Permute => "permute",
            Step::AllReduce { .. } => "all_reduce",
            Step::ReduceScatter { .. } => "reduce_scatter",
        };
        plan.steps.iter().map(name).collect()
    }
    fn planned(from: &[&[Digit]], to: &[&[Digit]], shape: &[i64]) -> (Vec<&'static str>, i64) {
        let plan = planned_between(&place(from), &place(to), shape);
        (names(&plan), plan.sent())
    }

    #[test]
    fn strategies_are_the_short_ones() {
        assert_eq!(planned(&[&[X], &[]], &[&[], &[X]], &[8, 8]), (vec!["all_to_all"], 16));
        assert_eq!(planned(&[&[], &[]], &[&[X], &[Y]], &[8, 8]).0, ["slice", "slice"]);
        assert_eq!(planned(&[&[X, Y], &[]], &[&[Y], &[]], &[64, 1]).0, ["permute", "all_gather"]);
        // Sliced before it is gathered.
        assert_eq!(planned(&[&[X], &[]], &[&[], &[Y]], &[8, 8]), (vec!["slice", "all_gather"], 8));
        assert_eq!(
            planned(&[&[X], &[Y]], &[&[Y], &[X]], &[8, 8]),
            (vec!["all_to_all"; 3], 4 + 7 + 4)
        );
    }

    #[test]
    fn two_exchanges_do_for_a_swap_onto_one_dim() {
        let from = place(&[&[Y], &[], &[X]]);
        let to = place(&[&[], &[X, Y], &[]]);
        let plan = planned_between(&from, &to, &[16, 16, 4]);
        assert_eq!(names(&plan), ["all_to_all", "all_to_all"]);
        assert_eq!(plan.sent(), 128 / 2 + 128 / 4 * 3);
    }

    #[test]
    fn exchanges_along_two_dims_are_one_all_to_all() {
        let digit = |stride| Digit { stride, size: 2 };
        let [x, y, z] = [digit(4), digit(2), digit(1)];
        let planned = |from: &[&[Digit]], to: &[&[Digit]], shape: &[i64]| {
            let abilities = Abilities { exchanges: true, ..Abilities::default() };
            let plan = nested(&place(from), &place(to), shape, abilities).unwrap();
            assert_eq!(plan.steps.last().unwrap().placement, place(to).merged());
            (names(&plan), plan.sent())
        };
        // One after the other they send 1/2 + 3/4 of 64 elements.
        let (from, to): ([&[Digit]; 4], [&[Digit]; 4]) =
            ([&[X], &[], &[Y], &[]], [&[], &[X], &[], &[Y]]);
        assert_eq!(planned(&from, &to, &[4, 8, 4, 4]), (vec!["all_to_all"], 56));
        // Onto one dim, and off one dim, of 6 elements, which are padded to 8 and are not cut evenly.
        assert_eq!(
            planned(&[&[X], &[Y], &[]], &[&[], &[], &[X, Y]], &[2, 4, 6]),
            (vec!["all_to_all"], 7)
        );
        assert_eq!(
            planned(&[&[], &[], &[x, y]], &[&[y], &[x], &[]], &[4, 4, 8]),
            (vec!["all_to_all"], 24)
        );
        // A dim that has to be gathered before it is cut takes another step.
        assert_eq!(planned(&[&[x], &[y], &[z]], &[&[y], &[z], &[x]], &[8, 8, 8]).1, 64);
    }

    #[test]
    fn digits_of_two_dims_change_places_in_one_permute() {
        let digit = |stride| Digit { stride, size: 2 };
        let [x, y, z] = [digit(4), digit(2), digit(1)];
        // Gathers and an all-to-all send 30 elements.
        let (steps, sent) = planned(&[&[x], &[y, z]], &[&[y], &[]], &[6, 8]);
        assert_eq!((steps, sent), (vec!["permute", "all_gather"], 6 + 18));
    }

    #[test]
    fn dims_that_nobody_shards_change_no_plan() {
        let few = [8, 8, 3, 3];
        let many = [vec![1; 40], few.to_vec(), vec![3; 30]].concat();
        let cases: [[&[Digit]; 8]; 3] = [
            [&[X], &[], &[], &[], &[], &[X], &[], &[]],
            [&[X, Y], &[], &[], &[], &[Y, X], &[], &[], &[]],
            [&[], &[Y], &[X], &[], &[], &[X, Y], &[], &[]],
        ];
        for case in cases {
            let (from, to) = case.split_at(4);
            let wide = |dims: &[&[Digit]]| place(&[&[&[][..]; 40], dims, &[&[]; 30]].concat());
            let short = planned_between(&place(from), &place(to), &few);
            let long = planned_between(&wide(from), &wide(to), &many);
            assert_eq!(names(&long), names(&short));
            assert_eq!(long.sent(), short.sent() * 3i64.pow(30));
            assert_eq!(long.steps.last().unwrap().placement, wide(to).merged());
        }
    }

    #[test]
    fn sums_are_scattered_where_they_are_wanted() {
        let mut from = place(&[&[], &[]]);
        from.partial = vec![X];
        let plan_to = |to: &[&[Digit]]| names(&planned_between(&from, &place(to), &[8, 8]));
        assert_eq!(plan_to(&[&[X], &[]]), ["reduce_scatter"]);
        assert_eq!(plan_to(&[&[], &[]]), ["all_reduce"]);
        assert_eq!(plan_to(&[&[], &[Y, X]]), ["slice", "reduce_scatter"]);
    }

    #[test]
    fn few_elements_are_added_to_zeros() {
        let (from, to) = (place(&[&[], &[X, Y]]), place(&[&[], &[]]));
        let plan_of = |size| nested(&from, &to, &[5, size], SPREADS).unwrap();
        // 15 elements, of which each device sends 7/8 twice; a gather sends 5 seven times.
        assert_eq!((names(&plan_of(3)), plan_of(3).sent()), (vec!["spread"], 26));
        assert_eq!((names(&plan_of(5)), plan_of(5).sent()), (vec!["all_gather"], 35));
        let slower = nested(&from, &to, &[5, 3], Abilities::default()).unwrap();
        assert!(slower.sent() > 26);
    }

    #[test]
    fn shards_that_do_not_nest_are_made_whole() {
        // 10 over 4 is 3, 3, 3, 1; over 2 it is 5, 5.
        let (y0, y1) = (Digit { stride: 2, size: 2 }, Digit { stride: 1, size: 2 });
        let (steps, _) = planned(&[&[y0, y1]], &[&[y0]], &[10]);
        assert_eq!(steps, ["all_gather", "slice"]);
        let (steps, _) = planned(&[&[y0, y1]], &[&[y0]], &[8]);
        assert_eq!(steps, ["all_gather"]);
        let abilities = Abilities { refines: true, ..Abilities::default() };
        let plan = nested(&place(&[&[y0]]), &place(&[&[y0, y1]]), &[10], abilities).unwrap();
        assert_eq!((names(&plan), plan.sent()), (vec!["refine"], 1));
    }
}
