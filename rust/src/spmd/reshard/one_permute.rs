//! Plans of one permute, with slices before it and gathers after it.
//!
//! A permute needs equally many shards in each dim before and after it. The search only moves whole digits that one of the placements
//! has; here digits are also split, so that the numbers of shards match.
//!
//! 1. If all-to-alls are allowed, parts of digits move from dims that have fewer shards in the target to dims that have more: from
//!    `[{"y"}, {"x"}]` to `[{"x"}, {"y"}]` the minor half of `"y"`.
//! 2. Each device keeps a slice along the dims that have more shards in the target.
//! 3. It sends its shard to a device that needs it.
//! 4. Dims that have fewer shards in the target are gathered.

use super::super::digits::{Cuts, Digit};
use super::super::placement::Placement;
use super::search::Plan;
use super::steps::{Abilities, Position, Reached, Step};
use crate::projection::gcd;

/// The plan; `None` if the numbers of shards of a dim do not divide each other, shards do not nest, or values are partial.
pub(super) fn plan(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Option<Plan> {
    if !from.partial.is_empty() || !target.partial.is_empty() {
        return None;
    }
    let cuts = Cuts::of(from.digits().chain(target.digits()))?;
    let (from, target) = (&from.split(&cuts), &target.split(&cuts));
    let direct = without_exchanges(from, target, shape, abilities);
    if !abilities.exchanges {
        return direct;
    }
    let mut steps = exchanges(from, target, shape, abilities);
    let Some(last) = steps.last() else { return direct };
    let Some(rest) = without_exchanges(&last.placement, target, shape, abilities) else {
        return direct;
    };
    steps.extend(rest.steps);
    let mut plan = Plan { steps, rematerializes: false };
    plan.merge();
    Some(direct.filter(|direct| direct.sent() <= plan.sent()).unwrap_or(plan))
}

/// The all-to-alls of parts of digits, from dims that have fewer shards in `target` to dims that have more.
fn exchanges(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Vec<Reached> {
    let mut steps: Vec<Reached> = Vec::new();
    let mut at = from.clone();
    // The factor of the number of shards of `dim` in `more` that `fewer` lacks. Exchanges divide the factors of the dims at
    // hand and enlarge none, so that only dims that have one now are tried.
    let more_in = |more: &Placement, fewer: &Placement, dim: usize| {
        let count = more.num_shards(dim);
        count / gcd(count, fewer.num_shards(dim))
    };
    let dims = 0..shape.len();
    let givers: Vec<usize> = dims.clone().filter(|&dim| more_in(from, target, dim) > 1).collect();
    let takers: Vec<usize> = dims.filter(|&dim| more_in(target, from, dim) > 1).collect();
    for &from in &givers {
        for &to in &takers {
            let parts = gcd(more_in(&at, target, from), more_in(target, &at, to));
            if parts <= 1 {
                continue;
            }
            let mut cut = at.clone();
            let Some(count) = cut_minor(&mut cut.dims[from], parts) else { continue };
            let cut = Position::of(&cut, shape);
            let reached = if abilities.refines {
                cut.all_to_all_across(from, to, count)
            } else {
                cut.all_to_all(from, to, count)
            };
            if let Some(reached) = reached {
                at = reached.placement.clone();
                steps.push(reached);
            }
        }
    }
    steps
}

/// Splits `digits` so that the last ones form a number with `parts` values; returns how many these are.
fn cut_minor(digits: &mut Vec<Digit>, parts: i64) -> Option<usize> {
    let mut left = parts;
    for at in (0..digits.len()).rev() {
        let Digit { stride, size } = digits[at];
        if left % size == 0 {
            left /= size;
        } else if size % left == 0 {
            digits[at] = Digit { stride: stride * left, size: size / left };
            digits.insert(at + 1, Digit { stride, size: left });
            return Some(digits.len() - at - 1);
        } else {
            return None;
        }
        if left == 1 {
            return Some(digits.len() - at);
        }
    }
    None
}

/// The plan of slices, a permute and gathers.
fn without_exchanges(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    abilities: Abilities,
) -> Option<Plan> {
    let mut more = Vec::with_capacity(shape.len());
    let mut fewer = Vec::with_capacity(shape.len());
    for dim in 0..shape.len() {
        let (own, wanted) = (from.num_shards(dim), target.num_shards(dim));
        let most = own.max(wanted);
        if most % own != 0 || most % wanted != 0 {
            return None;
        }
        more.push(most / own);
        fewer.push(most / wanted);
    }
    let (slices, joins) = (digits_of(&more, from, target)?, digits_of(&fewer, target, from)?);
    let mut steps: Vec<Reached> = Vec::new();
    let mut at = from.clone();
    for (dim, digits) in slices.iter().enumerate().filter(|(_, digits)| !digits.is_empty()) {
        let here = Position::of(&at, shape);
        let refined = || here.refine(dim, digits).filter(|_| abilities.refines);
        let reached = here.slice(dim, digits).or_else(refined)?;
        at = reached.placement.clone();
        steps.push(reached);
    }
    let mut wanted = target.clone();
    for (dim, digits) in joins.iter().enumerate().filter(|(_, digits)| !digits.is_empty()) {
        wanted.dims[dim].extend(digits);
    }
    let sent = Position::of(&at, shape).elements();
    steps.push(Reached { step: Step::Permute, placement: wanted.clone(), sent });
    for (dim, digits) in joins.iter().enumerate().filter(|(_, digits)| !digits.is_empty()) {
        let here = Position::of(&wanted, shape);
        let across = || here.gather_across(dim, digits.len()).filter(|_| abilities.refines);
        let reached = here.gather(dim, digits.len()).or_else(across)?;
        wanted = reached.placement.clone();
        steps.push(reached);
    }
    let mut plan = Plan { steps, rematerializes: false };
    plan.merge();
    Some(plan)
}

/// For each dim unused digits that form that number of parts: digits, or parts of digits, that `own` does not have and `other` has.
fn digits_of(parts: &[i64], own: &Placement, other: &Placement) -> Option<Vec<Vec<Digit>>> {
    let is_free = |digit: &Digit| own.digits().all(|used| used.is_apart(*digit));
    let mut free: Vec<Digit> = other.digits().filter(is_free).collect();
    let mut found = Vec::with_capacity(parts.len());
    for &count in parts {
        let (mut left, mut digits) = (count, Vec::new());
        for digit in &mut free {
            let size = gcd(left, digit.size);
            if size > 1 {
                let minor = digit.size / size;
                digits.push(Digit { stride: digit.stride * minor, size });
                *digit = Digit { stride: digit.stride, size: minor };
                left /= size;
            }
        }
        if left > 1 {
            return None;
        }
        found.push(digits);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mesh "x"=2, "y"=4.
    const X: Digit = Digit { stride: 4, size: 2 };
    const Y: Digit = Digit { stride: 1, size: 4 };

    fn planned(from: &[&[Digit]], to: &[&[Digit]], shape: &[i64]) -> Option<(usize, i64)> {
        let place = |dims: &[&[Digit]]| Placement {
            dims: dims.iter().map(|digits| digits.to_vec()).collect(),
            ..Placement::default()
        };
        let abilities = Abilities { exchanges: true, ..Abilities::default() };
        let found = plan(&place(from), &place(to), shape, abilities)?;
        assert_eq!(found.steps.last()?.placement, place(to));
        Some((found.steps.len(), found.sent()))
    }

    #[test]
    fn an_axis_is_cut_for_two_dims() {
        assert_eq!(planned(&[&[X], &[]], &[&[Y], &[X]], &[8, 8]), Some((3, 8)));
        assert_eq!(planned(&[&[Y], &[X]], &[&[X], &[]], &[8, 8]), Some((3, 8 + 8 + 16)));
    }

    #[test]
    fn half_an_axis_moves_before_two_axes_change_places() {
        // Three all-to-alls send 4 + 7 + 4 elements.
        assert_eq!(planned(&[&[Y], &[X]], &[&[X], &[Y]], &[8, 8]), Some((2, 4 + 8)));
        assert_eq!(planned(&[&[X], &[Y]], &[&[Y], &[X]], &[8, 8]), Some((2, 4 + 8)));
    }

    #[test]
    fn shards_have_to_nest() {
        assert_eq!(planned(&[&[X], &[]], &[&[Y], &[X]], &[10, 8]), None);
    }
}
