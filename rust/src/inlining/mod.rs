//! The call graph of a program, and its functions inlined into their callers.

pub mod call_graph;
pub mod inline;
