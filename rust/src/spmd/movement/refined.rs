//! Resharding to finer shards that do not nest in the coarser ones: 6 elements over 2 shards are 3 and 3, over 8 shards one each;
//! the fourth shard is on a device of the first half, which does not hold the fourth element.

use super::pieces::Piece;
use super::schedule::Schedule;
use crate::layout::ceil_div;

/// The fetches that turn `coarse` shards of a dim of `size` elements into `coarse * fine` shards. The number of a fine shard is
/// that of the coarse one, then that of its part; devices with the same part number exchange elements.
pub fn refined(size: i64, coarse: i64, fine: i64) -> Schedule {
    let (wide, narrow, parts) = (ceil_div(size, coarse), ceil_div(size, fine), fine / coarse);
    let mut pieces = Vec::new();
    for target in 0..fine {
        let start = target * narrow;
        let (mut low, high) = (start, (start + narrow).min(size));
        while low < high {
            let holder = low / wide;
            let end = high.min((holder + 1) * wide);
            let source = holder * parts + target % parts;
            let (from, to, len) = (low - holder * wide, low - start, end - low);
            pieces.push(Piece { input: 0, source, target, from, to, len });
            low = end;
        }
    }
    Schedule::of(&pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_elements_move() {
        assert_eq!(refined(6, 2, 8).sent(), 1);
        assert_eq!(refined(10, 2, 6).sent(), 1);
        assert_eq!(refined(12, 2, 6).sent(), 0);
    }
}
