//! Dots in XLA's partitioner.
//!
//! The partitioner looks for a case that uses all devices ([`Product::base_case`]). If there is none, it takes dims that two of the
//! three tensors shard alike, first batch dims, then free dims of one operand, then contracting dims; it splits the devices into
//! groups along these ([`Shards::group`]), and continues within a group. Each case is first tried with tensors as they are sharded,
//! then with tensors that need a permute.
//!
//! Digits are split so that any two are equal or disjoint.
//!
//! Source: `dot_handler.cc`, `PartitionDot`.

use super::super::digits::total_size;
use super::super::strategy::FactorDigits;
use super::shards::Tensor::{Left, Result, Right};
use super::shards::{Class, Decision, Group, Shards, Tensor, Within};
use super::spatial::{Attempt, Convolution};

/// The inputs of the decision about a dot.
#[derive(Debug)]
pub struct Product {
    /// By factor.
    pub classes: Vec<Class>,
    /// The factors of the dims of the left operand, the right one, and the result, in the order of dims.
    pub factors: [Vec<usize>; 3],
    /// Elements of the left operand, the right one, and the result.
    pub elements: [i64; 3],
    /// The bits of an element of each.
    pub bits: [i64; 3],
    /// The properties of a convolution, if the op is one.
    pub convolution: Option<Convolution>,
}

impl Product {
    /// The decision how the dot is computed.
    pub fn decide(&self, shards: &Shards) -> Decision {
        for as_they_lie in [true, false] {
            match self.convolve(shards, as_they_lie) {
                Attempt::Takes(taken) => return taken,
                Attempt::Fails => continue,
                Attempt::GoesOn => {}
            }
            if let Some(decision) = self.attempt(shards.clone(), as_they_lie) {
                return decision;
            }
        }
        if self.convolution.as_ref().is_some_and(|convolution| !convolution.spatial.is_empty()) {
            return shards.done(shards.strategy.clone());
        }
        // Operands as the result wants them.
        shards.done(self.taken(shards, Result, &[Class::Batch, Class::Left, Class::Right]))
    }
    /// The decision, if a case applies. With `as_they_lie` the tensor that determines the groups may not need a permute.
    fn attempt(&self, mut shards: Shards, as_they_lie: bool) -> Option<Decision> {
        if let Some(strategy) = self.base_case(&shards, false) {
            return Some(shards.done(strategy));
        }
        if let Some((groups, within)) = self.batch_groups(&shards, as_they_lie) {
            shards.group(&groups, within);
            return Some(self.decide(&shards));
        }
        if let Some(groups) = self.free_groups(&shards, as_they_lie) {
            let mut within = self.unmatched(&shards, &groups);
            let operand = match groups.first() {
                Some(&(factor, _)) if self.classes[factor] == Class::Left => Left,
                _ => Right,
            };
            within[operand as usize] = self.aligned(&shards, (Result, &groups), operand);
            shards.group(&groups, within);
            return Some(self.decide(&shards));
        }
        if let Some(groups) = self.contracted_groups(&shards, as_they_lie) {
            let result = shards.of(Result).clone();
            let free = shards.replicated(Result);
            let elsewhere = self.within_copies(&shards, &groups);
            let leader = self.larger(&shards);
            let operand = if leader == Left { Right } else { Left };
            let mut aligned = [None, None];
            aligned[operand as usize] = self.aligned(&shards, (leader, &groups), operand);
            shards.group(&groups, aligned);
            let within = || self.result_within(&shards, &result, &free, &groups);
            if let Some(within) = elsewhere.or_else(within) {
                shards.tensors[Result as usize] = within;
            }
            return Some(self.decide(&shards));
        }
        let are_whole = shards.num_shards(Left) == 1 && shards.num_shards(Right) == 1;
        let of_result = shards.num_shards(Result);
        if are_whole && of_result > 1 && of_result < shards.num_devices() {
            shards.devices = shards.of(Result).iter().flatten().copied().collect();
            return Some(self.decide(&shards));
        }
        let strategy = self.base_case(&shards, true)?;
        Some(shards.done(strategy))
    }

    /// The strategy if dims of one class are sharded over all devices; with `may_reshard` also if only the result is.
    fn base_case(&self, shards: &Shards, may_reshard: bool) -> Option<FactorDigits> {
        let all = shards.num_devices();
        if all == 1 {
            return Some(shards.strategy.clone());
        }
        let of_result = shards.num_shards(Result);
        if of_result > 1 && of_result < all {
            return None;
        }
        let fills = |tensor, class| self.count(shards, tensor, class) == all;
        let alike = |a, b, class| self.are_alike(shards, a, b, class);
        let take = |tensor, class| Some(self.taken(shards, tensor, &[class]));
        let (batch, contracted) = (Class::Batch, Class::Contracted);
        if fills(Left, batch) && fills(Right, batch) && alike(Left, Right, batch) {
            return take(Left, batch);
        }
        for operand in [Left, Right] {
            if fills(operand, batch) && fills(Result, batch) && alike(operand, Result, batch) {
                return take(operand, batch);
            }
        }
        if fills(Left, contracted) && alike(Left, Right, contracted) {
            return take(Left, contracted);
        }
        for (operand, class) in [(Left, Class::Left), (Right, Class::Right)] {
            if fills(operand, class) && fills(Result, class) && alike(operand, Result, class) {
                return take(operand, class);
            }
        }
        if may_reshard {
            for class in [batch, Class::Left, Class::Right] {
                if fills(Result, class) {
                    return take(Result, class);
                }
            }
        }
        if of_result > 1 {
            return None;
        }
        for (whole, operand) in [(Left, Right), (Right, Left)] {
            let elements = |tensor| self.elements_in_group(shards, tensor);
            let is_longer = elements(operand) > elements(Result);
            if fills(operand, contracted) && shards.num_shards(whole) == 1 && is_longer {
                return take(operand, contracted);
            }
        }
        None
    }

    /// Groups along batch dims, and the shardings of operands within them if known.
    pub(super) fn batch_groups(
        &self,
        shards: &Shards,
        as_they_lie: bool,
    ) -> Option<(Vec<Group>, Within)> {
        let count = |tensor| self.count(shards, tensor, Class::Batch);
        let of_result = count(Result);
        if of_result == 1 || (count(Left) != of_result && count(Right) != of_result) {
            return None;
        }
        let dims = self.factors(Class::Batch);
        let same_counts = dims.iter().all(|&factor| {
            total_size(&shards.of(Left)[factor]) == total_size(&shards.of(Right)[factor])
        });
        let is_alike = self.are_alike(shards, Left, Right, Class::Batch);
        if same_counts && (is_alike || !as_they_lie) {
            let leader = self.larger(shards);
            let operand = if leader == Left { Right } else { Left };
            let groups = shards.along(leader, &dims);
            let mut within = [None, None];
            within[operand as usize] = self.aligned(shards, (leader, &groups), operand);
            return Some((groups, within));
        }
        let mut within = [None, None];
        for operand in [Left, Right] {
            if shards.num_shards(operand) > 1 {
                let own = self.within_batch(shards, operand)?;
                let is_there = || self.are_alike(shards, operand, Result, Class::Batch);
                if as_they_lie && !(is_there() && own == self.but_batch(shards.of(operand))) {
                    return None;
                }
                within[operand as usize] = Some(own);
            }
        }
        Some((shards.along(Result, &dims), within))
    }
    /// Groups along free dims of one operand that the result shards equally often.
    fn free_groups(&self, shards: &Shards, as_they_lie: bool) -> Option<Vec<Group>> {
        let count = |tensor, class| self.count(shards, tensor, class);
        let fits = |operand, class| {
            count(operand, class) > 1 && count(operand, class) == count(Result, class)
        };
        let (left, right) = (fits(Left, Class::Left), fits(Right, Class::Right));
        let (operand, class, dims) = if left || right {
            // The other operand is gathered: rather the one that is smaller then.
            let gathered = |operand, by: i64| by.saturating_mul(self.local_bits(shards, operand));
            let is_left = left
                && (!right
                    || gathered(Right, count(Left, Class::Left))
                        < gathered(Left, count(Right, Class::Right)));
            let (operand, class) =
                if is_left { (Left, Class::Left) } else { (Right, Class::Right) };
            (operand, class, self.factors(class))
        } else {
            let sides = [(Left, Class::Left), (Right, Class::Right)];
            let mut sides = sides.into_iter();
            let (operand, class) = sides
                .find(|&(operand, class)| count(operand, class) > 1 && count(Result, class) > 1)?;
            let mut dims = self.factors(class);
            dims.retain(|&factor| {
                let own = total_size(&shards.of(operand)[factor]);
                own > 1 && own == total_size(&shards.of(Result)[factor])
            });
            (operand, class, dims)
        };
        debug_assert!(matches!(class, Class::Left | Class::Right));
        let is_alike = |&factor: &usize| shards.of(operand)[factor] == shards.of(Result)[factor];
        let is_possible = !dims.is_empty() && (!as_they_lie || dims.iter().all(is_alike));
        is_possible.then(|| shards.along(Result, &dims))
    }

    /// Groups along contracting dims that both operands shard equally often.
    fn contracted_groups(&self, shards: &Shards, as_they_lie: bool) -> Option<Vec<Group>> {
        let count = |tensor| self.count(shards, tensor, Class::Contracted);
        if count(Left) == 1 || count(Right) == 1 {
            return None;
        }
        let mut dims = self.factors(Class::Contracted);
        if count(Left) != count(Right) {
            dims.retain(|&factor| {
                let own = total_size(&shards.of(Left)[factor]);
                own > 1 && own == total_size(&shards.of(Right)[factor])
            });
        }
        let is_alike = |&factor: &usize| shards.of(Left)[factor] == shards.of(Right)[factor];
        let is_possible = !dims.is_empty() && (!as_they_lie || dims.iter().all(is_alike));
        is_possible.then(|| shards.along(self.larger(shards), &dims))
    }

    /// The strategy so far, plus the digits of `tensor` for factors of these classes.
    pub(super) fn taken(&self, shards: &Shards, tensor: Tensor, classes: &[Class]) -> FactorDigits {
        let mut strategy = shards.strategy.clone();
        for (factor, digits) in strategy.iter_mut().enumerate() {
            if classes.contains(&self.classes[factor]) {
                digits.extend(&shards.of(tensor)[factor]);
            }
        }
        strategy
    }
    pub(super) fn factors(&self, class: Class) -> Vec<usize> {
        (0..self.classes.len()).filter(|&factor| self.classes[factor] == class).collect()
    }
    /// How many shards `tensor` has along dims of `class`.
    pub(super) fn count(&self, shards: &Shards, tensor: Tensor, class: Class) -> i64 {
        let factors = self.factors(class).into_iter();
        factors.map(|factor| total_size(&shards.of(tensor)[factor])).product()
    }
    pub(super) fn are_alike(&self, shards: &Shards, a: Tensor, b: Tensor, class: Class) -> bool {
        let mut factors = self.factors(class).into_iter();
        factors.all(|factor| shards.of(a)[factor] == shards.of(b)[factor])
    }
    /// The elements of `tensor` in one group of devices.
    fn elements_in_group(&self, shards: &Shards, tensor: Tensor) -> i64 {
        let factors = self.classes.iter().zip(&shards.strategy);
        let own = factors.filter(|(class, _)| class.is_in(tensor));
        let groups: i64 = own.map(|(_, digits)| total_size(digits)).product();
        self.elements[tensor as usize] / groups.max(1)
    }
    /// The bits of `tensor` in one group of devices.
    pub(super) fn bits_in_group(&self, shards: &Shards, tensor: Tensor) -> i64 {
        self.elements_in_group(shards, tensor).saturating_mul(self.bits[tensor as usize])
    }
    /// The bits that a device holds of `tensor`.
    fn local_bits(&self, shards: &Shards, tensor: Tensor) -> i64 {
        self.bits_in_group(shards, tensor) / shards.num_shards(tensor).max(1)
    }
    /// The operand of which a device holds more; if equal, the right one.
    pub(super) fn larger(&self, shards: &Shards) -> Tensor {
        if self.local_bits(shards, Left) > self.local_bits(shards, Right) {
            Left
        } else {
            Right
        }
    }
}
