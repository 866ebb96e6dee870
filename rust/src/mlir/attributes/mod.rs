//! Attribute values: parses attribute text, and lists the attributes of an op in generic or custom
//! syntax.

mod conv_dims;
mod cursor;
mod elements;
mod generic_names;
mod kind;
mod op;
mod reader;
mod value;
mod window;

pub use elements::element_bytes;
pub use kind::{past_space, text_is_of, OwnKind};
pub use op::{attributes, op_attribute, op_attributes, signature_attributes};
pub use value::{AttrValue, Field, Fields};
