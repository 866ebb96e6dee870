//! The work of a program: flops, transcendentals and bytes of each op, and how often each op runs.
//!
//! 1. [`ops`]: the work of an op, by family of ops; [`cached`]: once for all ops of a signature with the same local shapes.
//! 2. [`tensors`]: shape, elements and bytes of values.
//! 3. [`spaces`]: which values are in host memory, and what is copied between host and device.
//! 4. [`execution`]: the number of runs of each block; [`trips`](mod@crate::stablehlo::trips) has the trip counts of loops.

pub mod cached;
pub mod execution;
pub mod ops;
pub(crate) mod seconds;
pub mod spaces;
pub mod tensors;
