//! Layouts in which loops carry values, other than those of the values: found by [`super::loop_layouts`].

use super::dim_orders::DimOrder;
use crate::index::{OpId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The layouts of what loops carry, other than its own.
#[derive(Clone, Debug, Default)]
pub struct CarriedLayouts {
    /// Values in the bodies of loops, with the order of their dims in memory.
    pub orders: FxHashMap<ValueId, DimOrder>,
    /// For each loop its operands, by index, that are copied into the order in which they are carried.
    pub copied: FxHashMap<OpId, FxHashMap<usize, DimOrder>>,
    /// The results of loops that are copied into their own order.
    pub restored: FxHashSet<ValueId>,
    /// Slices that only dots read, which take them in.
    pub sliced: Vec<ValueId>,
}

impl CarriedLayouts {
    /// Whether `value` is in another order than its own.
    pub fn is_moved(&self, value: ValueId) -> bool {
        self.orders.contains_key(&value)
    }
    /// The order in which the loop `op` carries its operand `index`, if that is copied.
    pub fn copied(&self, op: OpId, index: usize) -> Option<&DimOrder> {
        self.copied.get(&op)?.get(&index)
    }
    /// Whether `op`, which is opaque to fusion or not, may read copies of its operands.
    pub fn may_copy(&self, op: OpId, is_opaque: bool) -> bool {
        is_opaque || self.copied.contains_key(&op)
    }
}
