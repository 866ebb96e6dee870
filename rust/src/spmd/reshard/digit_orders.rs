//! The orders in which several digits can shard one dim.

use super::super::digits::Digit;

/// Calls `each` with all orders of `digits` but their own.
pub(super) fn orders(digits: &[Digit], each: &mut impl FnMut(Vec<Digit>)) {
    fn go(digits: &[Digit], order: &mut Vec<usize>, each: &mut impl FnMut(Vec<Digit>)) {
        if order.len() == digits.len() {
            if !order.is_sorted() {
                each(order.iter().map(|&index| digits[index]).collect());
            }
            return;
        }
        for index in 0..digits.len() {
            if !order.contains(&index) {
                order.push(index);
                go(digits, order, each);
                order.pop();
            }
        }
    }
    go(digits, &mut Vec::with_capacity(digits.len()), each);
}
