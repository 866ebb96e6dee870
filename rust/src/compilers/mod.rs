//! Compilers of per-device programs: which kernels they make of the ops, in which order these run, and what they keep in memory.
//!
//! [`xla_cpu`] follows XLA's compiler for hosts pass by pass; [`accelerator`] is a plain model of fusion and scheduling for chips.

pub mod accelerator;
pub mod xla_cpu;

use crate::index::ValueId;

/// A value that is live at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The value.
    pub value: ValueId,
    /// Its bytes on one device.
    pub bytes: u128,
}
