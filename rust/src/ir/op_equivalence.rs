//! Equivalence classes of ops that are equal except for their shardings and operands, for programs
//! that are completed many times from different shardings.

use crate::index::OpId;

/// Ops in pre-order, each with the number of its equivalence class.
#[derive(Clone, Debug, Default)]
pub struct AlikeOps {
    /// The ops and their classes, which are below `num_classes`.
    pub ops: Vec<(OpId, u32)>,
    /// How many classes there are.
    pub num_classes: usize,
}
