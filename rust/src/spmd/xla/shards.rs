//! The shards of `lhs`, `rhs` and output of a product within groups of devices, by class of dims: batch, free, contracted.

use super::super::digits::{total_size, Digit};
use super::super::strategy::FactorDigits;

/// The role of a factor in a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A dim of all three tensors.
    Batch,
    /// A dim of the left operand and the result.
    Left,
    /// A dim of the right operand and the result.
    Right,
    /// A dim of both operands.
    Contracted,
    /// A dim of one tensor alone.
    Other,
}

impl Class {
    pub(super) fn is_in(self, tensor: Tensor) -> bool {
        match self {
            Self::Batch => true,
            Self::Left => tensor != Tensor::Right,
            Self::Right => tensor != Tensor::Left,
            Self::Contracted => tensor != Tensor::Result,
            Self::Other => false,
        }
    }
}

/// The tensors of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tensor {
    Left,
    Right,
    Result,
}

use Tensor::{Left, Result, Right};

/// A factor and the digits along which groups are made of it.
pub(super) type Group = (usize, Vec<Digit>);
/// For each operand its digits by factor within groups, where these are known.
pub(super) type Within = [Option<FactorDigits>; 2];

/// How tensors are sharded within a group of devices, and what groups are along.
#[derive(Clone, Debug)]
pub struct Shards {
    /// The digits of each factor, of the left operand, the right one, and the result.
    pub tensors: [FactorDigits; 3],
    /// The digits that devices of a group differ in.
    pub devices: Vec<Digit>,
    /// The digits along which groups are, by factor: the strategy so far.
    pub strategy: FactorDigits,
    /// For each operand the groups within which it was resharded last, if it was.
    pub stages: [Option<Vec<Digit>>; 2],
    /// For each operand the digits by factor to which it was resharded so that groups could be made, each behind the digits
    /// that groups were along then.
    pub through: [Vec<(Vec<Digit>, FactorDigits)>; 2],
}

/// How a product is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The digits of each factor.
    pub strategy: FactorDigits,
    /// For each operand the digits that groups are along within which it is resharded; none if it stays as it lies. The
    /// partitioner shares what is resharded alike within groups of one kind only.
    pub stages: [Option<Vec<Digit>>; 2],
    /// For each operand the digits by factor that it has in between, each behind those that groups are along within which it
    /// is resharded to these.
    pub through: [Vec<(Vec<Digit>, FactorDigits)>; 2],
    /// The digits that the result has once terms of a group are added up at once, where they are.
    pub reduced_to: Option<FactorDigits>,
    /// The factors of the input along spatial dims of a convolution that are those of the result, or of the kernel, where the
    /// rule says otherwise; each with the other one, which changes places with it.
    pub exchanged: Vec<(usize, usize)>,
    /// The digits of devices that hold the same shards of a convolution with terms, but that are added up with the others.
    pub copies: Vec<Digit>,
}

impl Shards {
    pub(super) fn of(&self, tensor: Tensor) -> &FactorDigits {
        &self.tensors[tensor as usize]
    }
    /// How many shards `tensor` has in all.
    pub(super) fn num_shards(&self, tensor: Tensor) -> i64 {
        self.of(tensor).iter().map(|digits| total_size(digits)).product()
    }
    /// The digits of `tensor` for the factors `dims`.
    pub(super) fn along(&self, tensor: Tensor, dims: &[usize]) -> Vec<Group> {
        dims.iter().map(|&factor| (factor, self.of(tensor)[factor].clone())).collect()
    }
    /// The decision for `strategy` within these groups.
    pub(super) fn done(&self, strategy: FactorDigits) -> Decision {
        let mut stages = self.stages.clone();
        for operand in [Left, Right] {
            let mut factors = self.of(operand).iter().zip(&strategy);
            if factors.any(|(own, used)| own.iter().any(|digit| !used.contains(digit))) {
                stages[operand as usize] = Some(self.strategy.iter().flatten().copied().collect());
            }
        }
        Decision {
            strategy,
            stages,
            through: self.through.clone(),
            reduced_to: None,
            exchanged: Vec::new(),
            copies: Vec::new(),
        }
    }
    /// How many devices a group has.
    pub(super) fn num_devices(&self) -> i64 {
        total_size(&self.devices)
    }
    /// The digits in which devices differ that hold the same shard of `tensor`.
    pub(super) fn replicated(&self, tensor: Tensor) -> Vec<Digit> {
        let used = |digit: &Digit| self.of(tensor).iter().flatten().any(|other| other == digit);
        self.devices.iter().copied().filter(|digit| !used(digit)).collect()
    }
    /// `digits` in those of devices; `None` where they are not whole ones.
    pub(super) fn cut(&self, digits: &[Digit]) -> Option<Vec<Digit>> {
        let mut found = Vec::new();
        for all in digits {
            let is_part = |digit: &&Digit| {
                digit.stride >= all.stride && digit.stride * digit.size <= all.stride * all.size
            };
            let mut parts: Vec<Digit> = self.devices.iter().filter(is_part).copied().collect();
            parts.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
            if total_size(&parts) != all.size {
                return None;
            }
            found.extend(parts);
        }
        Some(found)
    }
    /// Splits the devices of a group along `digits` of each factor. Factors that have some are done with; what tensors
    /// have of these digits on other dims is gathered, or moved to devices that held copies. Operands that have digits in
    /// `within` are resharded to these at once.
    pub(super) fn group(&mut self, digits: &[Group], mut within: Within) {
        let taken: Vec<Digit> = digits.iter().flat_map(|(_, digits)| digits).copied().collect();
        for tensor in [Left, Right, Result] {
            if let Some(own) = within.get_mut(tensor as usize).and_then(Option::take) {
                self.reshard_within(tensor, digits, own);
                continue;
            }
            let free = self.replicated(tensor);
            let free: Vec<Digit> =
                free.into_iter().filter(|digit| !taken.contains(digit)).collect();
            let before = self.strategy.iter().flatten().copied().collect::<Vec<_>>();
            let of_tensor = &mut self.tensors[tensor as usize];
            for (factor, _) in digits {
                of_tensor[*factor].clear();
            }
            let in_use: Vec<usize> = (0..of_tensor.len())
                .filter(|&factor| of_tensor[factor].iter().any(|digit| taken.contains(digit)))
                .collect();
            let is_moved = !in_use.is_empty();
            if let (Some(stage), true) = (self.stages.get_mut(tensor as usize), is_moved) {
                *stage = Some(before.clone());
            }
            let is_free = total_size(&free) % total_size(&taken) == 0 && !free.is_empty();
            match in_use[..] {
                // The dim takes the place of the copies.
                [factor] if is_free && of_tensor[factor].len() == taken.len() => {
                    of_tensor[factor] = free;
                }
                _ => {
                    for digits in of_tensor.iter_mut() {
                        digits.retain(|digit| !taken.contains(digit));
                    }
                }
            }
            let in_between = self
                .strategy
                .iter()
                .zip(self.of(tensor))
                .map(|(groups, own)| groups.iter().chain(own).copied().collect());
            let in_between = in_between.collect();
            if let (Some(through), true) = (self.through.get_mut(tensor as usize), is_moved) {
                through.push((before, in_between));
            }
        }
        self.devices.retain(|digit| !taken.contains(digit));
        for (factor, digits) in digits {
            self.strategy[*factor].extend(digits);
        }
    }
    /// Reshards `operand` to groups along `digits` and its own digits within them.
    fn reshard_within(&mut self, operand: Tensor, digits: &[Group], own: FactorDigits) {
        let before = self.strategy.iter().flatten().copied().collect::<Vec<_>>();
        let mut target = self.strategy.clone();
        for (factor, digits) in digits {
            target[*factor].extend(digits);
        }
        let add = |to: &FactorDigits, more: &FactorDigits| -> FactorDigits {
            to.iter().zip(more).map(|(a, b)| a.iter().chain(b).copied().collect()).collect()
        };
        let (target, had) = (add(&target, &own), add(&self.strategy, self.of(operand)));
        if target != had {
            self.stages[operand as usize] = Some(before.clone());
            self.through[operand as usize].push((before, target));
        }
        self.tensors[operand as usize] = own;
    }
}
