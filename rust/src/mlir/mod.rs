//! MLIR text.

mod attr_cursor;
pub mod attr_value;
mod conv_dims;
mod op_attributes;

pub use op_attributes::{attributes, signature_attributes};
