//! Memory over time: when each value is in memory, and where.
//!
//! Source: XLA's `BufferAssignment` and `HeapSimulator`.

pub(super) mod heap;
pub mod lifetimes;
pub(super) mod live_bytes;
pub(super) mod liveness;
pub(super) mod occupied_spans;
pub(super) mod output_buffers;
