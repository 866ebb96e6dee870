//! The shards of `lhs`, `rhs` and output of a dot within groups of devices, by class of dims: batch, free, contracting.

use super::super::digits::{total_size, Digit};
use super::super::strategy::FactorDigits;

/// The class of a factor in a dot.
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

/// The tensors of a dot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tensor {
    Left,
    Right,
    Result,
}

use Tensor::{Left, Result, Right};

/// A factor and its digits along which groups are formed.
pub(super) type Group = (usize, Vec<Digit>);
/// For each operand its digits by factor within groups, where these are known.
pub(super) type Within = [Option<FactorDigits>; 2];

/// The shardings of tensors within a group of devices, and the digits along which groups are formed.
#[derive(Clone, Debug)]
pub struct Shards {
    /// The digits of each factor, of the left operand, the right one, and the result.
    pub tensors: [FactorDigits; 3],
    /// The digits that devices of a group differ in.
    pub devices: Vec<Digit>,
    /// The digits along which groups are formed, by factor: the strategy so far.
    pub strategy: FactorDigits,
    /// For each operand the groups within which it was resharded last, if any.
    pub stages: [Option<Vec<Digit>>; 2],
    /// For each operand the shardings, as digits by factor, to which it was resharded so that groups could be formed, each with the
    /// group digits at that time.
    pub through: [Vec<(Vec<Digit>, FactorDigits)>; 2],
}

/// How a dot is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The digits of each factor.
    pub strategy: FactorDigits,
    /// For each operand the group digits within which it is resharded; `None` if it is not. The partitioner shares equal reshards
    /// only within groups along the same digits.
    pub stages: [Option<Vec<Digit>>; 2],
    /// For each operand its intermediate shardings, as digits by factor, each with the group digits within which it is resharded to
    /// that.
    pub through: [Vec<(Vec<Digit>, FactorDigits)>; 2],
    /// The sharding of the result right after the all-reduce of the partial results of a group, if that is one op.
    pub reduced_to: Option<FactorDigits>,
    /// Spatial dims of a convolution where XLA's strategy pairs the input with the result rather than the kernel, or the reverse,
    /// in contrast to the rule: the factor of the input, and the one that it is exchanged with.
    pub exchanged: Vec<(usize, usize)>,
    /// The digits of devices that hold copies of the partial results of a convolution; they take part in the all-reduce.
    pub copies: Vec<Digit>,
}

impl Shards {
    pub(super) fn of(&self, tensor: Tensor) -> &FactorDigits {
        &self.tensors[tensor as usize]
    }
    /// The number of shards of `tensor`.
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
    /// The number of devices of a group.
    pub(super) fn num_devices(&self) -> i64 {
        total_size(&self.devices)
    }
    /// The digits of the devices that hold copies of the same shard of `tensor`.
    pub(super) fn replicated(&self, tensor: Tensor) -> Vec<Digit> {
        let used = |digit: &Digit| self.of(tensor).iter().flatten().any(|other| other == digit);
        self.devices.iter().copied().filter(|digit| !used(digit)).collect()
    }
    /// `digits` as a list of the digits of devices; `None` if they are not whole ones.
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
    /// Splits the devices of a group along `digits` of each factor. Factors with digits are then finished; tensors that have these
    /// digits on other dims are gathered along them, or move to devices that held copies. Operands with an entry in `within` are
    /// resharded to that directly.
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
    /// Reshards `operand` to groups along `digits`, with its digits `own` within them.
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
