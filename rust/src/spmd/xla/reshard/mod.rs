//! Reshards in XLA's partitioner: not the steps that send the fewest bytes, but the first of its cases that applies.
//!
//! In order: a permute if only devices differ, all-to-alls between dims that exchange tile counts, slices if copies become tiles,
//! all-gathers if tiles become copies, splits of a dim into two, and the same within groups of devices that hold equal tiles on
//! both sides. If none applies, every device gathers the whole tensor and slices it; the partitioner warns of an *involuntary full
//! rematerialization*.
//!
//! Source: `spmd_partitioner.cc`, `PartitionedHlo::ReshardNoCache`.

mod cases;

use super::super::digits::{total_size, Cuts, Digit};
use super::super::placement::Placement;
use super::super::reshard::{Plan, Position, Reached, Step};
use super::tiles::{split_minor, Tiles};
use crate::layout::ceil_div;

/// The plan of the partitioner from `from` to `target`, on devices with the digits `devices`. `None` if its cases do not cover
/// that: partial values that are reduce-scattered, devices in two orders, or shards that do not nest. `adds`: whether all-reduces
/// of elements among zeros are supported.
pub fn plan(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    devices: &[Digit],
    adds: bool,
) -> Option<Plan> {
    if !from.partial.is_empty() && target.partial.is_empty() {
        return plan_of_sum(from, target, shape, devices, adds);
    }
    let is_plain = from.partial.is_empty() && target.partial.is_empty();
    if !is_plain || (from.order != target.order && !from.is_replicated() && !target.is_replicated())
    {
        return None;
    }
    let mut walk = Walk {
        at: Tiles::of(from, devices)?,
        dims: (0..shape.len())
            .map(|real| Dim { real, size: shape[real], fixed: Vec::new() })
            .collect(),
        order: from.order.max(target.order),
        shape,
        adds,
        steps: Vec::new(),
        rematerializes: false,
        visits: 0,
    };
    let has_arrived = walk.go(&Tiles::of(target, devices)?, true)?;
    let end = walk.steps.last().map_or(from, |reached| &reached.placement).merged();
    if !has_arrived || end.dims != target.dims {
        return None;
    }
    let mut plan = Plan { steps: walk.steps, rematerializes: walk.rematerializes };
    plan.merge();
    Some(plan)
}

/// The plan for a partial value, if `target` is not just `from` split along partial digits (a reduce-scatter): the partitioner
/// all-reduces, then reshards the sum. `None` otherwise.
fn plan_of_sum(
    from: &Placement,
    target: &Placement,
    shape: &[i64],
    devices: &[Digit],
    adds: bool,
) -> Option<Plan> {
    let digits: Vec<Digit> = from.digits().chain(target.digits()).collect();
    let cuts = Cuts::of(digits)?;
    let terms = cuts.split(&from.partial);
    let mut dims = from.dims.iter().zip(&target.dims);
    if dims.all(|(own, wanted)| {
        let wanted = cuts.split(wanted);
        let more = wanted.strip_prefix(&cuts.split(own)[..]);
        more.is_some_and(|more| more.iter().all(|digit| terms.contains(digit)))
    }) {
        return None;
    }
    let sum = Placement { partial: Vec::new(), ..from.clone() };
    let count = total_size(&from.partial);
    let elements = Position::of(&sum, shape).elements();
    let first = Reached {
        step: Step::AllReduce { digits: from.partial.clone() },
        placement: sum.clone(),
        sent: 2 * (elements / count).saturating_mul(count - 1),
    };
    let rest = plan(&sum, target, shape, devices, adds)?;
    let steps = [first].into_iter().chain(rest.steps).collect();
    Some(Plan { steps, rematerializes: rest.rematerializes })
}

/// The most reshards that the cases of one reshard lead to. In XLA's partitioner they are few; each case may be tried at each of
/// them.
const MAX_VISITS: usize = 128;

/// A dim of the tensor during the search: the partitioner splits dims, and leaves out digits that form groups.
#[derive(Clone)]
struct Dim {
    /// The dim of the tensor that it is, or is a part of.
    real: usize,
    /// Its size.
    size: i64,
    /// The digits that form groups of devices; they stay where they are.
    fixed: Vec<Digit>,
}

/// A reshard that is being planned.
struct Walk<'a> {
    at: Tiles,
    dims: Vec<Dim>,
    order: u32,
    shape: &'a [i64],
    /// Whether all-reduces of elements among zeros are supported.
    adds: bool,
    steps: Vec<Reached>,
    rematerializes: bool,
    visits: usize,
}

/// A state to which a walk returns.
struct Mark {
    at: Tiles,
    dims: Vec<Dim>,
    steps: usize,
    rematerializes: bool,
}

/// Whether a case reached its target; `None` if its steps cannot be expressed.
type Arrived = Option<bool>;

impl Walk<'_> {
    /// Reshards to `target`. Unless it `may_replicate`, it may stop if no case applies.
    fn go(&mut self, target: &Tiles, may_replicate: bool) -> Arrived {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return None;
        }
        if self.is_at(target) {
            return Some(true);
        }
        if self.at.can_permute_to(target) {
            self.permute(target);
            return Some(true);
        }
        if let Some(pairs) = self.at.all_to_all_pairs(target) {
            return self.all_to_alls(target, &pairs);
        }
        if !target.is_replicated() && self.at.is_partial() {
            let cases = [Self::slice_copies, Self::all_to_all_of_copies];
            if self.one_of(&cases, target)? {
                return Some(true);
            }
        }
        if !self.at.is_replicated() && target.is_partial() {
            let cases = [Self::gather_to_copies, Self::all_to_all_of_copies];
            if self.one_of(&cases, target)? {
                return Some(true);
            }
        }
        if self.at.is_replicated() {
            return self.slice(target);
        }
        if !target.is_replicated() {
            if self.one_of(&[Self::split_or_step], target)? {
                return Some(true);
            }
            if self.agreed(target).next().is_some() {
                return self.in_groups(target);
            }
            if !may_replicate {
                return Some(false);
            }
            self.rematerializes = true;
        }
        self.replicate()?;
        self.go(target, true)
    }
    fn is_at(&self, target: &Tiles) -> bool {
        self.at == *target || (self.at.is_replicated() && target.is_replicated())
    }
    /// Tries cases in order, each from the current state.
    fn one_of(&mut self, cases: &[fn(&mut Self, &Tiles) -> Arrived], target: &Tiles) -> Arrived {
        for case in cases {
            let mark = self.mark();
            if case(self, target)? {
                return Some(true);
            }
            self.back_to(mark);
        }
        Some(false)
    }
    fn mark(&self) -> Mark {
        let (at, dims) = (self.at.clone(), self.dims.clone());
        Mark { at, dims, steps: self.steps.len(), rematerializes: self.rematerializes }
    }
    fn back_to(&mut self, mark: Mark) {
        self.steps.truncate(mark.steps);
        (self.at, self.dims, self.rematerializes) = (mark.at, mark.dims, mark.rematerializes);
    }

    /// The placement with `tiles` of the tensor.
    fn placement(&self, tiles: &Tiles) -> Placement {
        let mut dims = vec![Vec::new(); self.shape.len()];
        for (dim, own) in self.dims.iter().zip(&tiles.dims) {
            dims[dim.real].extend(dim.fixed.iter().chain(own).copied());
        }
        Placement { order: self.order, dims, partial: Vec::new() }
    }
    /// The current tiles and placement, with minor digits of `dim` that have `count` values split off, and the number of these
    /// digits.
    fn placement_split(&self, dim: usize, count: i64) -> Option<(Tiles, Placement, usize)> {
        let (rest, minor) = split_minor(&self.at.dims[dim], count)?;
        let mut tiles = self.at.clone();
        tiles.dims[dim] = [rest, minor.clone()].concat();
        let placement = self.placement(&tiles);
        Some((tiles, placement, minor.len()))
    }
    /// The dim of the tensor whose minor digits are those of `dim`.
    fn minor_of(&self, dim: usize) -> Option<usize> {
        let real = self.dims[dim].real;
        let is_minor = (dim + 1..self.dims.len())
            .filter(|&other| self.dims[other].real == real)
            .all(|other| self.at.dims[other].is_empty() && self.dims[other].fixed.is_empty());
        is_minor.then_some(real)
    }

    fn permute(&mut self, target: &Tiles) {
        let (before, placement) = (self.placement(&self.at), self.placement(target));
        if before.merged() != placement.merged() {
            let sent = Position::of(&before, self.shape).elements();
            self.steps.push(Reached { step: Step::Permute, placement, sent });
        }
        self.at = target.clone();
    }
    fn gather(&mut self, dim: usize, count: i64) -> Option<()> {
        let (mut tiles, placement, digits) = self.placement_split(dim, count)?;
        let real = self.minor_of(dim)?;
        let whole = ceil_div(self.dims[dim].size, self.at.count(dim) / count);
        let position = Position::of(&placement, self.shape);
        let reached = if whole > count / 2 {
            position.gather(real, digits)?
        } else if self.adds && placement.num_shards(real) == count {
            // Where most parts are padding, the partitioner adds parts of zeros instead.
            position.added(real)?
        } else {
            return None;
        };
        self.steps.push(reached);
        let kept = tiles.dims[dim].len() - digits;
        let gathered = tiles.dims[dim].split_off(kept);
        tiles.replicated = [gathered, tiles.replicated].concat();
        self.at = tiles.canonical();
        Some(())
    }
    /// Gathers all dims, the last first.
    fn replicate(&mut self) -> Option<()> {
        for dim in (0..self.dims.len()).rev() {
            if !self.at.dims[dim].is_empty() {
                self.gather(dim, self.at.count(dim))?;
            }
        }
        Some(())
    }
    /// Slices tiles that several devices hold: `target` has the current digits, and more.
    fn slice(&mut self, target: &Tiles) -> Arrived {
        for dim in 0..self.dims.len() {
            let parts = target.count(dim) / self.at.count(dim);
            if parts == 1 {
                continue;
            }
            let (_, digits) = split_minor(&target.dims[dim], parts)?;
            let real = self.minor_of(dim)?;
            let placement = self.placement(&self.at);
            let reached = Position::of(&placement, self.shape).slice(real, &digits)?;
            self.steps.push(reached);
            self.at.dims[dim].extend(digits);
        }
        self.at = target.clone();
        Some(true)
    }
    /// Moves tiles by all-to-alls between `pairs` of dims, then permutes.
    fn all_to_alls(&mut self, target: &Tiles, pairs: &[(usize, usize)]) -> Arrived {
        for &(from, to) in pairs {
            let count = self.at.count(from) / self.at.count(to);
            let (mut tiles, placement, digits) = self.placement_split(from, count)?;
            let reals = (self.minor_of(from)?, self.minor_of(to)?);
            if reals.0 == reals.1 {
                return None;
            }
            let position = Position::of(&placement, self.shape);
            let reached = position.all_to_all(reals.0, reals.1, digits)?;
            self.steps.push(reached);
            let kept = tiles.dims[from].len() - digits;
            let moved = tiles.dims[from].split_off(kept);
            tiles.dims[to].extend(moved);
            self.at = tiles.canonical();
        }
        if !self.is_at(target) {
            self.permute(target);
        }
        Some(true)
    }
}
