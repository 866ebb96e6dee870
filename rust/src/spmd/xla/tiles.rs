//! Tile assignments: XLA's shardings of a tensor, by digits of a device's position.
//!
//! A tile assignment is an array of devices. It has a dim for each dim of the tensor, and a last one for the devices that hold the
//! same tile. Here each of these dims is a list of digits, major to minor; reshaping and transposing the array assigns digits to
//! other dims.
//!
//! Source: `hlo_sharding_util.cc`, `spmd_partitioner_util.cc`.

use super::super::digits::{merged, remove, total_size, Digit};
use super::super::placement::Placement;

/// A tile assignment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// For each dim of the tensor its digits, major to minor.
    pub dims: Vec<Vec<Digit>>,
    /// The digits of the devices that hold the same tile, major to minor.
    pub replicated: Vec<Digit>,
}

impl Tiles {
    /// The tile assignment of `placement` on devices with the digits `devices`; unused ones are replicated, in their order. `None`
    /// if a digit of the placement is not one of devices.
    pub fn of(placement: &Placement, devices: &[Digit]) -> Option<Self> {
        let mut free = devices.to_vec();
        for digit in placement.digits() {
            remove(&mut free, digit)?;
        }
        Some(Self { dims: placement.dims.clone(), replicated: free }.canonical())
    }
    /// The tile assignment with adjacent digits merged where possible.
    #[must_use]
    pub fn canonical(self) -> Self {
        let dims = self.dims.into_iter().map(merged).collect();
        Self { dims, replicated: merged(self.replicated) }
    }
    /// The number of tiles of `dim`.
    pub fn count(&self, dim: usize) -> i64 {
        total_size(&self.dims[dim])
    }
    /// The numbers of tiles of all dims.
    pub fn counts(&self) -> Vec<i64> {
        self.dims.iter().map(|digits| total_size(digits)).collect()
    }
    /// The number of devices that hold the same tile.
    pub fn copies(&self) -> i64 {
        total_size(&self.replicated)
    }
    /// Whether every device holds the whole tensor.
    pub fn is_replicated(&self) -> bool {
        self.dims.iter().all(Vec::is_empty)
    }
    /// Whether several devices hold the same tile, and no device the whole tensor.
    pub fn is_partial(&self) -> bool {
        !self.replicated.is_empty() && !self.is_replicated()
    }
    /// All digits in the order of the array: those of dims, then the replicated ones.
    pub fn flat(&self) -> Vec<Digit> {
        merged(self.dims.iter().flatten().chain(&self.replicated).copied())
    }
    /// The array reshaped to `counts` tiles and the remaining number of copies.
    pub fn reshaped(&self, counts: &[i64]) -> Option<Self> {
        let (dims, replicated) = deal(&self.flat(), counts)?;
        Some(Self { dims, replicated }.canonical())
    }
    /// Whether a permute of these tiles gives `target`.
    pub fn can_permute_to(&self, target: &Self) -> bool {
        !self.is_replicated() && self.counts() == target.counts() && self != target
    }
    /// Tiles with the counts of `target`, where copies are assigned to the dims that `target` shards finer: `target` itself if that
    /// splits these tiles. `None` unless `target` has a multiple of the tiles in each dim.
    pub fn cut_like(&self, target: &Self) -> Option<Self> {
        let mut factors = Vec::with_capacity(self.dims.len());
        for dim in 0..self.dims.len() {
            let (own, wanted) = (self.count(dim), target.count(dim));
            if wanted % own != 0 {
                return None;
            }
            factors.push(wanted / own);
        }
        if self.dims.iter().zip(&target.dims).all(|(own, wanted)| starts_with(wanted, own)) {
            return Some(target.clone());
        }
        let (dealt, replicated) = deal(&self.replicated, &factors)?;
        let dims = self.dims.iter().zip(dealt).map(|(own, new)| [own.clone(), new].concat());
        Some(Self { dims: dims.collect(), replicated }.canonical())
    }
    /// The tiles with the digits of `dim` replicated.
    pub fn with_replicated(&self, dim: usize) -> Self {
        let mut tiles = self.clone();
        let digits = std::mem::take(&mut tiles.dims[dim]);
        tiles.replicated = [digits, tiles.replicated].concat();
        tiles.canonical()
    }
    /// The pairs of dims, (source, target), between which successive all-to-alls move tiles until the counts are those of `target`.
    pub fn all_to_all_pairs(&self, target: &Self) -> Option<Vec<(usize, usize)>> {
        let is_alike = !self.is_replicated()
            && !target.is_replicated()
            && self.replicated.is_empty() == target.replicated.is_empty()
            && self.copies() == target.copies();
        if !is_alike {
            return None;
        }
        let (own, wanted) = (self.counts(), target.counts());
        let differs = |dim: &usize| own[*dim] != wanted[*dim];
        let mut have: Vec<(i64, usize)> =
            (0..own.len()).filter(differs).map(|dim| (own[dim], dim)).collect();
        let mut need: Vec<i64> = (0..own.len()).filter(differs).map(|dim| wanted[dim]).collect();
        have.sort_unstable();
        need.sort_unstable();
        if have.is_empty() || !have.iter().map(|(count, _)| count).eq(&need) {
            return None;
        }
        let mut pairs = Vec::new();
        // The dims that hold the fewest tiles come first; of equal ones the last.
        while let Some(&(count, _)) = have.first() {
            let last = have.iter().take_while(|row| row.0 == count).count() - 1;
            let to = have[last].1;
            if wanted[to] == count {
                have.remove(last);
                continue;
            }
            let from = source_of(&have, &wanted, (count, wanted[to]))?;
            pairs.push((from, to));
            // The source holds now what the target held.
            have.retain(|row| row.1 != to && row.1 != from);
            have.push((count, from));
            sort_as_held(&mut have);
        }
        Some(pairs)
    }
}

/// The dim with `more` tiles that gives some of them to a dim with `count`, by the partitioner's preferences.
fn source_of(have: &[(i64, usize)], wanted: &[i64], (count, more): (i64, i64)) -> Option<usize> {
    let mut sources = have.iter().filter(|row| row.0 == more).map(|row| row.1);
    let is_better = |dim: &usize| {
        if count == 1 {
            wanted[*dim] != 1
        } else {
            wanted[*dim] == count
        }
    };
    if count != 1 && more % count != 0 {
        return None;
    }
    let all: Vec<usize> = sources.by_ref().collect();
    all.iter().copied().find(is_better).or(all.last().copied())
}

/// Sorts dims by their tile counts; among equals a dim that was put last stays last.
fn sort_as_held(have: &mut [(i64, usize)]) {
    have.sort_by_key(|row| row.0);
}

/// Assigns `digits`, major to minor, to dims with `counts` tiles; returns the remaining digits, too. `None` if they do not fit.
pub fn deal(digits: &[Digit], counts: &[i64]) -> Option<(Vec<Vec<Digit>>, Vec<Digit>)> {
    let mut rest: Vec<Digit> = digits.iter().rev().copied().collect();
    let mut dealt = Vec::with_capacity(counts.len());
    for &count in counts {
        let mut own = Vec::new();
        let mut left = count;
        while left > 1 {
            let digit = rest.pop()?;
            if left % digit.size == 0 {
                own.push(digit);
                left /= digit.size;
            } else {
                let (major, minor) = split(digit, left)?;
                own.push(major);
                rest.push(minor);
                left = 1;
            }
        }
        dealt.push(own);
    }
    rest.reverse();
    Some((dealt, rest))
}

/// `digit` split into a major digit with `size` values and the minor rest.
fn split(digit: Digit, size: i64) -> Option<(Digit, Digit)> {
    let rest = digit.size / size;
    (digit.size % size == 0 && rest > 1).then(|| {
        let major = Digit { stride: digit.stride * rest, size };
        (major, Digit { stride: digit.stride, size: rest })
    })
}

/// `digits` split into major ones, and minor ones with `count` values; `None` if a digit would be split unevenly.
pub fn split_minor(digits: &[Digit], count: i64) -> Option<(Vec<Digit>, Vec<Digit>)> {
    let total = total_size(digits);
    if total % count != 0 {
        return None;
    }
    let (mut dealt, minor) = deal(digits, &[total / count])?;
    Some((dealt.pop().unwrap_or_default(), minor))
}

/// Whether the major digits of `digits` are `prefix`.
fn starts_with(digits: &[Digit], prefix: &[Digit]) -> bool {
    deal(digits, &[total_size(prefix)]).is_some_and(|(dealt, _)| {
        dealt.first().is_some_and(|major| merged(major.iter().copied()) == prefix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn digit(stride: i64, size: i64) -> Digit {
        Digit { stride, size }
    }
    fn tiles(dims: &[&[Digit]], devices: i64) -> Tiles {
        let dims = dims.iter().map(|digits| digits.to_vec()).collect();
        let placement = Placement { dims, ..Placement::default() };
        Tiles::of(&placement, &[digit(1, devices)]).unwrap()
    }

    #[test]
    fn what_is_not_used_is_replicated() {
        let at = tiles(&[&[digit(2, 2)], &[]], 8);
        assert_eq!(at.replicated, [digit(4, 2), digit(1, 2)]);
        assert!(at.is_partial());
        assert!(tiles(&[&[], &[]], 8).is_replicated());
        assert!(!tiles(&[&[digit(1, 8)], &[]], 8).is_partial());
    }
    #[test]
    fn copies_are_dealt_where_the_target_is_finer() {
        let at = tiles(&[&[digit(4, 2)], &[]], 8);
        let nested = tiles(&[&[digit(4, 2)], &[digit(1, 4)]], 8);
        assert_eq!(at.cut_like(&nested), Some(nested.clone()));
        let crossed = tiles(&[&[digit(1, 4)], &[digit(4, 2)]], 8);
        let dealt = tiles(&[&[digit(2, 4)], &[digit(1, 2)]], 8);
        assert_eq!(at.cut_like(&crossed), Some(dealt));
        assert_eq!(crossed.cut_like(&at), None);
    }
    #[test]
    fn tiles_move_between_dims_that_exchange_counts() {
        let at = tiles(&[&[digit(1, 8)], &[]], 8);
        assert_eq!(at.all_to_all_pairs(&tiles(&[&[], &[digit(1, 8)]], 8)), Some(vec![(0, 1)]));
        assert_eq!(at.all_to_all_pairs(&tiles(&[&[], &[digit(1, 4)]], 8)), None);
        let at = tiles(&[&[digit(2, 4)], &[digit(1, 2)], &[]], 8);
        let to = tiles(&[&[], &[digit(2, 4)], &[digit(1, 2)]], 8);
        assert_eq!(at.all_to_all_pairs(&to), Some(vec![(1, 2), (0, 1)]));
    }
    #[test]
    fn minor_digits_are_split_off() {
        let digits = [digit(1, 8)];
        assert_eq!(split_minor(&digits, 2), Some((vec![digit(2, 4)], vec![digit(1, 2)])));
        assert_eq!(split_minor(&digits, 3), None);
    }
}
