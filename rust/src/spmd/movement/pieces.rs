//! Pieces: the intervals that shards need from each other.

/// An interval that one shard needs from another, or from itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// The input tensor that it is fetched from.
    pub input: usize,
    /// The shard that holds it.
    pub source: i64,
    /// The shard that needs it.
    pub target: i64,
    /// Its offset in the shard that holds it.
    pub from: i64,
    /// Its offset in the window of the shard that needs it.
    pub to: i64,
    /// Its number of elements.
    pub len: i64,
}

impl Piece {
    /// The difference of the offsets in the window and in the shard.
    pub const fn shift(&self) -> i64 {
        self.to - self.from
    }
}

/// A dim that is fetched from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// The first element that is needed.
    pub low: i64,
    /// The end of the elements that are needed.
    pub high: i64,
    /// The number of elements of a shard.
    pub shard: i64,
}

/// The pieces of windows of `size` elements; the window of shard `k` starts at element `starts[k]` of the dim. Elements outside of
/// `extent` are not needed.
pub fn pieces_of(input: usize, extent: Extent, starts: &[i64], size: i64) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(2 * starts.len());
    if extent.shard == 0 {
        // A dim without elements, of which windows may take more than is there: all of it is padding.
        return pieces;
    }
    for (target, &start) in (0..).zip(starts) {
        let (low, high) = (start.max(extent.low), (start + size).min(extent.high));
        if low >= high {
            continue;
        }
        for source in low / extent.shard..=(high - 1) / extent.shard {
            let begin = source * extent.shard;
            let (first, end) = (low.max(begin), high.min(begin + extent.shard));
            let (from, to) = (first - begin, first - start);
            pieces.push(Piece { input, source, target, from, to, len: end - first });
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halos_are_pieces_of_neighbours() {
        let extent = Extent { low: 0, high: 11, shard: 3 };
        let pieces = pieces_of(0, extent, &[-1, 2, 5, 8], 5);
        let of = |target: i64| -> Vec<(i64, i64, i64, i64)> {
            let mine = pieces.iter().filter(|piece| piece.target == target);
            mine.map(|piece| (piece.source, piece.from, piece.to, piece.len)).collect()
        };
        assert_eq!(of(0), [(0, 0, 1, 3), (1, 0, 4, 1)]);
        assert_eq!(of(1), [(0, 2, 0, 1), (1, 0, 1, 3), (2, 0, 4, 1)]);
        assert_eq!(of(3), [(2, 2, 0, 1), (3, 0, 1, 2)]);
    }
}
