//! Models of the compilers of per-device programs: the kernels that they make of the ops, the order of these, and buffer
//! assignment.
//!
//! [`xla_cpu`] models XLA:CPU pass by pass, and holds the passes that XLA:GPU and XLA:TPU share with it; [`memory_scheduler`],
//! [`latency_hiding_scheduler`], [`xla_gpu`] and [`xla_tpu`] hold the passes that only those run. [`target`] tells the compilers apart, [`compilation`] is a
//! request to one of them. [`accelerator`] is a plain model of fusion and scheduling, from which times are computed where the
//! kernels are not modelled.

pub mod accelerator;
pub mod compilation;
pub mod latency_hiding_scheduler;
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
