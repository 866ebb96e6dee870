//! Source locations: from values to the user's program, and back.

pub(super) mod innermost;
mod places;

pub use places::Frame;
