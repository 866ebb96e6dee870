//! Steps of a reshard: the placements that one collective, or one slice, leads to.
//!
//! A step is legal if shards nest: splitting a shard of `ceil(n / k)` elements into `a` parts must give the shards of the finer
//! placement, of `ceil(n / (k * a))`. That holds if sizes divide, and always if the dim was not sharded before: it is padded first.
//! For gathers the reverse holds; a dim that is no longer sharded loses its padding. [`super::slice_steps`] lists the steps that
//! split shards.

use super::super::digits::{total_size, Digit};
use super::super::placement::Placement;
use super::digit_orders::orders;
use crate::layout::ceil_div;

/// One step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Each device keeps one slice of its shard along `dim`. Nothing is sent.
    Slice {
        /// The dim that is cut.
        dim: usize,
        /// The digits that number the parts.
        digits: Vec<Digit>,
    },
    /// Each device keeps a part of its shard along `dim`, where parts do not nest in shards: it fetches the elements that it lacks.
    Refine {
        /// The dim that is cut.
        dim: usize,
        /// The digits that number the parts.
        digits: Vec<Digit>,
    },
    /// Devices that differ in `digits` gather their shards of `dim`. If the gathered shards do not nest in those of the remaining
    /// digits, devices fetch the elements that they lack.
    AllGather {
        /// The dim that grows.
        dim: usize,
        /// The minor digits of that dim.
        digits: Vec<Digit>,
    },
    /// Devices that differ in `digits`, all those of `dim`, each write their one element of `dim` into zeros, and
    /// all-reduce. The dim has at most half as many elements as there are devices, so that gathering their shards sends no less.
    Spread {
        /// The dim that grows.
        dim: usize,
        /// Its digits.
        digits: Vec<Digit>,
    },
    /// Devices that differ in the moved digits exchange parts of their shards, in one all-to-all.
    AllToAll {
        /// One move after the other; no dim both grows and is cut.
        moved: Vec<Moved>,
    },
    /// Devices permute whole shards.
    Permute,
    /// Devices that differ in `digits` all-reduce their partial results.
    AllReduce {
        /// The digits of the reduction.
        digits: Vec<Digit>,
    },
    /// Devices that differ in `digits` reduce-scatter their partial results along `dim`.
    ReduceScatter {
        /// The dim that is cut.
        dim: usize,
        /// The digits of the reduction.
        digits: Vec<Digit>,
    },
}

/// The minor digits of one dim that move to another one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Moved {
    /// The dim that grows.
    pub from: usize,
    /// The dim that is cut.
    pub to: usize,
    /// The digits.
    pub digits: Vec<Digit>,
}

/// A step and the placement that it leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The step.
    pub step: Step,
    /// The placement after it.
    pub placement: Placement,
    /// Elements that a device sends.
    pub sent: i64,
}

/// Whether consecutive shards of `fine` parts of a dim of `size` form the shards of `coarse` parts.
pub(super) fn nests(size: i64, coarse: i64, fine: i64) -> bool {
    coarse == 1 || ceil_div(size, coarse) == fine / coarse * ceil_div(size, fine)
}

/// The elements that a device sends in an all-reduce of `elements`, saturating.
pub(super) fn all_reduced(elements: i64, devices: i64) -> i64 {
    // Of many elements the fraction that one device reduces is exact enough.
    match elements.checked_mul(2 * (devices - 1)) {
        Some(sent) => sent / devices,
        None => 2 * (elements / devices).saturating_mul(devices - 1),
    }
}

/// A placement of a tensor of shape `shape`, from which steps lead to others.
#[derive(Clone, Copy)]
pub struct Position<'a> {
    /// The placement.
    pub at: &'a Placement,
    /// The shape of the tensor.
    pub shape: &'a [i64],
    /// The number of elements along dims that no step changes, which the shape does not have.
    pub others: i64,
}

impl<'a> Position<'a> {
    /// A tensor with the placement `at`, none of whose dims are left out.
    pub const fn of(at: &'a Placement, shape: &'a [i64]) -> Self {
        Self { at, shape, others: 1 }
    }
    /// Elements of a shard, saturating.
    pub fn elements(&self) -> i64 {
        self.product(&self.at.local_shape(self.shape))
    }
    /// Elements of a shard with the sizes `local`, saturating.
    pub(super) fn product(&self, local: &[i64]) -> i64 {
        local.iter().fold(self.others, |product, &size| product.saturating_mul(size))
    }
    pub(super) fn can_cut(&self, dim: usize, parts: i64) -> bool {
        let shards = self.at.num_shards(dim);
        nests(self.shape[dim], shards, shards.saturating_mul(parts))
    }
    pub(super) fn can_gather(&self, dim: usize, parts: i64) -> bool {
        let shards = self.at.num_shards(dim);
        nests(self.shape[dim], shards / parts, shards)
    }
    /// Elements of a shard, padded if necessary to split `dim` into `parts`.
    pub(super) fn elements_to_cut(&self, dim: usize, parts: i64) -> i64 {
        let mut local = self.at.local_shape(self.shape);
        local[dim] = ceil_div(local[dim], parts).saturating_mul(parts);
        self.product(&local)
    }
    /// The slice along `dim` by unused `digits`; `None` if shards do not nest.
    pub fn slice(&self, dim: usize, digits: &[Digit]) -> Option<Reached> {
        if !self.can_cut(dim, total_size(digits)) {
            return None;
        }
        let mut placement = self.at.clone();
        placement.dims[dim].extend(digits);
        let step = Step::Slice { dim, digits: digits.to_vec() };
        Some(Reached { step, placement, sent: 0 })
    }
    /// The all-gather of the last `count` digits of `dim`; `None` where shards do not nest.
    pub fn gather(&self, dim: usize, count: usize) -> Option<Reached> {
        let own = &self.at.dims[dim];
        let digits = own[own.len() - count..].to_vec();
        let parts = total_size(&digits);
        if !self.can_gather(dim, parts) {
            return None;
        }
        let mut placement = self.at.clone();
        placement.dims[dim].truncate(own.len() - count);
        let sent = self.elements().saturating_mul(parts - 1);
        Some(Reached { step: Step::AllGather { dim, digits }, placement, sent })
    }
    /// The all-reduce of one-element shards of `dim` among zeros, if more than half of the devices have no element; else `None`.
    pub fn spread(&self, dim: usize) -> Option<Reached> {
        let are_few = self.at.num_shards(dim) > self.shape[dim].saturating_mul(2);
        self.added(dim).filter(|_| are_few)
    }
    /// The all-reduce of all elements of `dim`, of which each device has at most one.
    pub fn added(&self, dim: usize) -> Option<Reached> {
        let devices = self.at.num_shards(dim);
        if !self.at.partial.is_empty() || devices < self.shape[dim] {
            return None;
        }
        let mut placement = self.at.clone();
        let digits = std::mem::take(&mut placement.dims[dim]);
        let elements = self.elements().saturating_mul(self.shape[dim]);
        let sent = all_reduced(elements, devices);
        Some(Reached { step: Step::Spread { dim, digits }, placement, sent })
    }
    /// The all-to-all of the last `count` digits of dim `from` to dim `to`; `None` where shards do not nest.
    pub fn all_to_all(&self, from: usize, to: usize, count: usize) -> Option<Reached> {
        let (moved, placement) = self.moved(from, to, count);
        self.exchange(&[moved], &placement)
    }
    /// The all-to-all of the last `count` digits of dim `from` to dim `to`, even if shards do not nest.
    pub(super) fn all_to_all_across(
        &self,
        from: usize,
        to: usize,
        count: usize,
    ) -> Option<Reached> {
        let (moved, placement) = self.moved(from, to, count);
        let moved = &[moved];
        self.exchange(moved, &placement).or_else(|| self.exchange_across(moved, &placement))
    }
    /// The all-to-all that leads to `placement`; `None` where shards do not nest.
    fn exchange(&self, moved: &[Moved], placement: &Placement) -> Option<Reached> {
        if !self.can_exchange(placement) {
            return None;
        }
        let digits: Vec<Digit> = moved.iter().flat_map(|one| one.digits.clone()).collect();
        let sent = self.exchanged(placement, &digits);
        let step = Step::AllToAll { moved: moved.to_vec() };
        Some(Reached { step, placement: placement.clone(), sent })
    }
    /// The last `count` digits of dim `from` moved to dim `to`, and the placement after that.
    fn moved(&self, from: usize, to: usize, count: usize) -> (Moved, Placement) {
        let mut placement = self.at.clone();
        let kept = placement.dims[from].len() - count;
        let digits = placement.dims[from].split_off(kept);
        placement.dims[to].extend(&digits);
        (Moved { from, to, digits }, placement)
    }
    /// Whether shards nest along each dim that an all-to-all to `after` splits or grows.
    fn can_exchange(&self, after: &Placement) -> bool {
        self.shape.iter().enumerate().all(|(dim, &size)| {
            let (own, wanted) = (self.at.num_shards(dim), after.num_shards(dim));
            own == wanted || nests(size, own.min(wanted), own.max(wanted))
        })
    }
    /// The elements that a device sends in an all-to-all among devices that differ in `digits`, which leads to `after`. Split dims
    /// are padded where necessary.
    pub(super) fn exchanged(&self, after: &Placement, digits: &[Digit]) -> i64 {
        let (own, cut) = (self.at.local_shape(self.shape), after.local_shape(self.shape));
        let parts = |dim: usize| after.num_shards(dim) / self.at.num_shards(dim);
        let padded = |dim: usize| cut[dim].saturating_mul(parts(dim));
        let local: Vec<i64> = own
            .iter()
            .enumerate()
            .map(|(dim, &size)| if parts(dim) > 1 { padded(dim) } else { size })
            .collect();
        let devices = total_size(digits);
        self.product(&local) / devices * (devices - 1)
    }
}

/// The steps from a position that the search for `target` tries; the digits of both are split alike.
pub(super) struct Moves<'a> {
    pub from: Position<'a>,
    pub target: &'a Placement,
    pub abilities: Abilities,
}

/// The kinds of steps that a plan may take besides those of one dim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Abilities {
    /// All-reduces of elements among zeros ([`Step::Spread`]).
    pub spreads: bool,
    /// All-to-alls between several pairs of dims at once.
    pub exchanges: bool,
    /// Fetches of elements where shards do not nest.
    pub refines: bool,
}

/// The most digits of a dim for which all orders are tried.
const MAX_PERMUTED: usize = 4;

impl Moves<'_> {
    /// Lists the steps.
    pub fn list(&self) -> Vec<Reached> {
        let mut reached = Vec::new();
        self.add_reductions(&mut reached);
        self.add_slices(&mut reached);
        for dim in 0..self.from.at.dims.len() {
            for count in 1..=self.from.at.dims[dim].len() {
                reached.extend(self.from.gather(dim, count));
                if self.abilities.refines {
                    reached.extend(self.from.gather_across(dim, count));
                }
                for to in (0..self.from.at.dims.len()).filter(|&to| to != dim) {
                    reached.extend(if self.abilities.refines {
                        self.from.all_to_all_across(dim, to, count)
                    } else {
                        self.from.all_to_all(dim, to, count)
                    });
                }
            }
            if self.abilities.spreads {
                reached.extend(self.from.spread(dim));
            }
            self.add_permutes(dim, &mut reached);
            self.add_swaps(dim, &mut reached);
        }
        if self.abilities.exchanges {
            self.add_exchanges(self.from, &mut Vec::new(), &mut reached);
        }
        self.add_last_permute(&mut reached);
        reached
    }
    /// Adds the all-to-alls that extend `before`, which led to `at`, by digits that move to the dims where the target has them. Two
    /// at once send `1 - 1 / (n * m)` of a shard, one after the other `1 - 1 / n` and `1 - 1 / m`.
    fn add_exchanges(&self, at: Position<'_>, before: &mut Vec<Moved>, reached: &mut Vec<Reached>) {
        let is_wanted = |dim: usize, digit: &Digit| self.target.dims[dim].contains(digit);
        for (from, own) in at.at.dims.iter().enumerate() {
            let to = own.last().and_then(|last| {
                (0..at.at.dims.len()).find(|&to| to != from && is_wanted(to, last))
            });
            let is_free = |to: &usize| before.iter().all(|it| it.from != *to && it.to != from);
            let Some(to) = to.filter(is_free) else { continue };
            let count = own.iter().rev().take_while(|digit| is_wanted(to, digit)).count();
            let (moved, placement) = at.moved(from, to, count);
            before.push(moved);
            if before.len() > 1 {
                let refines = self.abilities.refines;
                let across = || self.from.exchange_across(before, &placement).filter(|_| refines);
                reached.extend(self.from.exchange(before, &placement).or_else(across));
            }
            self.add_exchanges(Position { at: &placement, ..at }, before, reached);
            before.pop();
        }
    }
    pub(super) fn is_used(&self, digit: Digit) -> bool {
        self.from.at.digits().any(|used| used == digit)
    }

    /// Adds permutes to other orders of the digits of `dim`, and to unused digits in place of its own.
    fn add_permutes(&self, dim: usize, reached: &mut Vec<Reached>) {
        let own = &self.from.at.dims[dim];
        let mut push = |digits: Vec<Digit>| {
            let mut placement = self.from.at.clone();
            placement.dims[dim] = digits;
            reached.push(Reached { step: Step::Permute, placement, sent: self.from.elements() });
        };
        if (2..=MAX_PERMUTED).contains(&own.len()) {
            orders(own, &mut push);
        }
        for wanted in self.target.digits().filter(|&digit| !self.is_used(digit)) {
            for (index, digit) in own.iter().enumerate() {
                if digit.size == wanted.size {
                    let mut digits = own.clone();
                    digits[index] = wanted;
                    push(digits);
                }
            }
        }
    }

    /// Adds permutes that swap digits of `dim` with digits of other dims that the target has in `dim`.
    fn add_swaps(&self, dim: usize, reached: &mut Vec<Reached>) {
        let (at, wanted) = (&self.from.at.dims, &self.target.dims[dim]);
        for (index, own) in at[dim].iter().enumerate().filter(|(_, own)| !wanted.contains(own)) {
            for (other, digits) in at.iter().enumerate().filter(|&(other, _)| other != dim) {
                for (place, digit) in digits.iter().enumerate() {
                    if digit.size == own.size && wanted.contains(digit) {
                        let mut placement = self.from.at.clone();
                        placement.dims[dim][index] = *digit;
                        placement.dims[other][place] = *own;
                        let sent = self.from.elements();
                        reached.push(Reached { step: Step::Permute, placement, sent });
                    }
                }
            }
        }
    }

    fn add_last_permute(&self, reached: &mut Vec<Reached>) {
        let dims = 0..self.from.at.dims.len();
        let is_alike = self.from.at.partial == self.target.partial
            && dims
                .into_iter()
                .all(|dim| self.from.at.num_shards(dim) == self.target.num_shards(dim));
        if is_alike {
            let placement = self.target.clone();
            reached.push(Reached { step: Step::Permute, placement, sent: self.from.elements() });
        }
    }
}
