//! Compilers of per-device programs: which kernels they make of the ops, in which order these run, and what they keep in memory.
//!
//! [`xla_cpu`] follows XLA's compiler for hosts pass by pass; of the compilers for GPUs and TPUs it has the passes that they share with
//! that, and [`memory_scheduler`], [`xla_gpu`] and [`xla_tpu`] have those that only they run. [`target`] tells compilers apart, [`compilation`] is what one is asked. [`accelerator`] is a plain
//! model of fusion and scheduling, from which times are computed where kernels are not known.

pub mod accelerator;
pub mod compilation;
pub mod memory_scheduler;
pub mod target;
pub mod xla_cpu;
pub mod xla_gpu;
pub mod xla_tpu;

use crate::index::ValueId;

/// A value that is live at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The value.
    pub value: ValueId,
    /// Its bytes on one device.
    pub bytes: u128,
}
