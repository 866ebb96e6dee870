//! Which ops of a program are alike but for their shardings, for those who complete it with one set of shardings after another.

use crate::index::OpId;

/// Ops of a program that are alike, in pre-order, each with the number of its class.
#[derive(Clone, Debug, Default)]
pub struct AlikeOps {
    /// The ops and their classes, which are below `num_classes`.
    pub ops: Vec<(OpId, u32)>,
    /// How many classes there are.
    pub num_classes: usize,
}
