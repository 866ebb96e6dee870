//! Replica groups of very many devices as products of strides and sizes (digits), instead of lists of ids.
//!
//! `"digits 8x2 1x4"`: devices of a group differ in the digits whose values are 8 and 1 positions apart, of which there are 2
//! and 4. It stands for lists of devices in per-device programs that are counted and not run.

use std::fmt::Write;

const PREFIX: &str = "digits";

/// The text for digits of these strides and sizes.
pub fn write_digit_groups(digits: impl IntoIterator<Item = (i64, i64)>) -> String {
    let mut text = PREFIX.to_owned();
    for (stride, size) in digits {
        let _ = write!(text, " {stride}x{size}");
    }
    text
}

/// The strides and sizes in `text`; `None` if it is no such text.
pub fn parse_digit_groups(text: &str) -> Option<Vec<(i64, i64)>> {
    let digit = |word: &str| {
        let (stride, size) = word.split_once('x')?;
        Some((stride.parse().ok()?, size.parse().ok()?))
    };
    text.strip_prefix(PREFIX)?.split_whitespace().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back() {
        for digits in [vec![], vec![(8, 2), (1, 1 << 40)]] {
            assert_eq!(parse_digit_groups(&write_digit_groups(digits.clone())), Some(digits));
        }
        assert_eq!(parse_digit_groups("dense<0>"), None);
    }
}
