//! The order in which the reference iterates over the factors of a tensor.

use crate::index::{FactorId, Id};

/// Sorts factors of one tensor into the order in which the reference iterates over them; the rule has
/// `num_factors`.
///
/// The reference keeps them in a hash table whose number of buckets is a power of two, at least 64,
/// and more than 4/3 of the number of factors; factor `i` has bucket `37 * i`. The order is
/// observable only if axes are split in ways that do not nest.
pub fn sort_by_bucket<T>(
    factors: &mut [T],
    num_factors: usize,
    factor_of: impl Fn(&T) -> FactorId,
) {
    let buckets = (num_factors * 4 / 3 + 2).next_power_of_two().max(64);
    factors.sort_by_key(|factor| factor_of(factor).index() * 37 % buckets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_stand_in_the_order_of_their_buckets() {
        let mut factors: Vec<FactorId> = (0..3).map(FactorId::from_index).collect();
        sort_by_bucket(&mut factors, 3, |&factor| factor);
        assert_eq!(factors.into_iter().map(Id::index).collect::<Vec<_>>(), [0, 2, 1]);
    }
}
