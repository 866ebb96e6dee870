//! Memory over time: when each value is in memory, and where.
//!
//! Source: XLA's `BufferAssignment` and `HeapSimulator`.

pub(crate) mod heap;
pub mod lifetimes;
pub(crate) mod live_bytes;
pub(crate) mod liveness;
pub(crate) mod occupied_spans;
pub(crate) mod output_buffers;
mod scheduled;
