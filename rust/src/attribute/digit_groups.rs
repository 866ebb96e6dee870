//! Replica groups of very many devices in compact form: as strides and sizes of digits, instead of
//! lists of ids.
//!
//! In `"digits 8x2 1x4"`, the devices of a group differ in two digits: one with stride 8 and 2
//! values, and one with stride 1 and 4 values. This form replaces lists of devices in per-device
//! programs whose cost is computed, and which are not run.

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

/// The strides and sizes in `text`; `None` if it is not in this form.
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
