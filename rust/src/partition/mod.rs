//! What the partitioner adds to the program: reshards, and the collectives that they are made of.
//!
//! Source: Shardy's export passes from `sdy-insert-explicit-reshards` on.

pub mod canonicalize;
