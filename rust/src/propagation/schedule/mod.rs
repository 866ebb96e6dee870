//! In which order visits are made: the worklist, user priorities, and the ops that leave it.

pub mod dead_ops;
pub mod effects;
pub mod func_results;
pub mod queue;
pub mod user_priority;
