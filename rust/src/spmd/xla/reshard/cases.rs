//! Cases of XLA's `PartitionedHlo::Reshard` that take several steps, or unusual ones.

use super::super::super::digits::{total_size, Digit};
use super::super::tiles::{split_minor, Tiles};
use super::{Arrived, Dim, Walk};
use crate::layout::ceil_div;

impl Walk<'_> {
    /// Copies become tiles: sliced without communication, then permuted.
    pub(super) fn slice_copies(&mut self, target: &Tiles) -> Arrived {
        let Some(cut) = self.at.cut_like(target) else { return Some(false) };
        self.slice(&cut)?;
        if self.at.can_permute_to(target) {
            self.permute(target);
        }
        Some(true)
    }
    /// Tiles become copies: permuted so that the devices that get the same tile have parts of it, then gathered.
    pub(super) fn gather_to_copies(&mut self, target: &Tiles) -> Arrived {
        let Some(cut) = target.cut_like(&self.at) else { return Some(false) };
        if self.at.can_permute_to(&cut) {
            self.permute(&cut);
        }
        for dim in (0..self.dims.len()).rev() {
            let parts = self.at.count(dim) / target.count(dim);
            if parts > 1 {
                self.gather(dim, parts)?;
            }
        }
        self.at = target.clone();
        Some(true)
    }
    /// Between tiles without copies and the same devices one dim further on, with copies.
    pub(super) fn all_to_all_of_copies(&mut self, target: &Tiles) -> Arrived {
        let starts_partial = self.at.is_partial();
        let (partial, tiled) = if starts_partial { (&self.at, target) } else { (target, &self.at) };
        let is_between = partial.is_partial() && !tiled.is_partial() && !tiled.is_replicated();
        let shifted = [partial.counts(), vec![partial.copies()]].concat();
        let last = tiled.dims.iter().rposition(|digits| !digits.is_empty());
        let Some(last) = last.filter(|_| is_between && shifted[0] == 1) else { return Some(false) };
        let fits = tiled.count(last) == partial.copies()
            && tiled.counts() == shifted[1..]
            && tiled.flat() == partial.flat();
        if !fits {
            return Some(false);
        }
        let between = tiled.with_replicated(last);
        if starts_partial {
            let Some(pairs) = self.at.all_to_all_pairs(&between) else { return Some(false) };
            self.all_to_alls(&between, &pairs)?;
            return self.go(target, true);
        }
        self.go(&between, true)?;
        let Some(pairs) = self.at.all_to_all_pairs(target) else { return Some(false) };
        self.all_to_alls(target, &pairs)
    }

    /// Splits a dim into two, or first creates or uses up copies.
    pub(super) fn split_or_step(&mut self, target: &Tiles) -> Arrived {
        if let Some((dim, major)) = self.split_of(target) {
            return self.through_split(target, dim, major);
        }
        if target.is_partial() {
            let copies = self.at.copies();
            let made = |&dim: &usize| {
                let count = self.at.count(dim);
                count != 1 && count * copies == target.copies()
            };
            if let Some(dim) = (0..self.dims.len()).find(made) {
                let between = self.at.with_replicated(dim);
                self.go(&between, true)?;
                return self.go(target, false);
            }
        }
        if self.at.is_partial() && !target.is_partial() {
            let copies = self.at.copies();
            let used = |&dim: &usize| {
                let count = target.count(dim);
                self.at.count(dim) == 1 && count != 1 && count % copies == 0
            };
            let Some(dim) = (0..self.dims.len()).find(used) else { return Some(false) };
            let mut between = self.at.clone();
            between.dims[dim] = std::mem::take(&mut between.replicated);
            self.go(&between, true)?;
            return self.go(target, false);
        }
        Some(false)
    }
    /// The dim that is split, and the tile count of its major part, so that tiles can move from or to its minor part.
    fn split_of(&self, target: &Tiles) -> Option<(usize, i64)> {
        if self.at.copies() != target.copies() {
            return None;
        }
        let (own, wanted) = (self.at.counts(), target.counts());
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for dim in (0..own.len()).filter(|&dim| own[dim] != wanted[dim]) {
            let (least, most) = (own[dim].min(wanted[dim]), own[dim].max(wanted[dim]));
            if least == 1 {
                ones.push(dim);
            } else if most % least == 0 {
                let padded = ceil_div(self.dims[dim].size, least).saturating_mul(least);
                if padded % most == 0 {
                    others.push(dim);
                }
            }
        }
        for &dim in &others {
            let is_pair = |one: &&usize| own[dim] * own[**one] == wanted[dim] * wanted[**one];
            if ones.iter().any(|one| is_pair(&one)) {
                return Some((dim, own[dim].min(wanted[dim])));
            }
        }
        let coarser = others.iter().find(|&&dim| own[dim] > wanted[dim]);
        coarser.map(|&dim| (dim, wanted[dim]))
    }
    fn through_split(&mut self, target: &Tiles, dim: usize, major: i64) -> Arrived {
        let local = ceil_div(self.dims[dim].size, self.at.count(dim));
        let (Some(own), Some(wanted)) =
            (split_dim(&self.at, dim, major), split_dim(target, dim, major))
        else {
            return None;
        };
        let minor_size = local.saturating_mul(own.count(dim + 1));
        let minor = Dim { size: minor_size, fixed: Vec::new(), ..self.dims[dim].clone() };
        let whole = self.dims[dim].size;
        self.dims[dim].size = (whole / minor_size.max(1)).max(1);
        self.dims.insert(dim + 1, minor);
        self.at = own;
        if !self.go(&wanted, false)? || !self.is_at(&wanted) {
            return Some(false);
        }
        self.dims.remove(dim + 1);
        self.dims[dim].size = whole;
        let minor = self.at.dims.remove(dim + 1);
        self.at.dims[dim].extend(minor);
        self.at = self.at.clone().canonical();
        self.go(target, false)
    }

    /// The dims with the same tile count in `target`.
    pub(super) fn agreed<'t>(&'t self, target: &'t Tiles) -> impl Iterator<Item = usize> + 't {
        let is_agreed =
            |&dim: &usize| !self.at.dims[dim].is_empty() && self.at.count(dim) == target.count(dim);
        (0..self.dims.len()).filter(is_agreed)
    }
    /// Reshards within groups of devices that hold the same tiles of the dims with equal counts.
    pub(super) fn in_groups(&mut self, target: &Tiles) -> Arrived {
        let agreed: Vec<usize> = self.agreed(target).collect();
        let are_alike = agreed.iter().all(|&dim| self.at.dims[dim] == target.dims[dim]);
        let mut inner = target.clone();
        let fixed: Vec<Vec<Digit>> =
            agreed.iter().map(|&dim| std::mem::take(&mut self.at.dims[dim])).collect();
        for &dim in &agreed {
            inner.dims[dim] = Vec::new();
        }
        if !are_alike {
            inner = self.at.reshaped(&inner.counts())?;
        }
        for (&dim, digits) in agreed.iter().zip(&fixed) {
            self.dims[dim].fixed.extend(digits);
        }
        if !self.go(&inner, true)? {
            return None;
        }
        for (&dim, digits) in agreed.iter().zip(fixed) {
            let kept = self.dims[dim].fixed.len() - digits.len();
            self.dims[dim].fixed.truncate(kept);
            self.at.dims[dim] = digits;
        }
        self.go(target, true)
    }
}

/// `tiles` with `dim` split into a dim with `major` tiles and one with the rest.
fn split_dim(tiles: &Tiles, dim: usize, major: i64) -> Option<Tiles> {
    let rest = total_size(&tiles.dims[dim]) / major;
    let (own, minor) = split_minor(&tiles.dims[dim], rest)?;
    let mut split = tiles.clone();
    split.dims[dim] = own;
    split.dims.insert(dim + 1, minor);
    Some(split.canonical())
}
