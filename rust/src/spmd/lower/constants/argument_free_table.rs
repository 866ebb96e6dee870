//! The table of values that depend on no argument, which [`super::argument_free`] fills.

use crate::index::{OpId, ValueId};
use rustc_hash::FxHashMap;

/// Values that every device computes whole.
#[derive(Default)]
pub(in crate::spmd::lower) struct WholeValues {
    /// For values of the source program the copies that are whole.
    pub whole: FxHashMap<ValueId, ValueId>,
    /// The copies of ops that compute them, in order.
    pub copies: Vec<OpId>,
}
