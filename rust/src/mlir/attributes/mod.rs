//! Attribute values: what the text of an attribute means, and the attributes of an op whichever way it
//! is written.

mod conv_dims;
mod cursor;
mod elements;
mod op;
mod reader;
mod value;

pub use elements::element_bytes;
pub use op::{attributes, op_attribute, op_attributes, signature_attributes};
pub use value::{AttrValue, Fields};
