//! Heap simulation: the size of the heap that temporary buffers are packed into.
//!
//! Each buffer gets one range of the heap for its whole live range. They are placed by decreasing size, or by decreasing length of
//! the live range, each in the smallest gap between those placed whose live ranges overlap its own. The smaller of the two heaps is
//! taken. It may be larger than the peak of live bytes, since buffers do not move (fragmentation). XLA for TPUs places them in the
//! order in which they are made, which compiled programs show.
//!
//! Source: XLA's `HeapSimulator` and `GlobalDecreasingSizeBestFitHeap`.

use std::cmp::Reverse;

/// The most buffers that are placed. If there are more, the largest are placed, and others are assumed to fit into the gaps: to
/// place all would take quadratic time.
const MAX_PLACED: usize = 1 << 10;

/// A temporary buffer.
#[derive(Clone, Copy, Debug)]
pub struct Temporary {
    /// Its bytes.
    pub bytes: u128,
    /// The first and the last moment of its live range.
    pub span: (u32, u32),
    /// The index of the temporary whose buffer it takes over at its first moment.
    pub shares: Option<u32>,
}

/// A range of the heap, used by temporaries that take over each other's buffer.
#[derive(Clone, Copy)]
struct Piece {
    bytes: u128,
    /// The length of the live range of its first temporary, and of the whole piece.
    own: u32,
    length: u32,
    /// When it is live, counted in beginnings and ends of live ranges.
    span: (u32, u32),
}

/// The bytes of the heap for `temporaries`, which begin at multiples of `alignment`.
pub fn heap_size(temporaries: &[Temporary], alignment: u128) -> u128 {
    let mut by_length = pieces(temporaries);
    let least = most_at_once(&by_length);
    let mut by_size = by_length.clone();
    by_size.sort_by_key(|piece| (Reverse(piece.bytes), Reverse(piece.own)));
    if by_size.len() > MAX_PLACED {
        by_size.truncate(MAX_PLACED);
        by_length.clone_from(&by_size);
    }
    let by_size = place(&by_size, alignment, u128::MAX);
    if by_size <= least {
        return least;
    }
    by_length.sort_by_key(|piece| (Reverse(piece.length), Reverse(piece.bytes)));
    place(&by_length, alignment, by_size).max(least)
}

/// The bytes of the heap if `temporaries` are placed in the order in which they are made, each at a multiple of `alignment`, and behind
/// them so many tables of tuples. `memory_analysis()` does not count the tables if they are all there is.
pub fn heap_size_in_order(temporaries: &[Temporary], alignment: u128, tables: u64) -> u128 {
    let mut pieces = pieces(temporaries);
    let least = most_at_once(&pieces);
    if pieces.len() > MAX_PLACED {
        pieces.sort_by_key(|piece| Reverse(piece.bytes));
        pieces.truncate(MAX_PLACED);
    }
    pieces.sort_by_key(|piece| piece.span.0);
    let mut live: Vec<Placed> = Vec::new();
    let mut size = least;
    for &piece in &pieces {
        live.retain(|it| it.span.1 >= piece.span.0);
        let place = Placed::new(piece, gap(live.iter(), piece.bytes), alignment);
        size = size.max(place.end);
        place.insert_into(&mut live);
    }
    if size == 0 {
        return 0;
    }
    size.saturating_add(alignment * u128::from(tables))
}

/// The largest sum of the bytes of `pieces` that are live at once.
fn most_at_once(pieces: &[Piece]) -> u128 {
    let last = pieces.iter().map(|piece| piece.span.1 as usize).max().unwrap_or(0);
    // Each piece begins and ends at times of its own.
    let mut changes = vec![(0_u128, 0_u128); last + 1];
    for piece in pieces {
        changes[piece.span.0 as usize].0 = piece.bytes;
        changes[piece.span.1 as usize].1 = piece.bytes;
    }
    let (mut now, mut most) = (0_u128, 0);
    for (begins, ends) in changes {
        now = now.saturating_add(begins).saturating_sub(ends);
        most = now.max(most);
    }
    most
}

/// The pieces for `temporaries`, with the times at which they begin and end.
fn pieces(temporaries: &[Temporary]) -> Vec<Piece> {
    let mut order: Vec<u32> = (0..temporaries.len() as u32).collect();
    order.sort_by_key(|&at| temporaries[at as usize].span);
    // What ends at each moment; what something else is put in the memory of ends when that begins.
    let mut is_taken = vec![false; temporaries.len()];
    for temporary in temporaries {
        if let Some(old) = temporary.shares {
            is_taken[old as usize] = true;
        }
    }
    let mut ends: Vec<(u32, u32)> = order
        .iter()
        .filter(|&&at| !is_taken[at as usize])
        .map(|&at| (temporaries[at as usize].span.1, at))
        .collect();
    ends.sort_by_key(|&(moment, _)| moment);
    let mut ends = ends.into_iter().peekable();
    let mut times = vec![(0_u32, 0_u32); temporaries.len()];
    let mut now = 0;
    let mut tick = || {
        now += 1;
        now
    };
    for at in order {
        let Temporary { span, shares, .. } = temporaries[at as usize];
        while let Some((_, ended)) = ends.next_if(|&(moment, _)| moment < span.0) {
            times[ended as usize].1 = tick();
        }
        if let Some(old) = shares {
            times[old as usize].1 = tick();
        }
        times[at as usize].0 = tick();
    }
    for (_, ended) in ends {
        times[ended as usize].1 = tick();
    }
    let mut next_of = vec![None; temporaries.len()];
    for (temporary, at) in temporaries.iter().zip(0_u32..) {
        if let Some(old) = temporary.shares {
            next_of[old as usize] = Some(at);
        }
    }
    let firsts = (0..temporaries.len()).filter(|&at| temporaries[at].shares.is_none());
    let piece = |first: usize| {
        let (begin, own_end) = times[first];
        let mut last = first;
        while let Some(next) = next_of[last] {
            last = next as usize;
        }
        let end = times[last].1;
        let bytes = temporaries[first].bytes;
        Piece { bytes, own: own_end - begin, length: end - begin, span: (begin, end) }
    };
    firsts.map(piece).collect()
}

/// A range of the heap with its piece.
struct Placed {
    begin: u128,
    end: u128,
    /// The first aligned place behind it.
    behind: u128,
    /// When the piece is live.
    span: (u32, u32),
}

impl Placed {
    fn new(piece: Piece, begin: u128, alignment: u128) -> Self {
        let end = begin.saturating_add(piece.bytes);
        let behind = end.div_ceil(alignment) * alignment;
        Self { begin, end, behind, span: piece.span }
    }
    /// Inserts it into `placed`, which are sorted by place, so that gaps are found in one walk.
    fn insert_into(self, placed: &mut Vec<Self>) {
        let at = placed.partition_point(|it| (it.begin, it.end) <= (self.begin, self.end));
        placed.insert(at, self);
    }
}

/// The beginning of the smallest gap for `bytes` between `used`, which are sorted by place; behind all of them if there is none.
fn gap<'p>(used: impl Iterator<Item = &'p Placed>, bytes: u128) -> u128 {
    let mut best: Option<(u128, u128)> = None;
    let mut free: u128 = 0;
    for used in used {
        let gap = used.begin.saturating_sub(free);
        if gap >= bytes && best.is_none_or(|(smallest, _)| gap < smallest) {
            best = Some((gap, free));
        }
        free = free.max(used.behind);
    }
    best.map_or(free, |(_, begin)| begin)
}

/// The size of a heap in which `pieces` are placed in the given order, each at a multiple of `alignment`; `limit` if it is larger
/// than that.
fn place(pieces: &[Piece], alignment: u128, limit: u128) -> u128 {
    let mut placed: Vec<Placed> = Vec::with_capacity(pieces.len());
    let mut size = 0;
    for &piece in pieces {
        let span = piece.span;
        let overlaps = |it: &&Placed| it.span.0 <= span.1 && span.0 <= it.span.1;
        let place = Placed::new(piece, gap(placed.iter().filter(overlaps), piece.bytes), alignment);
        if place.end >= limit {
            return limit;
        }
        size = place.end.max(size);
        place.insert_into(&mut placed);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::{heap_size_in_order, pieces, place, Piece, Temporary};

    const ALIGNMENT: u128 = 64;

    /// [`place`] by its definition: each piece in the smallest gap between those that overlap its live range.
    fn placed_one_by_one(pieces: &[Piece]) -> u128 {
        let mut placed: Vec<(u128, u128)> = Vec::new();
        for piece in pieces {
            let others = pieces.iter().zip(&placed);
            let overlaps = others
                .filter(|(it, _)| it.span.0 <= piece.span.1 && piece.span.0 <= it.span.1)
                .map(|(_, &place)| place);
            let mut used: Vec<(u128, u128)> = overlaps.collect();
            used.sort_unstable();
            let mut free = 0;
            let mut gaps: Vec<(u128, u128)> = Vec::new();
            for (begin, end) in used {
                gaps.push((begin.saturating_sub(free), free));
                free = free.max(end.next_multiple_of(ALIGNMENT));
            }
            let fits = gaps.into_iter().filter(|&(gap, _)| gap >= piece.bytes);
            let begin = fits.min_by_key(|&(gap, _)| gap).map_or(free, |(_, begin)| begin);
            placed.push((begin, begin + piece.bytes));
        }
        placed.iter().map(|&(_, end)| end).max().unwrap_or(0)
    }

    #[test]
    fn the_heap_is_that_of_placing_one_by_one() {
        let mut state: u64 = 1;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        for count in 0..60 {
            let pieces: Vec<Piece> = (0..count)
                .map(|_| {
                    let (begin, length) = (below(40) as u32, below(12) as u32);
                    let bytes = u128::from(1 + below(300));
                    Piece { bytes, own: length, length, span: (begin, begin + length) }
                })
                .collect();
            let whole = placed_one_by_one(&pieces);
            assert_eq!(place(&pieces, ALIGNMENT, u128::MAX), whole);
            for limit in [whole / 2, whole, whole + 1] {
                assert_eq!(place(&pieces, ALIGNMENT, limit), whole.min(limit));
            }
        }
    }

    #[test]
    fn what_has_ended_is_in_nobodys_way_in_order() {
        let mut state: u64 = 1;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        for count in 0..60 {
            let temporaries: Vec<Temporary> = (0..count)
                .map(|_| {
                    let (begin, length) = (below(40) as u32, below(12) as u32);
                    let span = (begin, begin + length);
                    Temporary { bytes: u128::from(1 + below(300)), span, shares: None }
                })
                .collect();
            let mut pieces = pieces(&temporaries);
            pieces.sort_by_key(|piece| piece.span.0);
            let whole = placed_one_by_one(&pieces);
            assert_eq!(heap_size_in_order(&temporaries, ALIGNMENT, 0), whole);
            let tables = if temporaries.is_empty() { 0 } else { 3 * ALIGNMENT };
            assert_eq!(heap_size_in_order(&temporaries, ALIGNMENT, 3), whole + tables);
        }
    }
}
