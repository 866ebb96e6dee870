//! Layout assignment: the layouts in which ops read their operands, and the copies for that.
//!
//! Source: XLA's `LayoutAssignment`.

pub mod carried_layouts;
pub mod dim_orders;
pub mod loop_layouts;
pub mod operand_copies;
pub mod product_orders;
mod product_transposes;
mod reordered;
mod transposes;
