//! Attribute values: what the text of an attribute means, and the attributes of an op whichever way it
//! is written.

mod conv_dims;
mod cursor;
mod op;
mod reader;
mod value;

pub use op::{attributes, op_attribute, signature_attributes};
pub use value::{AttrValue, Fields};
