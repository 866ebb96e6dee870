//! A model of a compiler for accelerators: which values it fuses away, and the order in which ops run.

pub mod fusion;
pub mod schedule;
