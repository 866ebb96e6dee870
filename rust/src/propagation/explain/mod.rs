//! How the shardings of a run came about.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`trace`] | every change of a sharding, from which the shardings of any time follow |
//! | [`runs`] | what each greedy run changed |
//! | [`steps`] | which steps brought an axis to a tensor |
//! | [`absent`] | why an axis is not on a dim |
//! | [`reason`] | the reasons, and the places that they name |
//! | [`order`] | which of two axes propagated first |

mod absent;
mod order;
mod reason;
mod runs;
mod steps;
mod trace;

pub use absent::Neighbours;
pub use reason::{Absence, Code, Place};
pub use runs::RunVisits;
pub use steps::{part_in, AxisName, Explanation, Path, Step, Through};
pub use trace::Trace;
