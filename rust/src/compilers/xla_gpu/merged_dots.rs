//! Which dots are merged into one ([`super::dot_merger`]).

use crate::index::OpId;
use rustc_hash::FxHashMap;

/// The dots that are merged, and what they are merged to.
#[derive(Clone, Debug, Default)]
pub struct MergedDots {
    /// The dots of each merged one.
    pub groups: Vec<Vec<OpId>>,
    /// Each of them as a part of the merged one.
    pub parts: FxHashMap<OpId, Part>,
}

/// A dot as a part of a merged one.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The index of its group.
    pub group: u32,
    /// The index of the operand that it does not share.
    pub side: usize,
    /// The elements of the dims of that operand that are neither contracted nor batch dims, of all parts.
    pub all: u128,
    /// Whether the concatenation of the operands is a kernel of its own.
    pub is_concatenated: bool,
}
