//! Ways: which factors of an op are sharded over which digits while it is computed, and what that costs.
//!
//! An op sharding rule says which dims of the tensors of an op are one factor. A *way* gives each factor digits;
//! from that follow the placements in which operands are needed and results come about. What a factor allows is
//! its [`Ability`]: along a pass-through factor shards are computed by themselves; along a reduction devices are
//! left with terms; along a dim on which elements move shards fetch what they lack; along any other the tensors have
//! to be whole.

use super::digits::{merged, total_size, Cuts, Digit};
use super::placement::{Placement, PlacementId};
use crate::index::{FactorId, Id};
use crate::rule::{OpShardingRule, TensorMapping};

/// What an op can do along a factor that is sharded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ability {
    /// It is computed on shards.
    Local,
    /// It is computed on shards, all of one size.
    Parts,
    /// Devices are left with terms of a reduction.
    Terms,
    /// Each device gives what it makes of its shard; all of these are gathered, and the op makes of them what it makes of all.
    Joined,
    /// It is computed on windows, for which shards fetch what they lack from others.
    Moved,
    /// Nothing: dims have to be whole.
    Whole,
}

/// The most combinations of what tensors have for factors that are tried.
const MAX_COMBINATIONS: usize = 96;

/// The digits of each factor.
pub type FactorDigits = Vec<Vec<Digit>>;

/// A way to compute an op.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// The digits of each factor.
    pub factors: FactorDigits,
    /// The order of the devices.
    pub order: u32,
    /// How operands have to lie.
    pub operands: Vec<PlacementId>,
    /// How results come about, terms included.
    pub results: Vec<PlacementId>,
}

impl Way {
    /// Whether every device computes everything.
    pub fn is_whole(&self) -> bool {
        self.factors.iter().all(Vec::is_empty)
    }
}

/// The factors of an op, and what it can do along them.
pub struct Factors<'a> {
    /// The rule.
    pub rule: &'a OpShardingRule,
    /// By factor.
    pub abilities: &'a [Ability],
}

impl Factors<'_> {
    /// The digits of each factor as far as `placement` of a tensor with this mapping says, without those that the op cannot
    /// use: along factors that have to be whole, or where digits do not fall on factors.
    pub fn of_tensor(&self, mapping: &TensorMapping, placement: &Placement) -> FactorDigits {
        let mut all = vec![Vec::new(); self.rule.num_factors()];
        for (dim, digits) in mapping.dims.iter().zip(&placement.dims) {
            self.split_dim(dim, digits, &mut all);
        }
        for (digits, ability) in all.iter_mut().zip(self.abilities) {
            if *ability == Ability::Whole {
                digits.clear();
            }
        }
        self.drop_what_does_not_fit(&mut all);
        all
    }
    /// What tensors with this mapping have along factors on which elements move, or that have to be whole, on one other
    /// factor each instead, along which shards are computed by themselves.
    pub fn elsewhere(&self, mapping: &TensorMapping, placement: &Placement) -> Vec<FactorDigits> {
        let only = |dim: &Vec<FactorId>| match dim[..] {
            [factor] => Some(factor),
            _ => None,
        };
        let ability = |factor: FactorId| self.abilities[factor.index()];
        let mut found = Vec::new();
        for (dim, digits) in mapping.dims.iter().zip(&placement.dims) {
            let from = only(dim).filter(|&factor| ability(factor) != Ability::Local);
            let Some(from) = from.filter(|_| !digits.is_empty()) else { continue };
            for to in mapping.dims.iter().filter_map(only) {
                if ability(to) != Ability::Local {
                    continue;
                }
                let mut all = self.of_tensor(mapping, placement);
                all[from.index()].clear();
                let own = all[to.index()].iter().chain(digits).copied();
                let own = merged(own.collect::<Vec<_>>());
                if total_size(&own) <= self.rule.factor_size(to) {
                    all[to.index()] = own;
                    self.drop_what_does_not_fit(&mut all);
                    found.push(all);
                }
            }
        }
        found
    }
    fn split_dim(&self, dim: &[FactorId], digits: &[Digit], all: &mut FactorDigits) {
        let mut rest: Vec<Digit> = digits.to_vec();
        for (at, &factor) in dim.iter().enumerate() {
            if at + 1 == dim.len() {
                all[factor.index()] = rest;
                return;
            }
            let mut left = self.rule.factor_size(factor);
            let mut taken: Vec<Digit> = Vec::new();
            while let Some(&digit) = rest.first() {
                let part = crate::projection::gcd(left, digit.size);
                if part <= 1 {
                    break;
                }
                let minor = digit.size / part;
                taken.push(Digit { stride: digit.stride * minor, size: part });
                left /= part;
                if minor == 1 {
                    rest.remove(0);
                } else {
                    rest[0] = Digit { stride: digit.stride, size: minor };
                    break;
                }
            }
            all[factor.index()] = taken;
            if left > 1 {
                return;
            }
        }
    }
    /// Takes digits from factors where shards of the factor would not be shards of the dims that have it.
    fn drop_what_does_not_fit(&self, all: &mut FactorDigits) {
        for (factor, digits) in all.iter_mut().enumerate() {
            let size = self.rule.factor_sizes[factor];
            while self.abilities[factor] == Ability::Parts && size % total_size(digits) != 0 {
                digits.pop();
            }
        }
        loop {
            let mut changed = false;
            for mapping in self.rule.tensors() {
                for dim in mapping.dims.iter().filter(|dim| dim.len() > 1) {
                    changed |= self.fit_compound_dim(dim, all);
                }
            }
            if !changed {
                break;
            }
        }
    }
    /// In a dim of several factors each is divided evenly, and one that has digits stands behind ones that are
    /// divided down to 1.
    fn fit_compound_dim(&self, dim: &[FactorId], all: &mut FactorDigits) -> bool {
        let mut is_open = true;
        let mut changed = false;
        for &factor in dim {
            let size = self.rule.factor_size(factor);
            let digits = &mut all[factor.index()];
            while !digits.is_empty() && (!is_open || size % total_size(digits) != 0) {
                digits.pop();
                changed = true;
            }
            is_open &= total_size(digits) == size;
        }
        changed
    }
    /// Adds to `all` what `more` has for factors that have nothing yet, as far as digits are free.
    pub fn extend(&self, all: &mut FactorDigits, more: &FactorDigits) {
        for factor in 0..all.len() {
            if all[factor].is_empty() && !more[factor].is_empty() {
                let mut digits = more[factor].clone();
                while !digits.is_empty() && digits.iter().any(|digit| overlaps(all, *digit)) {
                    digits.pop();
                }
                all[factor] = digits;
            }
        }
        self.drop_what_does_not_fit(all);
    }
    /// All ways in which each factor has what one of `tensors` has for it, or nothing; none if they are too many.
    pub fn combinations(&self, tensors: &[&FactorDigits]) -> Vec<FactorDigits> {
        let num_factors = self.rule.num_factors();
        let mut all: Vec<FactorDigits> = vec![vec![Vec::new(); num_factors]];
        for factor in 0..num_factors {
            let mut options: Vec<&Vec<Digit>> = Vec::new();
            for tensor in tensors {
                if !tensor[factor].is_empty() && !options.contains(&&tensor[factor]) {
                    options.push(&tensor[factor]);
                }
            }
            if all.len() * (options.len() + 1) > MAX_COMBINATIONS {
                return Vec::new();
            }
            let mut more = Vec::new();
            for way in &all {
                for &digits in &options {
                    if !digits.iter().any(|digit| overlaps(way, *digit)) {
                        let mut way = way.clone();
                        way[factor].clone_from(digits);
                        more.push(way);
                    }
                }
            }
            all.extend(more);
        }
        for way in &mut all {
            self.drop_what_does_not_fit(way);
        }
        all
    }
    /// The placement of a tensor under a way.
    pub fn placement(&self, mapping: &TensorMapping, all: &FactorDigits, order: u32) -> Placement {
        let dims = mapping.dims.iter().map(|dim| {
            let digits = dim.iter().flat_map(|factor| all[factor.index()].iter().copied());
            merged(digits)
        });
        Placement { order, dims: dims.collect(), partial: Vec::new() }
    }
    /// The digits of factors along which devices are left with terms.
    pub fn terms(&self, all: &FactorDigits) -> Vec<Digit> {
        let factors = (0..all.len()).filter(|&factor| self.abilities[factor] == Ability::Terms);
        let mut digits: Vec<Digit> =
            factors.flat_map(|factor| all[factor].iter().copied()).collect();
        digits.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
        merged(digits)
    }
}

/// Whether some factor has a digit that shares something with `digit`.
fn overlaps(all: &FactorDigits, digit: Digit) -> bool {
    all.iter().flatten().any(|other| {
        let is_apart = other.end() <= digit.stride || digit.end() <= other.stride;
        !is_apart || Cuts::of([*other, digit]).is_none()
    })
}
