//! Convolutions in XLA's partitioner: the cases that it tries before those of a dot.
//!
//! Unless a batch dim is sharded, or both operands along a contracting one, the output leads: the input gets its sharding, the
//! kernel is replicated, and halos are exchanged. If both operands are sharded along spatial dims, as in the gradient with respect
//! to the kernel, the input gets halos for the device's part of the kernel, and partial results are all-reduced. In convolutions
//! with groups of one feature each, the groups are a batch dim.
//!
//! Deviation: XLA all-reduces over all devices of a group, even those with copies of a partial result; the sum is then a multiple
//! of the right one. Here devices send as much, but copies add zeros.
//!
//! Source: `convolution_handler.cc`; `PartitionConv` in `dot_handler.cc`.

use super::super::digits::{total_size, Digit};
use super::halos::Halos;
use super::product::Product;
use super::shards::Tensor::{Left, Result as Output, Right};
use super::shards::{Class, Decision, Group, Shards, Tensor, Within};
use super::spatial::{Attempt, Convolution, Groups};

impl Product {
    /// The cases that the partitioner tries before those of a dot.
    pub(super) fn convolve(&self, shards: &Shards, as_they_lie: bool) -> Attempt {
        let Some(convolution) = &self.convolution else { return Attempt::GoesOn };
        if convolution.is_dense {
            return Attempt::Fails;
        }
        let count = |tensor, class| self.count(shards, tensor, class);
        let is_cut = convolution.spatial.iter().any(|spatial| {
            !shards.of(Left)[spatial.input].is_empty()
                || !shards.of(Right)[spatial.kernel].is_empty()
                || !shards.of(Output)[spatial.output].is_empty()
        });
        let is_contracted =
            count(Left, Class::Contracted) > 1 && count(Right, Class::Contracted) > 1;
        let is_batch = [Left, Right, Output].iter().any(|&of| count(of, Class::Batch) > 1);
        if convolution.groups.is_none() && (!is_cut || is_contracted || is_batch) {
            return Attempt::GoesOn;
        }
        if let Some(groups) = &convolution.groups {
            if let Some(decision) = groups.of_all(shards) {
                return Attempt::Takes(decision);
            }
        }
        if shards.num_shards(Left) > 1 && shards.num_shards(Right) > 1 {
            if let Some(taken) = self.with_terms(shards, convolution) {
                return Attempt::Takes(taken);
            }
        }
        if let Some(decision) = self.by_output(shards, convolution) {
            return Attempt::Takes(decision);
        }
        match &convolution.groups {
            Some(groups) => self.by_some_groups(shards, groups, as_they_lie),
            None => Attempt::GoesOn,
        }
    }
    /// The strategy along groups that are sharded over some devices.
    fn by_some_groups(&self, shards: &Shards, groups: &Groups, as_they_lie: bool) -> Attempt {
        if let Some((along, within)) = self.batch_groups(shards, as_they_lie) {
            let mut shards = shards.clone();
            shards.group(&along, within);
            return Attempt::Takes(self.decide(&shards));
        }
        let count = |of: Tensor| total_size(&shards.of(of)[groups.factor]);
        let most = count(Left).max(count(Right)).max(count(Output));
        if as_they_lie || most == 1 || groups.count % most != 0 {
            return Attempt::Fails;
        }
        let leader = [Left, Right].into_iter().find(|&of| count(of) == most).unwrap_or(Output);
        Attempt::Takes(groups.alone(shards, leader))
    }
    /// The strategy with partial results, if both operands are sharded: along spatial dims and contracting dims.
    fn with_terms(&self, shards: &Shards, convolution: &Convolution) -> Option<Decision> {
        let bits = |of: Tensor| self.bits_in_group(shards, of);
        let (leader, free) =
            if bits(Left) < bits(Right) { (Right, Class::Right) } else { (Left, Class::Left) };
        let is_grouped = |groups: &Groups| !shards.of(leader)[groups.factor].is_empty();
        if self.count(shards, leader, free) > 1
            || convolution.groups.as_ref().is_some_and(is_grouped)
        {
            return None;
        }
        let mut strategy = shards.strategy.clone();
        let mut exchanged = Vec::new();
        for spatial in &convolution.spatial {
            let own = if leader == Left { spatial.input } else { spatial.kernel };
            let digits = &shards.of(leader)[own];
            let halos = Halos::of_kernel(&spatial.window, spatial.sizes, total_size(digits));
            if spatial.window.base_dilation != 1 || (!digits.is_empty() && !halos.reach()) {
                return None;
            }
            if spatial.input != spatial.kernel && !digits.is_empty() {
                exchanged.push((spatial.input, spatial.kernel));
            }
            strategy[spatial.input].extend(digits);
        }
        for factor in self.factors(Class::Contracted) {
            strategy[factor].extend(&shards.of(leader)[factor]);
        }
        let reduced_to = Some(shards.strategy.clone());
        let copies = shards.replicated(leader);
        Some(Decision { reduced_to, exchanged, copies, ..shards.done(strategy) })
    }
    /// The strategy by the sharding of the output; the kernel is replicated within the group.
    fn by_output(&self, shards: &Shards, convolution: &Convolution) -> Option<Decision> {
        let is_grouped = |groups: &Groups| {
            [Left, Right, Output].iter().any(|&of| !shards.of(of)[groups.factor].is_empty())
        };
        if shards.num_shards(Output) == 1
            || self.count(shards, Output, Class::Right) > 1
            || convolution.groups.as_ref().is_some_and(is_grouped)
        {
            return None;
        }
        let whole = self.taken(shards, Output, &[Class::Left]);
        let mut strategy = whole.clone();
        let mut exchanged = Vec::new();
        let mut reach = true;
        for spatial in &convolution.spatial {
            let digits = &shards.of(Output)[spatial.output];
            if !digits.is_empty() {
                let count = total_size(digits);
                reach &= Halos::of_windows(&spatial.window, spatial.sizes, count)?.reach();
                strategy[spatial.input].extend(digits);
                if spatial.input != spatial.output {
                    exchanged.push((spatial.input, spatial.output));
                }
            }
        }
        if reach {
            return Some(Decision { exchanged, ..shards.done(strategy) });
        }
        let mut decision = shards.done(whole);
        let groups = decision.stages[0].clone().unwrap_or_default();
        decision.through[0].push((groups, strategy));
        Some(decision)
    }
    /// How operands are sharded within `groups` along free dims of one: the other one of a convolution is whole if no digits
    /// of its own and none of its copies stand for the groups.
    pub(super) fn unmatched(&self, shards: &Shards, groups: &[Group]) -> Within {
        let mut within = [None, None];
        let has_spatial = |convolution: &Convolution| !convolution.spatial.is_empty();
        let Some(&(factor, _)) =
            groups.first().filter(|_| self.convolution.as_ref().is_some_and(has_spatial))
        else {
            return within;
        };
        let (one, other, free) = match self.classes[factor] {
            Class::Left => (Left, Right, Class::Right),
            _ => (Right, Left, Class::Left),
        };
        let taken: Vec<Digit> = groups.iter().flat_map(|(_, digits)| digits).copied().collect();
        let count = total_size(&taken);
        let copies = total_size(&shards.replicated(other));
        let has_copies = copies > 1 && copies % count == 0;
        let own = || shards.of(other).iter().filter(|digits| !digits.is_empty());
        let found: usize = own()
            .filter(|digits| digits.iter().all(|digit| taken.contains(digit)))
            .map(Vec::len)
            .sum();
        let contracted = self.count(shards, other, Class::Contracted);
        let of_other = self.count(shards, other, free);
        let may_gather_contracted =
            contracted == count && of_other == self.count(shards, Output, free);
        let may_gather_free =
            of_other == count && contracted == self.count(shards, one, Class::Contracted);
        let is_matched =
            has_copies || found == taken.len() || may_gather_contracted || may_gather_free;
        if !is_matched && shards.num_shards(other) > 1 {
            within[other as usize] = Some(vec![Vec::new(); self.classes.len()]);
        }
        within
    }
}
