//! The orders of dims in which ops read their operands, and the copies that these take.
//!
//! Source: XLA's `LayoutAssignment`.

pub mod dim_orders;
pub mod operand_copies;
mod transposes;
