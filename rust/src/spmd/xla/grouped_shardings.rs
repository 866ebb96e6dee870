//! The shardings of a dot's tensors within groups of devices (XLA's `GroupedSharding`), if they are not simply the remaining
//! digits.
//!
//! Source: `dot_handler.cc`, `PartitionDotGroupOnBatchImpl`, `GetDotGroupPartitionContractingOutputShardings`.

use super::super::digits::{merged, total_size, Digit};
use super::super::strategy::FactorDigits;
use super::product::Product;
use super::shards::Tensor::{Left, Result, Right};
use super::shards::{Class, Group, Shards, Tensor};
use super::tiles::{deal, Tiles};

impl Product {
    /// The digits of all but batch dims.
    pub(super) fn but_batch(&self, digits: &FactorDigits) -> FactorDigits {
        let own = digits.iter().zip(&self.classes);
        let left = |(own, &class): (&Vec<Digit>, _)| match class {
            Class::Batch => Vec::new(),
            _ => own.clone(),
        };
        own.map(left).collect()
    }
    /// The sharding of `operand` within groups along the batch dims of the result: its tile assignment is reshaped to the result's
    /// tile counts of these dims, which uses up copies, or replicates another class of dims.
    pub(super) fn within_batch(&self, shards: &Shards, operand: Tensor) -> Option<FactorDigits> {
        let other = if operand == Left { Right } else { Left };
        let free = if operand == Left { Class::Left } else { Class::Right };
        let count = |tensor, class| self.count(shards, tensor, class);
        let (own, wanted) = (count(operand, Class::Batch), count(Result, Class::Batch));
        if wanted % own != 0 {
            return None;
        }
        let ratio = wanted / own;
        let at = self.tiles(shards, operand);
        let contracted = count(operand, Class::Contracted);
        let dropped = if at.copies() % ratio == 0 {
            None
        } else if ratio == count(operand, free)
            && (ratio != contracted || contracted == count(other, Class::Contracted))
        {
            Some(free)
        } else if ratio == contracted {
            Some(Class::Contracted)
        } else {
            return None;
        };
        let counts = |is_batch: bool| {
            let factors = self.factors[operand as usize].iter();
            let count = |&factor: &usize| match self.classes[factor] {
                Class::Batch if is_batch => total_size(&shards.of(Result)[factor]),
                Class::Batch => 1,
                class if Some(class) == dropped => 1,
                _ => total_size(&shards.of(operand)[factor]),
            };
            factors.map(count).collect::<Vec<i64>>()
        };
        let reshaped = at.reshaped(&counts(true))?;
        let of_result = self.tiles(shards, Result);
        let batch = |tensor: Tensor, tiles: &Tiles| {
            let factors = self.factors[tensor as usize].iter().zip(&tiles.dims);
            let own = factors.filter(|(&factor, _)| self.classes[factor] == Class::Batch);
            merged(own.flat_map(|(_, digits)| digits).copied())
        };
        let dims = if batch(operand, &reshaped) == batch(Result, &of_result) {
            reshaped.dims
        } else {
            // Devices are those of the result's groups, in its order.
            let factors = self.factors[Result as usize].iter().zip(of_result.dims);
            let rest = factors.filter(|(&factor, _)| self.classes[factor] != Class::Batch);
            let rest = rest.flat_map(|(_, digits)| digits).chain(of_result.replicated);
            deal(&rest.collect::<Vec<_>>(), &counts(false))?.0
        };
        let mut within = vec![Vec::new(); self.classes.len()];
        for (&factor, digits) in self.factors[operand as usize].iter().zip(dims) {
            if self.classes[factor] != Class::Batch {
                within[factor] = shards.cut(&digits)?;
            }
        }
        Some(within)
    }
    /// The tile assignment of `tensor` within a group.
    fn tiles(&self, shards: &Shards, tensor: Tensor) -> Tiles {
        let factors = self.factors[tensor as usize].iter();
        let dims = factors.map(|&factor| shards.of(tensor)[factor].clone()).collect();
        Tiles { dims, replicated: shards.replicated(tensor) }.canonical()
    }

    /// The sharding of the result within groups along contracting dims, which replace its major copies, if these are other devices:
    /// its tiles are assigned to the devices of a group in the order of the operand that determines the groups.
    pub(super) fn within_copies(&self, shards: &Shards, groups: &[Group]) -> Option<FactorDigits> {
        let taken: Vec<Digit> = groups.iter().flat_map(|(_, digits)| digits).copied().collect();
        let of_result = self.tiles(shards, Result);
        let count = total_size(&taken);
        if of_result.is_replicated() || of_result.copies() % count != 0 {
            return None;
        }
        let (major, _) = deal(&of_result.replicated, &[count])?;
        if shards.cut(&major.concat())?.iter().all(|digit| taken.contains(digit)) {
            return None;
        }
        self.dealt(shards, Result, (self.larger(shards), groups))
    }
    /// The sharding of `tensor` within groups of other devices than its own: its tiles are assigned to the devices of a group in
    /// the order of the tensor `leader`, which determines `groups`.
    pub(super) fn dealt(
        &self,
        shards: &Shards,
        tensor: Tensor,
        (leader, groups): (Tensor, &[Group]),
    ) -> Option<FactorDigits> {
        let at = self.tiles(shards, leader);
        let is_group = |factor: &usize| groups.iter().any(|(other, _)| other == factor);
        let dims = self.factors[leader as usize].iter().zip(at.dims);
        let rest = dims.filter(|(factor, _)| !is_group(factor)).flat_map(|(_, digits)| digits);
        let rest: Vec<Digit> = rest.chain(at.replicated).collect();
        let own = self.factors[tensor as usize].iter();
        let count = |&factor: &usize| {
            let digits = &shards.of(tensor)[factor];
            if is_group(&factor) {
                1
            } else {
                total_size(digits)
            }
        };
        let (dealt, _) = deal(&rest, &own.map(count).collect::<Vec<i64>>())?;
        let mut within = vec![Vec::new(); self.classes.len()];
        for (&factor, digits) in self.factors[tensor as usize].iter().zip(dealt) {
            within[factor] = shards.cut(&digits)?;
        }
        Some(within)
    }
    /// The sharding of `aligned` within `groups`, which `leader` determines, unless it is already along the same devices.
    pub(super) fn aligned(
        &self,
        shards: &Shards,
        (leader, groups): (Tensor, &[Group]),
        aligned: Tensor,
    ) -> Option<FactorDigits> {
        let is_alike = |(factor, digits): &Group| shards.of(aligned)[*factor] == *digits;
        if groups.iter().all(is_alike) {
            return None;
        }
        self.dealt(shards, aligned, (leader, groups))
    }

    /// The sharding of the result within groups along contracting dims, if it is not simply what remains of `result`, its digits
    /// before; `free` are the digits of its copies at that time.
    ///
    /// The group digits have to be copies, or all shards of some dims; otherwise the result is replicated within a group.
    pub(super) fn result_within(
        &self,
        shards: &Shards,
        result: &FactorDigits,
        free: &[Digit],
        groups: &[Group],
    ) -> Option<FactorDigits> {
        let taken: Vec<Digit> = groups.iter().flat_map(|(_, digits)| digits).copied().collect();
        let count = total_size(&taken);
        let has_copies = !free.is_empty() && total_size(free) % count == 0;
        if has_copies || result.iter().all(Vec::is_empty) {
            return None;
        }
        // The result is cut finer than the only operand that is sharded: as that one.
        let is_whole = |operand| shards.num_shards(operand) == 1;
        if is_whole(Left) != is_whole(Right) {
            let operand = shards.of(if is_whole(Left) { Right } else { Left });
            let of_result = |factor: usize| self.classes[factor].is_in(Result);
            let mut own: FactorDigits = (0..operand.len())
                .map(|factor| if of_result(factor) { operand[factor].clone() } else { Vec::new() })
                .collect();
            for spatial in self.convolution.iter().flat_map(|convolution| &convolution.spatial) {
                let factor = if is_whole(Left) { spatial.kernel } else { spatial.input };
                own[spatial.output].clone_from(&operand[factor]);
            }
            if result.iter().zip(&own).all(|(digits, own)| digits.starts_with(own)) {
                return Some(own);
            }
        }
        let is_taken = |digits: &[Digit]| digits.iter().all(|digit| taken.contains(digit));
        let whole = result.iter().map(Vec::as_slice).chain([free]);
        let found: usize = whole.filter(|digits| is_taken(digits)).map(<[Digit]>::len).sum();
        if found == taken.len() {
            return None;
        }
        let along = |class| {
            let dims = self.factors(class);
            (dims.iter().map(|&factor| total_size(&result[factor])).product::<i64>() == count)
                .then_some(dims)
        };
        let dims =
            along(Class::Left).or_else(|| along(Class::Right)).or_else(|| along(Class::Batch));
        let Some(dims) = dims else {
            return Some(vec![Vec::new(); result.len()]);
        };
        // Groups are made along these dims; what other dims had of the digits moves to theirs.
        let along: Vec<Digit> = dims.iter().flat_map(|&factor| &result[factor]).copied().collect();
        let without = |all: &[Digit], others: &[Digit]| {
            all.iter().filter(|digit| !others.contains(digit)).copied().collect::<Vec<Digit>>()
        };
        let (lost, instead) = (without(&taken, &along), without(&along, &taken));
        let moved = |digit: &Digit| match lost.iter().position(|other| other == digit) {
            Some(place) => instead.get(place).filter(|other| other.size == digit.size).copied(),
            None => Some(*digit),
        };
        let within = |factor: usize| {
            let is_left = !dims.contains(&factor);
            result[factor].iter().filter(|_| is_left).filter_map(moved).collect()
        };
        Some((0..result.len()).map(within).collect())
    }
}
