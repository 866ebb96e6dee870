//! Times that can be compared and sorted.

/// A time in seconds, which is never NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seconds(pub f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
