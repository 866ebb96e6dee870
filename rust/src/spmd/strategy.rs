//! Strategies: how an op is partitioned, as an assignment of digits to the factors of its sharding rule.
//!
//! An op sharding rule maps the dims of the tensors of an op to factors. A *strategy* gives each factor digits, from which the
//! placements of operands and results follow. The [`Ability`] of a factor says how the op can be computed along it: along a
//! pass-through factor shards are computed independently; along a reduction factor devices compute partial results, its *terms*;
//! along a dim on which elements move (a halo, a slice) shards fetch elements from each other; along any other factor tensors have
//! to be replicated.

use super::digits::{merged, total_size, Digit};
use super::placement::{Placement, PlacementId};
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};

/// How an op can be computed along a sharded factor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ability {
    /// On shards.
    Local,
    /// On shards, if these all have the same size, without padding.
    Parts,
    /// On shards; the results are terms, which are reduced over devices.
    Terms,
    /// On shards; the results are gathered, and the op is applied to them again.
    Joined,
    /// On windows of shards: devices fetch the elements of others that their shard needs.
    Moved,
    /// Not on shards: tensors have to be replicated along the factor.
    Whole,
}

/// The most combinations of the digits of tensors that are tried.
const MAX_COMBINATIONS: usize = 96;

/// The digits of each factor.
pub type FactorDigits = Vec<Vec<Digit>>;

/// A strategy to compute an op.
#[derive(Clone, Debug, Default)]
pub struct Strategy {
    /// The digits of each factor.
    pub factors: FactorDigits,
    /// The order of the devices.
    pub order: u32,
    /// The placements of operands.
    pub operands: Vec<PlacementId>,
    /// The placements of results, terms included.
    pub results: Vec<PlacementId>,
    /// The stage at which each operand is resharded; empty if all are at stage 0. Reshards are shared only within a stage.
    pub stages: Vec<u32>,
    /// The intermediate placements of each operand, each with the stage of the reshard to it; empty if all are resharded directly.
    pub through: Vec<Vec<(u32, PlacementId)>>,
    /// The intermediate placements of each result.
    pub behind: Vec<PlacementId>,
    /// The digits of devices that hold copies of the same term of each result; only the first of them contributes it.
    pub copies: Vec<Digit>,
}

impl Strategy {
    /// Whether no factor is sharded.
    pub fn is_whole(&self) -> bool {
        self.factors.iter().all(Vec::is_empty)
    }
}

/// The factors of an op, with their abilities.
pub struct Factors<'a> {
    /// The rule.
    pub rule: &'a OpShardingRule,
    /// By factor.
    pub abilities: &'a [Ability],
}

impl Factors<'_> {
    /// The digits of each factor by the `placement` of a tensor with this mapping, without those that the op cannot use: along
    /// factors that have to be replicated, or if digits do not align with factors.
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
        self.drop_invalid_digits(&mut all);
        all
    }
    /// Alternatives for the digits that `placement` has along factors on which elements move, or that have to be replicated: these
    /// digits on one other factor each, along which shards are computed independently.
    pub fn elsewhere(&self, mapping: &TensorMapping, placement: &Placement) -> Vec<FactorDigits> {
        let only = |dim: &Vec<FactorId>| match dim[..] {
            [factor] => Some(factor),
            _ => None,
        };
        let ability = |factor: FactorId| self.abilities[factor.index()];
        let seed = self.of_tensor(mapping, placement);
        let mut found = Vec::new();
        for (dim, digits) in mapping.dims.iter().zip(&placement.dims) {
            let from = only(dim).filter(|&factor| ability(factor) != Ability::Local);
            let Some(from) = from.filter(|_| !digits.is_empty()) else { continue };
            for to in mapping.dims.iter().filter_map(only) {
                if ability(to) != Ability::Local {
                    continue;
                }
                let own = seed[to.index()].iter().chain(digits).copied();
                let own = merged(own.collect::<Vec<_>>());
                if total_size(&own) <= self.rule.factor_size(to) {
                    let mut all = seed.clone();
                    all[from.index()].clear();
                    all[to.index()] = own;
                    self.drop_invalid_digits(&mut all);
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
    /// Removes digits of factors for which shards of the factor would not be shards of the dims that have it.
    fn drop_invalid_digits(&self, all: &mut FactorDigits) {
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
    /// If a dim has several factors, each sharded factor has to be divided evenly, and the factors major to it have to be sharded
    /// fully.
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
    /// Adds the digits of `more` to `all` for factors without digits, if the digits are unused.
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
        self.drop_invalid_digits(all);
    }
    /// All combinations in which each factor has the digits that one of `tensors` has for it, or none; empty if they
    /// are too many.
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
            for strategy in &all {
                for &digits in &options {
                    if !digits.iter().any(|digit| overlaps(strategy, *digit)) {
                        let mut strategy = strategy.clone();
                        strategy[factor].clone_from(digits);
                        more.push(strategy);
                    }
                }
            }
            all.extend(more);
        }
        for strategy in &mut all {
            self.drop_invalid_digits(strategy);
        }
        all
    }
    /// The placement of a tensor under a strategy.
    pub fn placement(&self, mapping: &TensorMapping, all: &FactorDigits, order: u32) -> Placement {
        let dims = mapping.dims.iter().map(|dim| {
            let digits = dim.iter().flat_map(|factor| all[factor.index()].iter().copied());
            merged(digits)
        });
        Placement { order, dims: dims.collect(), partial: Vec::new() }
    }
    /// The digits of factors along which devices compute terms.
    pub fn terms(&self, all: &FactorDigits) -> Vec<Digit> {
        let factors = (0..all.len()).filter(|&factor| self.abilities[factor] == Ability::Terms);
        let mut digits: Vec<Digit> =
            factors.flat_map(|factor| all[factor].iter().copied()).collect();
        digits.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
        merged(digits)
    }
}

/// Whether some factor has a digit that is not disjoint from `digit`.
fn overlaps(all: &FactorDigits, digit: Digit) -> bool {
    all.iter().flatten().any(|other| !other.is_apart(digit))
}
