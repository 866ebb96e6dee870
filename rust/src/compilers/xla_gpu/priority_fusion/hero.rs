//! The hero of a fusion, the op that decides how it is emitted: a reduction, a transpose through shared memory, a concatenation or
//! a scatter; else a plain loop over the elements of the result.
//!
//! Source: XLA's `HloFusionAnalysis`, `reduction_utils` and `GetDescriptionForTiledTransposeEmitter`.

use crate::layout::ceil_div;

/// Threads of a warp.
const WARP: i64 = 32;
/// Threads of a block: the most, as many as reduce rows, and as many as reduce a few columns.
const MAX_THREADS: i64 = 1024;
const BLOCK_THREADS: i64 = 256;
const SMALL_COLUMN_THREADS: i64 = 128;
/// Elements of a row that a thread reduces, and elements that it reads at once.
const ROW_ELEMENTS: i64 = 16;
const VECTOR: i64 = 2;
/// The least size of the two minor dims of a transpose through shared memory; that of a large one.
const LEAST_TRANSPOSED: i64 = 16;
const LEAST_TRANSPOSED_OF_LARGE: i64 = 8;
const LARGE_TRANSPOSED: i64 = 64 * 128;
/// The largest reduced dim that one block of threads can reduce: of a row, and of a column reduction.
const RACE_FREE_ROW: i64 = 1024 * 16;
const RACE_FREE_COLUMN: i64 = WARP * 128;
/// The largest batch dim of a row reduction in one block.
const RACE_FREE_BATCH: i64 = 8;
/// The least ratio of reduced to result elements at which a reduction is significant.
pub const SIGNIFICANT: u128 = 16;

/// A reduction, normalized to three dims: a row reduction reduces the first and the last, a column reduction the middle one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub is_row: bool,
    pub dims: [i64; 3],
}

impl Reduction {
    /// The reduction of the dims `reduced` of an array of `sizes`, if the reduced dims or the kept dims are contiguous.
    pub fn of(sizes: &[i64], reduced: &[usize]) -> Option<Self> {
        let is_reduced: Vec<bool> = (0..sizes.len()).map(|dim| reduced.contains(&dim)).collect();
        let total: i64 = sizes.iter().fold(1, |sum, &size| sum.saturating_mul(size));
        if is_reduced.iter().all(|&is_reduced| is_reduced) {
            return Some(Self { is_row: true, dims: [1, 1, total] });
        }
        if let Some([major, middle, minor]) = around(sizes, &is_reduced, false) {
            return Some(match (middle, minor) {
                (1, _) => Self { is_row: true, dims: [1, 1, major.saturating_mul(minor)] },
                (_, 1) => Self { is_row: false, dims: [1, major, middle] },
                _ => Self { is_row: true, dims: [major, middle, minor] },
            });
        }
        let [major, middle, minor] = around(sizes, &is_reduced, true)?;
        Some(if minor == 1 {
            Self { is_row: true, dims: [1, major, middle] }
        } else {
            Self { is_row: false, dims: [major, middle, minor] }
        })
    }
    /// Whether it is emitted as a reduction: others are loops over the elements of the result.
    pub const fn is_emitted(&self) -> bool {
        let [_, middle, minor] = self.dims;
        if self.is_row {
            return minor >= WARP || minor > 0 && WARP % minor == 0;
        }
        !(middle < WARP
            || middle < 2 * WARP && minor < WARP
            || middle < 4 * WARP && minor < 8
            || middle < 8 * WARP && minor < 3)
    }
    /// Whether one block of threads computes a whole result element, so that consumers can be fused.
    pub const fn is_race_free(&self) -> bool {
        let [major, middle, minor] = self.dims;
        if self.is_row {
            return minor <= RACE_FREE_ROW && major <= RACE_FREE_BATCH;
        }
        middle <= RACE_FREE_COLUMN
    }
    /// Both steps of a reduction that is too large for one block of threads, and how many elements the first leaves in place of
    /// one: a divisor of the reduced dim, about its square root. `None` of others.
    ///
    /// Source: XLA's `TreeReductionRewriter`.
    pub fn steps(&self) -> Option<([Self; 2], i64)> {
        if !self.is_emitted() || self.is_race_free() {
            return None;
        }
        let [major, middle, minor] = self.dims.map(|size| size.max(1));
        if self.is_row && major > RACE_FREE_BATCH {
            let first = Self { is_row: true, dims: [1, major.saturating_mul(middle), minor] };
            let last = Self { is_row: false, dims: [1, major, middle] };
            return Some(([first, last], major));
        }
        let bound = if self.is_row { RACE_FREE_ROW } else { RACE_FREE_COLUMN };
        let left = steps_left(if self.is_row { minor } else { middle }, bound, self.is_row);
        if !self.is_row {
            let reduced = ceil_div(middle, left);
            let first = Self { is_row: false, dims: [major.saturating_mul(left), reduced, minor] };
            return Some(([first, Self { is_row: false, dims: [major, left, minor] }], left));
        }
        let reduced = ceil_div(minor, left);
        let first = Self { is_row: true, dims: [major, middle.saturating_mul(left), reduced] };
        Some(([first, Self { is_row: true, dims: [1, middle, left] }], left))
    }
    /// Bytes of shared memory, for elements of `element` bytes.
    pub fn shared_bytes(&self, element: f64) -> f64 {
        if self.is_row {
            return 32.0 * element;
        }
        32.0 * (4.0 * 32.0 + 1.0) * element
    }
    /// The number of blocks of threads, and of threads in each.
    pub fn launch(&self) -> (f64, f64) {
        let [major, middle, minor] = self.dims.map(|size| size.max(1));
        if !self.is_row {
            if WARP % minor == 0 {
                return (major as f64, SMALL_COLUMN_THREADS as f64);
            }
            let is_vector = minor % VECTOR == 0 && minor >= WARP * VECTOR;
            let columns = if is_vector { WARP * VECTOR } else { WARP };
            return (major.saturating_mul(ceil_div(minor, columns)) as f64, (WARP * WARP) as f64);
        }
        // A warp reduces several short rows.
        let is_short = minor & (minor - 1) == 0 && minor <= WARP * VECTOR;
        let threads = if is_short {
            ceil_div(minor, VECTOR)
        } else {
            ceil_div(ceil_div(minor, ROW_ELEMENTS), WARP).saturating_mul(WARP).min(MAX_THREADS)
        };
        let rows = (BLOCK_THREADS / threads).clamp(1, middle);
        let parts = if is_short { 1 } else { ceil_div(minor, threads * ROW_ELEMENTS) };
        (ceil_div(middle, rows).saturating_mul(parts) as f64, (threads * rows) as f64)
    }
}

/// How many elements the first of two steps leaves of a dim of `size`, which needs the least padding.
fn steps_left(size: i64, bound: i64, is_row: bool) -> i64 {
    let root = ((size as f64).sqrt() as i64).clamp(1, bound);
    let padding = |part: i64| (part - size % part) % part;
    let mut best = root;
    for part in (root / 2 + 1..root).rev() {
        let is_power = part & (part - 1) == 0;
        if padding(part) < padding(best) || padding(part) == padding(best) && is_power {
            best = part;
        }
    }
    // The step that reduces more comes first, where a block of threads can do that.
    let other = ceil_div(size, best);
    let is_swapped = other <= bound
        && (!is_row
            || if best % 2 == 0 && size % 2 == 0 {
                best.saturating_mul(2) < other || other % 2 == 0
            } else {
                size % 2 == 0 || other % 2 != 0
            });
    if is_swapped {
        best
    } else {
        other
    }
}

/// The sizes before, of, and after the dims whose `is_reduced` equals `reduced`, if these are contiguous.
fn around(sizes: &[i64], is_reduced: &[bool], reduced: bool) -> Option<[i64; 3]> {
    let first = is_reduced.iter().position(|&is| is == reduced)?;
    let last = is_reduced.iter().rposition(|&is| is == reduced)?;
    if is_reduced[first..=last].iter().any(|&is| is != reduced) {
        return None;
    }
    let size =
        |part: &[i64]| part.iter().fold(1_i64, |product, &size| product.saturating_mul(size));
    Some([size(&sizes[..first]), size(&sizes[first..=last]), size(&sizes[last + 1..])])
}

/// How a kernel is emitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hero {
    /// A loop over the elements of the result.
    Loop,
    /// A reduction.
    Reduction(Reduction),
    /// A transpose through this many bytes of shared memory.
    Transpose(f64),
    /// A concatenation of a few arrays.
    Concatenation,
    /// A scatter.
    Scatter,
    /// A tiled kernel: a block of threads holds each row.
    Tiled,
}

/// The effect of a transpose on the order of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transposed {
    /// Bytes of shared memory, if it goes through that.
    pub shared_bytes: Option<f64>,
    /// Whether elements that are adjacent before it are not afterwards.
    pub moves_minor: bool,
}

impl Transposed {
    /// The transpose of an array of `sizes` by `permutation`, whose elements have `element` bytes.
    pub fn of(sizes: &[i64], permutation: &[usize], element: f64) -> Self {
        // Dims that stay side by side are one; those of size 1 are none.
        let kept: Vec<usize> = permutation
            .iter()
            .copied()
            .filter(|&dim| sizes.get(dim).is_some_and(|&size| size != 1))
            .collect();
        let rank = |dim: usize| kept.iter().filter(|&&other| other < dim).count();
        let mut groups: Vec<(usize, i64)> = Vec::new();
        let mut last = usize::MAX;
        for &dim in &kept {
            let (place, size) = (rank(dim), sizes[dim]);
            match groups.last_mut() {
                Some((_, whole)) if place == last.wrapping_add(1) => {
                    *whole = whole.saturating_mul(size);
                }
                _ => groups.push((place, size)),
            }
            last = place;
        }
        let count = groups.len();
        let is_same = groups.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if count < 2 || is_same {
            return Self { shared_bytes: None, moves_minor: false };
        }
        let minor_before = groups.iter().max_by_key(|group| group.0).map_or(1, |group| group.1);
        let minor_after = groups[count - 1].1;
        let moves_minor = groups[count - 1].0 < groups.iter().map(|it| it.0).max().unwrap_or(0);
        let shared = if moves_minor {
            let (least, most) =
                (minor_before.min(minor_after), minor_before.saturating_mul(minor_after));
            let is_tiled = least >= LEAST_TRANSPOSED
                || least >= LEAST_TRANSPOSED_OF_LARGE && most >= LARGE_TRANSPOSED;
            let mut places: Vec<usize> = groups.iter().map(|group| group.0).collect();
            places.sort_unstable();
            // The dim before the minor one of the result, if it is there in the operand, too.
            let next = count.checked_sub(3).map(|at| at + 1);
            let next = next.filter(|&at| groups[at].0 == places[at]).map_or(1, |at| groups[at].1);
            packed_bytes(element, [next, minor_before, minor_after])
                .or_else(|| is_tiled.then_some(32.0 * 33.0 * element))
        } else {
            let bits = element * 8.0 * minor_after as f64;
            let mut places: Vec<(usize, i64)> = groups.clone();
            places.sort_unstable();
            let before = places[count - 2].1.min(groups[count - 2].1) as f64;
            let is_tiled = bits <= 64.0 && bits * before >= 128.0;
            is_tiled.then_some(32.0 * 33.0 * element * minor_after as f64)
        };
        Self { shared_bytes: shared, moves_minor }
    }
}

/// Bytes of shared memory of a transpose of elements of less than four bytes, several of which are in a word of it; `None` if too few
/// words are filled. The dims are the minor ones of operand and result, and the one before, if it stays there.
///
/// Source: XLA's `GetPackedTransposeTileSizes`.
fn packed_bytes(element: f64, [next, before, after]: [i64; 3]) -> Option<f64> {
    if !(0.5..4.0).contains(&element) {
        return None;
    }
    let packed = (4.0 / element) as i64;
    let width = 32 * packed;
    let (tile, rows) = (before.min(width), after.min(width));
    let columns = next.min(width / tile.max(1)).saturating_mul(tile);
    let is_whole = |size: i64| size % packed == 0;
    let is_filled = rows.min(columns) >= 10 * packed;
    (is_filled && is_whole(rows) && is_whole(columns) && is_whole(after % rows))
        .then_some((width * 128) as f64)
}

#[cfg(test)]
mod tests {
    use super::Transposed;

    #[test]
    fn elements_of_two_bytes_are_tiled_if_they_fill_words() {
        let tiled = |sizes: &[i64], order: &[usize], element: f64| {
            Transposed::of(sizes, order, element).shared_bytes
        };
        let scores = [4, 2048, 2048, 4];
        assert_eq!(tiled(&scores, &[0, 3, 2, 1], 2.0), Some(8192.0));
        assert_eq!(tiled(&scores, &[0, 3, 2, 1], 4.0), None);
        // Too few columns: the dim before the minor one moves.
        assert_eq!(tiled(&scores, &[0, 1, 3, 2], 2.0), None);
        assert_eq!(tiled(&[64, 64], &[1, 0], 4.0), Some(32.0 * 33.0 * 4.0));
    }
}
