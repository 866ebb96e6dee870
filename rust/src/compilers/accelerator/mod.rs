//! A plain model of a compiler for accelerators: fusion, and the order in which ops run.

pub mod fusion;
pub mod schedule;
