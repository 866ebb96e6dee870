//! Buffer assignment: the live range of each value, and the buffer that it is in.
//!
//! Source: XLA's `BufferAssignment` and `HeapSimulator`.

pub(crate) mod heap;
pub mod lifetimes;
pub(crate) mod live_bytes;
pub(crate) mod liveness;
pub(crate) mod occupied_spans;
pub(crate) mod output_buffers;
pub(crate) mod results;
pub(crate) mod scheduled;
