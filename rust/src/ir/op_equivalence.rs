//! Classes of ops that are equal but for their shardings and operands, for those who complete one program again and again
//! from different shardings.

use crate::index::OpId;

/// Ops of a program that are alike, in pre-order, each with the number of its class.
#[derive(Clone, Debug, Default)]
pub struct AlikeOps {
    /// The ops and their classes, which are below `num_classes`.
    pub ops: Vec<(OpId, u32)>,
    /// How many classes there are.
    pub num_classes: usize,
}
