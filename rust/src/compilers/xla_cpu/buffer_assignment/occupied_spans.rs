//! The live ranges that share one buffer: they do not overlap, and are sorted by time.

/// The most live ranges in one part of the list.
const MAX_LEN: usize = 64;

/// The live range of an item, from its first to its last position.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub first: u32,
    pub last: u32,
    pub item: u32,
}

/// Live ranges by their first positions, which all differ. The list consists of short, non-empty parts, so that an insertion is
/// cheap in a long list.
pub struct Spans(Vec<Vec<Span>>);

/// The buffer of an output, which other values may use while neither the output nor an argument that is donated to it is live.
pub struct Output {
    /// The live ranges in the buffer, by position.
    pub items: Spans,
    /// The last position at which the donated argument is read, and the first one of the output: other values may use the buffer
    /// only in between.
    pub free: (u32, u32),
}

impl Spans {
    /// A list of one.
    pub fn of(span: Span) -> Self {
        Self(vec![vec![span]])
    }
    /// The part that a live range with this first position belongs to.
    #[inline]
    fn part(&self, first: u32) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
        self.0.partition_point(|part| part[0].first <= first).saturating_sub(1)
    }
    /// Adds `span`.
    pub fn insert(&mut self, span: Span) {
        let at = self.part(span.first);
        let part = &mut self.0[at];
        let place = part.partition_point(|other| other.first < span.first);
        part.insert(place, span);
        if part.len() > MAX_LEN {
            let rest = part.split_off(MAX_LEN / 2);
            self.0.insert(at + 1, rest);
        }
    }
    /// The last span that begins no later than `first`, and the one after it.
    #[inline]
    pub fn around(&self, first: u32) -> (Option<Span>, Option<Span>) {
        let at = self.part(first);
        let part = &self.0[at];
        let place = part.partition_point(|other| other.first <= first);
        let before = place.checked_sub(1).map(|place| part[place]);
        let after = part.get(place).or_else(|| self.0.get(at + 1)?.first());
        (before, after.copied())
    }
    /// All spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().flatten().copied()
    }
    /// The last span.
    pub fn last(&self) -> Option<Span> {
        self.0.last()?.last().copied()
    }
}

/// Whether the live range from `first` to `last` is within `free`.
#[inline]
pub fn is_within(free: (u32, u32), (first, last): (u32, u32)) -> bool {
    free.0 <= first && first < free.1 && last <= free.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn spans_are_found_in_the_order_of_time() {
        let span = |first: u32| Span { first, last: first, item: first };
        let mut spans = Spans::of(span(5000));
        let mut known = BTreeSet::from([5000]);
        let mut state: u32 = 1;
        for _ in 0..3000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let first = (state >> 8) % 10_000;
            let (before, after) = spans.around(first);
            let expected = known.range(..=first).next_back().copied();
            assert_eq!(before.map(|span| span.first), expected);
            let expected = known.range(first + 1..).next().copied();
            assert_eq!(after.map(|span| span.first), expected);
            if known.insert(first) {
                spans.insert(span(first));
            }
            assert_eq!(spans.last().map(|span| span.first), known.last().copied());
        }
        assert!(known.len() > 10 * MAX_LEN);
    }
}
