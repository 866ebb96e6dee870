//! The call graph of a program, and its functions inlined into their callers.

pub mod call_graph;
pub mod call_inliner;
pub mod host_calls;
