//! Digits of a device's position, which correspond to axes and sub-axes.
//!
//! A mesh numbers its devices by position, row-major in its axes. The coordinate along an axis or sub-axis is a
//! digit of that number: `(position / stride) % size`. Digits have no names, so that shardings over different
//! meshes of the same devices can be compared: `"x"` of `<["x"=8]>` is `"a", "b"` of `<["a"=2, "b"=4]>`.

use crate::axis::AxisRef;
use crate::layout::stride;
use crate::mesh::Mesh;
use crate::projection::gcd;

/// A digit of a device's position, `(position / stride) % size`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Digit {
    /// The distance of positions whose digits differ by one.
    pub stride: i64,
    /// The number of its values.
    pub size: i64,
}

impl Digit {
    /// The digit of `axis` of `mesh`.
    pub fn of_axis(axis: AxisRef, mesh: &Mesh) -> Self {
        Self { stride: stride(axis, mesh), size: axis.size(mesh) }
    }
    /// Whether a tensor can be sharded along both digits: all pairs of their values occur equally often.
    pub const fn is_apart(self, other: Self) -> bool {
        if self.stride < other.stride {
            self.end() <= other.stride && other.stride % self.end() == 0
        } else {
            other.end() <= self.stride && self.stride % other.end() == 0
        }
    }
    /// Its value at `position`.
    pub const fn value(self, position: i64) -> i64 {
        position / self.stride % self.size
    }
    /// The stride of the digit right above it.
    pub const fn end(self) -> i64 {
        self.stride * self.size
    }
}

/// The digits of `axes`, major to minor, without those of size 1; consecutive sub-axes of one axis are merged.
pub fn digits_of(axes: &[AxisRef], mesh: &Mesh) -> Vec<Digit> {
    let digits = axes.iter().map(|&axis| Digit::of_axis(axis, mesh));
    merged(digits.filter(|digit| digit.size != 1))
}

/// The digits, with consecutive ones merged that form one digit.
pub fn merged(digits: impl IntoIterator<Item = Digit>) -> Vec<Digit> {
    let mut merged: Vec<Digit> = Vec::new();
    for digit in digits {
        match merged.last_mut() {
            Some(last) if last.stride == digit.end() => {
                *last = Digit { stride: digit.stride, size: last.size * digit.size };
            }
            _ => merged.push(digit),
        }
    }
    merged
}

/// The product of the sizes of the digits, saturating.
pub fn total_size(digits: &[Digit]) -> i64 {
    digits.iter().fold(1i64, |product, digit| product.saturating_mul(digit.size))
}

/// The number that the digits form at `position`, the first one being the major one.
pub fn number_at(digits: &[Digit], position: i64) -> i64 {
    digits.iter().fold(0, |number, digit| number * digit.size + digit.value(position))
}

/// Takes `digit` out of `from`, parts of which may be left above and below.
pub fn remove(from: &mut Vec<Digit>, digit: Digit) -> Option<()> {
    let holds = |row: &Digit| row.stride <= digit.stride && digit.end() <= row.end();
    let at = from.iter().position(holds)?;
    let row = from[at];
    if digit.stride % row.stride != 0 || row.end() % digit.end() != 0 {
        return None;
    }
    let above = Digit { stride: digit.end(), size: row.end() / digit.end() };
    let below = Digit { stride: row.stride, size: digit.stride / row.stride };
    from.splice(at..=at, [above, below].into_iter().filter(|digit| digit.size > 1));
    Some(())
}

/// Strides at which digits are split, so that any two of the parts are equal or do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Cuts(Vec<i64>);

/// The largest prime into which digits are cut.
const LARGEST_PRIME: i64 = 97;

impl Cuts {
    /// The cuts of all `digits`; `None` where sub-axes do not nest, as those of size 2 and 3 of an axis of 6, or where two
    /// cannot be sharded along at once, as the digits of size 4 of `<["a"=3, "b"=4]>` and of size 2 of `<["c"=2, "d"=6]>`:
    /// not all pairs of their values occur equally often.
    pub fn of(digits: impl IntoIterator<Item = Digit>) -> Option<Self> {
        let ends = digits.into_iter().flat_map(|digit| [digit.stride, digit.end()]);
        let mut cuts: Vec<i64> = ends.collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).all(|pair| pair[1] % pair[0] == 0).then_some(Self(cuts))
    }
    /// The parts of `digit`, major to minor, cut where `others` begin or end, or have parts in common with it, as far as each
    /// part divides the next. Of an axis of size 12 the major 6 and the major 4 have the major 2 in common.
    pub fn common(digit: Digit, others: impl IntoIterator<Item = Digit>) -> Vec<Digit> {
        let mut ends: Vec<i64> = Vec::new();
        for other in others {
            let start = other.stride / gcd(digit.stride, other.stride);
            ends.extend([other.stride, other.end(), gcd(digit.end(), other.end())]);
            ends.extend(digit.stride.checked_mul(start));
        }
        ends.sort_unstable();
        let (mut parts, mut below) = (Vec::new(), digit.stride);
        for end in ends.into_iter().chain([digit.end()]) {
            if end > below && end % below == 0 && digit.end() % end == 0 {
                parts.push(Digit { stride: below, size: end / below });
                below = end;
            }
        }
        parts.reverse();
        parts
    }
    /// The cuts with parts of prime size, the major ones the smallest; large primes are not looked for.
    #[must_use]
    pub fn into_primes(self) -> Self {
        let mut cuts = self.0.clone();
        for pair in self.0.windows(2) {
            let (start, mut end) = (pair[0], pair[1]);
            let mut prime = 2;
            while prime <= LARGEST_PRIME && end / start > prime {
                if (end / start) % prime == 0 {
                    end /= prime;
                    cuts.push(end);
                } else {
                    prime += 1;
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        Self(cuts)
    }
    /// The cuts inside `digit`; there are none in a digit of size 1, which ends where it starts.
    fn inside(&self, digit: Digit) -> &[i64] {
        let start = self.0.partition_point(|&cut| cut <= digit.stride);
        let end = self.0.partition_point(|&cut| cut < digit.end());
        self.0.get(start..end).unwrap_or_default()
    }
    /// The parts of `digits`, major to minor.
    pub fn split(&self, digits: &[Digit]) -> Vec<Digit> {
        let mut parts = Vec::with_capacity(digits.len());
        for &digit in digits {
            let mut end = digit.end();
            for &cut in self.inside(digit).iter().rev() {
                parts.push(Digit { stride: cut, size: end / cut });
                end = cut;
            }
            parts.push(Digit { stride: digit.stride, size: end / digit.stride });
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn digit(stride: i64, size: i64) -> Digit {
        Digit { stride, size }
    }

    #[test]
    fn digits_are_cut_where_others_end() {
        let (all, major, minor) = (digit(1, 8), digit(4, 2), digit(1, 4));
        let cuts = Cuts::of([all, major, minor]).unwrap();
        assert_eq!(cuts.split(&[all]), [major, minor]);
        assert_eq!(cuts.split(&[minor, major]), [minor, major]);
        assert_eq!(merged(cuts.split(&[all])), [all]);
        assert_eq!(merged([minor, major]), [minor, major]);
    }

    #[test]
    fn parts_that_do_not_nest_have_no_cuts() {
        // Of an axis of size 6, the major 2 and the major 3.
        assert!(Cuts::of([digit(3, 2), digit(2, 3)]).is_none());
        assert!(Cuts::of([digit(3, 2), digit(1, 3)]).is_some());
        // Of twelve devices those of even halves have the minor 4 at other places than those of odd ones.
        assert!(Cuts::of([digit(6, 2), digit(1, 4)]).is_none());
        assert!(!digit(6, 2).is_apart(digit(1, 4)) && !digit(1, 4).is_apart(digit(6, 2)));
        assert!(digit(6, 2).is_apart(digit(1, 3)) && digit(2, 3).is_apart(digit(6, 2)));
        assert!(!digit(3, 2).is_apart(digit(2, 3)));
    }

    #[test]
    fn parts_in_common_are_cut_off() {
        // Of an axis of size 12: the major 6 and the major 4, the minor 4 and the minor 6.
        assert_eq!(Cuts::common(digit(2, 6), [digit(3, 4)]), [digit(6, 2), digit(2, 3)]);
        assert_eq!(Cuts::common(digit(1, 4), [digit(1, 6)]), [digit(2, 2), digit(1, 2)]);
        assert_eq!(Cuts::common(digit(3, 2), [digit(2, 3)]), [digit(3, 2)]);
        assert_eq!(Cuts::common(digit(1, 1), [digit(1, 2)]), []);
    }

    #[test]
    fn numbers_are_mixed_radix() {
        // Mesh 2x4, dims over "y" then "x": position 6 is x=1, y=2.
        let (x, y) = (digit(4, 2), digit(1, 4));
        assert_eq!(number_at(&[y, x], 6), 2 * 2 + 1);
        assert_eq!(number_at(&[x, y], 6), 6);
        assert_eq!(total_size(&[x, y]), 8);
    }
}
