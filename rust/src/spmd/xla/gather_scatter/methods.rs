//! The methods of XLA's partitioner for gathers and scatters, and which of them it takes.

use super::super::super::digits::{merged, total_size, Digit};
use super::super::super::strategy::FactorDigits;
use super::super::tiles::deal;
use super::cost::Cost;
use super::model::{Groups, Indexed, Level, Role, INDICES, OPERAND, SLICES};

/// How a gather or scatter is computed.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The digits of each factor along which the op is computed.
    pub strategy: FactorDigits,
    /// For each tensor its successive shardings, as digits by factor, that of `strategy` last.
    pub through: [Vec<FactorDigits>; 3],
    /// The successive shardings of the result after the op: digits by factor, and the digits over which it is still partial.
    pub behind: Vec<(FactorDigits, Vec<Digit>)>,
}

impl Indexed {
    /// How the op is computed.
    pub fn decide(&self, start: Groups) -> Decision {
        let mut levels: Vec<Level> = Vec::new();
        let mut groups = start;
        while let Some(level) = self.best_method(&groups) {
            groups = level.groups.clone();
            levels.push(level);
        }
        let mut through = [Vec::new(), Vec::new(), Vec::new()];
        for Level { groups, .. } in &levels {
            for (places, digits) in through.iter_mut().zip(&groups.tensors) {
                places.push(joined(&groups.strategy, digits));
            }
        }
        let reduced = |level: &Level| level.role == self.reduced();
        let reducing = levels.iter().filter(|level| reduced(level));
        let mut terms: Vec<Digit> = reducing.flat_map(|level| level.along.concat()).collect();
        let mut behind = Vec::new();
        for level in levels.iter().rev() {
            let digits = joined(&level.groups.strategy, &level.groups.result);
            behind.push((digits.clone(), terms.clone()));
            let tensor = if self.is_scatter { INDICES } else { OPERAND };
            let dims = self.tensors[tensor].dims.iter().rev().flatten();
            for &factor in dims.filter(|_| reduced(level)) {
                if !level.along[factor].is_empty() {
                    terms.retain(|digit| !level.along[factor].contains(digit));
                    behind.push((digits.clone(), terms.clone()));
                }
            }
        }
        // The last terms are reduced where the result is resharded.
        if let [.., (before, _), (digits, left)] = &behind[..] {
            if left.is_empty() && digits == before {
                behind.pop();
            }
        }
        Decision { strategy: groups.strategy, through, behind }
    }
    /// The method with the least cost.
    fn best_method(&self, groups: &Groups) -> Option<Level> {
        let mut best: Option<(Cost, Level)> = None;
        for role in [Role::Batch, Role::Window, Role::Indexed, Role::Index] {
            let Some(level) = self.method(role, groups) else { continue };
            let cost = if role == Role::Batch { (0, 0) } else { self.cost(groups, &level) };
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, level));
            }
        }
        best.map(|(_, level)| level)
    }
    /// The groups along factors of `role`, if there are any.
    fn method(&self, role: Role, groups: &Groups) -> Option<Level> {
        let mut next = groups.clone();
        let along = self.groups_along(role, groups)?;
        let taken = along.concat();
        for (factor, digits) in along.iter().enumerate() {
            next.strategy[factor].extend(digits);
        }
        let within = |digits: &FactorDigits| self.of_roles(digits, |other| other != role);
        let free = |digits: FactorDigits| {
            let is_free = !digits.iter().flatten().any(|digit| taken.contains(digit));
            if is_free {
                digits
            } else {
                vec![Vec::new(); digits.len()]
            }
        };
        let replicated = |tensor: usize, digits: &FactorDigits| {
            self.grouped_on_copies(groups, tensor, digits, &taken)
        };
        let [operand, indices, slices] = &groups.tensors;
        next.tensors = match role {
            Role::Window => [within(operand), replicated(INDICES, indices), free(within(slices))],
            Role::Indexed => {
                let mut of_indices = replicated(INDICES, indices);
                let mut of_slices = replicated(SLICES, slices);
                let is_shared = |role| matches!(role, Role::Batch | Role::Index);
                match (is_whole(&of_indices), is_whole(&of_slices)) {
                    (false, true) => {
                        of_slices = replicated(SLICES, &self.of_roles(indices, is_shared));
                    }
                    (true, false) => {
                        of_indices = replicated(INDICES, &self.of_roles(slices, is_shared));
                    }
                    _ => {}
                }
                [within(operand), of_indices, of_slices]
            }
            Role::Index => {
                [replicated(OPERAND, operand), free(within(indices)), free(within(slices))]
            }
            Role::Batch | Role::Other => {
                let wanted = (within(operand), within(indices));
                let dealt = |tensor, digits, leader, led: &FactorDigits| {
                    self.dealt_as(groups, (tensor, digits), (leader, led), &taken)
                };
                let operand = dealt(OPERAND, &wanted.0, INDICES, &wanted.1);
                let indices = dealt(INDICES, &wanted.1, OPERAND, &wanted.0);
                let mut slices = self.of_roles(&indices, |other| other == Role::Index);
                let windows = self.of_roles(&operand, |other| other == Role::Window);
                let used = slices.concat();
                // Windows stay whole where indices are sharded by the same devices.
                if !windows.iter().flatten().any(|digit| used.contains(digit)) {
                    for (digits, more) in slices.iter_mut().zip(windows) {
                        digits.extend(more);
                    }
                }
                [operand, indices, free(slices)]
            }
        };
        next.result.clone_from(&next.tensors[if self.is_scatter { OPERAND } else { SLICES }]);
        Some(Level { role, along, groups: next })
    }
    /// The digits of each factor of `role` along which groups would be formed.
    fn groups_along(&self, role: Role, groups: &Groups) -> Option<FactorDigits> {
        let [operand, indices, slices] = &groups.tensors;
        let own = |digits| self.of_roles(digits, |other| other == role);
        let mut along = match role {
            Role::Batch => {
                let [first, second] = [operand, indices].map(|digits| (own(digits), digits));
                let size = |digits: &FactorDigits| total_size(&digits.concat());
                let is_finer = size(&first.0) > size(&second.0);
                let (finer, coarser) = if is_finer { (first, second) } else { (second, first) };
                if !self.can_be_as_fine(groups, &finer.0, &coarser.0, coarser.1) {
                    return None;
                }
                finer.0
            }
            Role::Index => own(indices),
            Role::Window | Role::Indexed | Role::Other => own(operand),
        };
        if role == Role::Index {
            // Indices are cut as slices are where they are whole.
            let used = indices.concat();
            for (digits, more) in along.iter_mut().zip(own(slices)) {
                if digits.is_empty() && !more.iter().any(|digit| used.contains(digit)) {
                    *digits = more;
                }
            }
        }
        (!is_whole(&along)).then_some(along)
    }
    /// Whether a tensor that is sharded by `digits`, and along batch dims by `own`, can be sharded along these by `wanted`, as
    /// devices with copies of it can hold the additional shards.
    fn can_be_as_fine(
        &self,
        groups: &Groups,
        wanted: &FactorDigits,
        own: &FactorDigits,
        digits: &FactorDigits,
    ) -> bool {
        let sizes = || wanted.iter().zip(own).map(|(w, o)| (total_size(w), total_size(o)));
        let are_equal = total_size(&wanted.concat()) == total_size(&own.concat());
        if are_equal || is_whole(digits) {
            return true;
        }
        let ratio = || sizes().map(|(wanted, own)| wanted / own).product::<i64>();
        sizes().all(|(wanted, own)| wanted % own == 0) && self.copies(groups, digits) % ratio() == 0
    }
    /// The digits of the devices of a group.
    pub(super) fn devices_left(&self, groups: &Groups) -> Vec<Digit> {
        let before = groups.strategy.concat();
        self.parts.iter().copied().filter(|digit| !before.contains(digit)).collect()
    }
    /// The number of devices in a group that hold copies of the same shard.
    fn copies(&self, groups: &Groups, digits: &FactorDigits) -> i64 {
        let mut free = self.devices_left(groups);
        free.retain(|digit| !digits.iter().flatten().any(|other| other == digit));
        total_size(&free)
    }
    /// `digits` restricted to factors for whose role `are_kept` holds.
    fn of_roles(&self, digits: &FactorDigits, are_kept: impl Fn(Role) -> bool) -> FactorDigits {
        let of_factor = |(digits, &role): (&Vec<Digit>, &Role)| {
            if are_kept(role) {
                digits.clone()
            } else {
                Vec::new()
            }
        };
        digits.iter().zip(&self.roles).map(of_factor).collect()
    }
    /// The sharding, within groups along `taken`, of a tensor that is sharded by `digits`: groups use up its copies, or dims that
    /// are gathered for that.
    fn grouped_on_copies(
        &self,
        groups: &Groups,
        tensor: usize,
        digits: &FactorDigits,
        taken: &[Digit],
    ) -> FactorDigits {
        let whole = vec![Vec::new(); digits.len()];
        if is_whole(digits) {
            return whole;
        }
        let devices = self.devices_left(groups);
        let is_used = |digit: &Digit| digits.iter().flatten().any(|other| other == digit);
        let copies = self.copies(groups, digits);
        let count = total_size(taken);
        let mut counts: Vec<i64> = digits.iter().map(|digits| total_size(digits)).collect();
        if copies == 1 || copies % count != 0 {
            let mut borrowed = count / copies.max(1);
            if count % copies != 0 {
                return whole;
            }
            for factor in self.by_priority(tensor) {
                for prime in primes(counts[factor]) {
                    if borrowed % prime == 0 {
                        counts[factor] /= prime;
                        borrowed /= prime;
                    }
                }
            }
            if borrowed != 1 {
                return whole;
            }
        } else if !taken.iter().any(is_used) {
            return digits.clone();
        }
        let left: Vec<Digit> = devices.into_iter().filter(|digit| !taken.contains(digit)).collect();
        match deal(&left, &counts) {
            Some((dealt, _)) => dealt,
            None => whole,
        }
    }
    /// The factors of `tensor` in the order in which they are gathered.
    fn by_priority(&self, tensor: usize) -> Vec<usize> {
        let factors = || self.tensors[tensor].dims.iter().flatten().copied();
        let of = |roles: &'static [Role]| {
            factors().filter(move |&factor: &usize| roles.contains(&self.roles[factor]))
        };
        match tensor {
            OPERAND => of(&[Role::Indexed]).chain(of(&[Role::Window])).collect(),
            INDICES => {
                of(&[Role::Other]).chain(of(&[Role::Index])).chain(of(&[Role::Batch])).collect()
            }
            _ => of(&[Role::Batch, Role::Index, Role::Indexed, Role::Other])
                .chain(of(&[Role::Window]))
                .collect(),
        }
    }
}

/// Whether no factor is sharded.
fn is_whole(digits: &FactorDigits) -> bool {
    digits.iter().all(Vec::is_empty)
}

/// The digits of groups, followed by those within a group.
fn joined(groups: &FactorDigits, within: &FactorDigits) -> FactorDigits {
    let factors = groups.iter().zip(within);
    factors.map(|(major, minor)| merged(major.iter().chain(minor).copied())).collect()
}

/// The prime factors of `number`, in order.
pub fn primes(number: i64) -> Vec<i64> {
    let mut left = number;
    let mut found = Vec::new();
    let mut prime = 2;
    while prime * prime <= left {
        while left % prime == 0 {
            found.push(prime);
            left /= prime;
        }
        prime += 1;
    }
    if left > 1 {
        found.push(left);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::model::Tensor;
    use super::*;

    const DATA: Digit = Digit { stride: 4, size: 2 };
    const TENSOR: Digit = Digit { stride: 1, size: 4 };
    // The factors of rows, features, and of the two dims of indices.
    const ROLES: [Role; 4] = [Role::Indexed, Role::Window, Role::Index, Role::Index];

    fn decide(rows: i64, is_scatter: bool, digits: [[Vec<Digit>; 4]; 4]) -> Decision {
        let tensor = |dims: &[usize], shape: &[i64]| Tensor {
            dims: dims.iter().map(|&factor| vec![factor]).collect(),
            shape: shape.to_vec(),
            bits: 32,
        };
        let tensors = [
            tensor(&[0, 1], &[rows, 512]),
            tensor(&[2, 3], &[16, 256]),
            tensor(&[2, 3, 1], &[16, 256, 512]),
        ];
        let indexed = Indexed {
            roles: ROLES.to_vec(),
            tensors,
            is_scatter,
            devices: vec![Digit { stride: 1, size: 8 }],
            parts: vec![DATA, TENSOR],
        };
        let [operand, indices, slices, result] = digits.map(Vec::from);
        let tensors = [operand, indices, slices];
        indexed.decide(Groups { tensors, result, strategy: vec![Vec::new(); 4] })
    }
    fn rows() -> [Vec<Digit>; 4] {
        [vec![TENSOR], Vec::new(), Vec::new(), Vec::new()]
    }
    fn tokens() -> [Vec<Digit>; 4] {
        [Vec::new(), Vec::new(), vec![DATA], vec![TENSOR]]
    }

    #[test]
    fn a_small_table_is_gathered_and_rows_of_a_large_one_are_added_up() {
        let small = decide(4096, false, [rows(), tokens(), tokens(), tokens()]);
        assert_eq!(small.strategy, tokens());
        assert!(small.behind.iter().all(|(_, terms)| terms.is_empty()));
        let large = decide(65536, false, [rows(), tokens(), tokens(), tokens()]);
        assert_eq!(large.strategy[0], [TENSOR]);
        assert_eq!(large.behind.last().map(|(_, terms)| &terms[..]), Some(&[TENSOR][..]));
    }
    #[test]
    fn a_scatter_reduces_the_dims_of_indices_one_after_the_other() {
        let sum = decide(4096, true, [rows(), tokens(), tokens(), rows()]);
        assert_eq!(sum.strategy, tokens());
        let terms: Vec<&[Digit]> = sum.behind.iter().map(|(_, terms)| &terms[..]).collect();
        assert_eq!(terms, [&[DATA, TENSOR][..], &[DATA]]);
    }
    #[test]
    fn batch_dims_are_taken_only_where_both_tensors_can_be_cut_along_them() {
        let batch = |indices: [Vec<Digit>; 4]| {
            let operand = || [vec![DATA, TENSOR], Vec::new(), Vec::new(), Vec::new()];
            let tensor = |dims: &[usize], shape: &[i64]| Tensor {
                dims: dims.iter().map(|&factor| vec![factor]).collect(),
                shape: shape.to_vec(),
                bits: 32,
            };
            let indexed = Indexed {
                roles: vec![Role::Batch, Role::Indexed, Role::Index, Role::Window],
                tensors: [
                    tensor(&[0, 1, 3], &[8, 4096, 64]),
                    tensor(&[2, 0], &[1024, 8]),
                    tensor(&[2, 0, 3], &[1024, 8, 64]),
                ],
                is_scatter: false,
                devices: vec![Digit { stride: 1, size: 8 }],
                parts: vec![DATA, TENSOR],
            };
            let wanted = [Vec::new(), Vec::new(), vec![DATA, TENSOR], Vec::new()];
            let tensors = [operand(), indices, wanted.clone()].map(Vec::from);
            let groups = Groups { tensors, result: wanted.into(), strategy: vec![Vec::new(); 4] };
            indexed.decide(groups).strategy
        };
        let whole = batch([const { Vec::new() }; 4]);
        assert_eq!(whole[0], [DATA, TENSOR]);
        // All devices are along another dim of the indices: the operand is gathered.
        let rows = batch([Vec::new(), Vec::new(), vec![DATA, TENSOR], Vec::new()]);
        assert_eq!((rows[0].len(), rows[2].len()), (0, 2));
    }
    #[test]
    fn features_come_first_and_indices_are_gathered_for_them() {
        let features = || [Vec::new(), vec![TENSOR], Vec::new(), Vec::new()];
        let batch = || [Vec::new(), Vec::new(), vec![DATA, TENSOR], Vec::new()];
        let found = decide(4096, false, [features(), batch(), batch(), batch()]);
        assert_eq!(found.strategy, [vec![], vec![TENSOR], vec![DATA], vec![]]);
        assert_eq!(found.through[1].len(), 2);
    }
}
