//! How the shardings of a run came about.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`trace`] | every change of a sharding, from which the shardings of any time follow |
//! | [`steps`] | which steps brought an axis to a tensor |
//! | [`absent`] | why an axis is not on a dim |
//! | [`order`] | which of two axes propagated first |

mod absent;
mod order;
mod steps;
mod trace;

pub use absent::{Absence, Code, Neighbours, Place};
pub use steps::{part_in, AxisName, Explanation, Path, Step, Through};
pub use trace::Trace;
