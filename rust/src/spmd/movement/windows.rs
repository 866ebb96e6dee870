//! Windows: the interval of a dim, padded and dilated, that each shard of a result needs.

use super::fetch::Fetch;
use super::halos::Halos;
use super::pieces::{pieces_of, Extent};
use super::schedule::{Rounds, Schedule};
use crate::index::ValueId;

/// The windows of a dim. Element `i` is at position `i * dilation`; the positions between elements, and before the first and after
/// the last one, are padding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Windows {
    /// The number of elements of the dim.
    pub elements: i64,
    /// The distance between the positions of adjacent elements.
    pub dilation: i64,
    /// The position at which the window of each shard starts.
    pub starts: Vec<i64>,
    /// The number of positions of a window.
    pub size: i64,
    /// The position after the last one that is needed. Windows of a padded shard of the result may start behind it.
    pub end: i64,
    /// Whether the op dilates and pads its windows itself, where that is the same for all shards.
    pub dilates: bool,
}

impl Windows {
    /// Windows of elements that are not dilated.
    pub const fn of_elements(elements: i64, starts: Vec<i64>, size: i64, end: i64) -> Self {
        Self { elements, dilation: 1, starts, size, end, dilates: false }
    }
    /// For each shard the first element at or after the start of its window, and the number of elements to fetch.
    fn fetched(&self) -> (Vec<i64>, i64) {
        let ceil = |place: i64| -(-place).div_euclid(self.dilation);
        let firsts: Vec<i64> = self.starts.iter().map(|&start| ceil(start)).collect();
        let ends = self.starts.iter().map(|&start| ceil(start + self.size));
        let counts = ends.zip(&firsts).map(|(end, first)| end - first);
        let count = counts.max().unwrap_or(1).max(1);
        (firsts, count)
    }
    /// For each shard the offset in its window of the first fetched element.
    fn leads<'a>(&'a self, firsts: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
        firsts.iter().zip(&self.starts).map(|(first, start)| first * self.dilation - start)
    }
    /// The padding before the first and after the last element of each window, if the op dilates and pads the fetched elements.
    pub fn left_to_op(&self) -> Option<[i64; 2]> {
        if !self.dilates || self.dilation == 1 {
            return None;
        }
        let (firsts, count) = self.fetched();
        let low = self.leads(&firsts).next()?;
        let high = self.size - low - ((count - 1) * self.dilation + 1);
        (high >= 0 && self.leads(&firsts).all(|lead| lead == low)).then_some([low, high])
    }
    /// The number of elements or positions that are fetched for a window.
    pub fn num_taken(&self) -> i64 {
        if self.left_to_op().is_some() {
            self.fetched().1
        } else {
            self.size
        }
    }
    /// The schedule of the fetches, for shards of `shard` elements.
    pub fn schedule(&self, shard: i64, sorted: Rounds) -> Schedule {
        let (firsts, count) = self.fetched();
        let end = -(-self.end).div_euclid(self.dilation);
        let extent = Extent { low: 0, high: self.elements.min(end), shard };
        let pieces = pieces_of(0, extent, &firsts, count);
        match sorted {
            Rounds::Fewest => Schedule::of(&pieces),
            Rounds::AsXla => Halos { firsts: &firsts, count, shard }.schedule(&pieces),
        }
    }
    /// Whether some window has positions without elements.
    pub fn has_gaps(&self) -> bool {
        let end = (self.elements - 1) * self.dilation;
        self.dilation > 1
            || self.starts.iter().any(|&start| start < 0 || start + self.size - 1 > end)
    }
    /// The window of each shard of `input`, without the padding that is [left to the op](Self::left_to_op). Padding has the value
    /// `fill`; without it, it is unspecified.
    pub fn take(
        &self,
        fetch: &mut Fetch<'_, '_>,
        input: ValueId,
        fill: Option<ValueId>,
    ) -> ValueId {
        let shard = fetch.emit.shape(input)[fetch.dim];
        let (firsts, count) = self.fetched();
        let schedule = self.schedule(shard, fetch.rounds);
        let mut value = fetch.window(&[input], &schedule, count);
        if let Some(fill) = fill {
            value = self.filled(fetch, value, (&firsts, count), fill);
        }
        if self.left_to_op().is_some() {
            return value;
        }
        self.dilated(fetch, value, (&firsts, count), fill)
    }
    /// `value` with `fill` in place of elements outside of the dim.
    fn filled(
        &self,
        fetch: &mut Fetch<'_, '_>,
        value: ValueId,
        (firsts, count): (&[i64], i64),
        fill: ValueId,
    ) -> ValueId {
        let low: Vec<Option<i64>> = firsts.iter().map(|&first| Some(-first)).collect();
        let high: Vec<Option<i64>> =
            firsts.iter().map(|&first| Some(self.elements - first)).collect();
        let Some(mask) = fetch.inside(&low, &high, count) else { return value };
        let shape = fetch.emit.shape(value);
        let mask = fetch.emit.along(mask, fetch.dim, &shape);
        fetch.emit.masked(mask, value, fill)
    }
    /// The positions of the window, with `fill` between elements.
    fn dilated(
        &self,
        fetch: &mut Fetch<'_, '_>,
        value: ValueId,
        (firsts, count): (&[i64], i64),
        fill: Option<ValueId>,
    ) -> ValueId {
        if self.dilation == 1 {
            return value;
        }
        let (least, most) =
            (self.leads(firsts).min().unwrap_or(0), self.leads(firsts).max().unwrap_or(0));
        let rank = fetch.emit.shape(value).len();
        let high = self.size - least - ((count - 1) * self.dilation + 1);
        let edges = [most, high, self.dilation - 1].map(|count| fetch.along(count, rank));
        let [low, high, interior] = &edges;
        let padded = fetch.emit.pad_between(value, fill, [low, high, interior]);
        let starts: Vec<Option<i64>> = self.leads(firsts).map(|lead| Some(most - lead)).collect();
        let start = fetch.per_shard(&starts);
        fetch.cut(padded, start, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_dilated_windows_are_fetched_alone() {
        // Places 0, 3, 6, 9 have elements; shards of 5 places start one before.
        let windows = Windows {
            elements: 4,
            dilation: 3,
            starts: vec![-1, 4],
            size: 5,
            end: 9,
            dilates: true,
        };
        assert_eq!(windows.fetched(), (vec![0, 2], 2));
        assert!(windows.has_gaps());
        // The first element of a window is at its place 1, or 2.
        assert_eq!(windows.left_to_op(), None);
        let even = Windows { starts: vec![-1, 5], size: 6, ..windows };
        assert_eq!((even.left_to_op(), even.num_taken()), (Some([1, 1]), 2));
        let halves = Windows::of_elements(8, vec![0, 4], 4, 8);
        assert!(!halves.has_gaps());
    }

    #[test]
    fn nothing_is_fetched_for_padding() {
        // The first column of 8, whose two shards have one element and none.
        let column = Windows::of_elements(8, vec![0, 1], 1, 1);
        assert_eq!(column.schedule(4, Rounds::Fewest).sent(), 0);
    }
}
