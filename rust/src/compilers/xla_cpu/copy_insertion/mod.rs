//! Copies of values whose buffer is overwritten while they are live.
//!
//! Source: XLA's `CopyInsertion`.

pub mod copies;
pub mod donated_arguments;
pub mod in_place_updates;
pub mod reads_before_writes;
pub mod returned_arguments;
