//! The factors of one tensor: few, even if the op has thousands.

use super::axis_list::AxisList;
use crate::axis::AxisRef;
use crate::index::FactorId;

/// How one factor of one tensor is sharded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FactorSharding {
    /// The axes, major to minor.
    pub axes: AxisList,
    /// Whether propagation may not add axes.
    pub is_closed: bool,
    /// Whether it is the last factor of its dim.
    pub is_minor_most: bool,
    /// The overflow axes: those of the dim from the first one on that does not divide the unsharded
    /// part of the factor.
    pub overflow: Vec<AxisRef>,
}

/// The sharding of each factor, sorted by factor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Factors(Vec<(FactorId, FactorSharding)>);

impl Factors {
    /// The sharding of `factor`.
    #[inline]
    pub fn get(&self, factor: FactorId) -> Option<&FactorSharding> {
        let at = self.0.binary_search_by_key(&factor, |(factor, _)| *factor).ok()?;
        self.0.get(at).map(|(_, sharding)| sharding)
    }
    /// The sharding of `factor`, to change it.
    #[inline]
    pub fn get_mut(&mut self, factor: FactorId) -> Option<&mut FactorSharding> {
        let at = self.0.binary_search_by_key(&factor, |(factor, _)| *factor).ok()?;
        self.0.get_mut(at).map(|(_, sharding)| sharding)
    }
    /// All factors in order, with their shardings.
    pub fn iter(&self) -> impl Iterator<Item = (FactorId, &FactorSharding)> {
        self.0.iter().map(|(factor, sharding)| (*factor, sharding))
    }
    /// All shardings, in order of their factors.
    pub fn shardings(&self) -> impl Iterator<Item = &FactorSharding> {
        self.0.iter().map(|(_, sharding)| sharding)
    }
    /// Removes all factors.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    /// Adds a new factor; [`Factors::sort`] has to follow.
    pub(super) fn push(&mut self, factor: FactorId, sharding: FactorSharding) {
        self.0.push((factor, sharding));
    }
    /// Puts factors in order.
    pub(super) fn sort(&mut self) {
        if !self.0.is_sorted_by_key(|(factor, _)| *factor) {
            self.0.sort_unstable_by_key(|(factor, _)| *factor);
        }
    }
}
