//! The figures of a program that depend on the compiler, computed when first needed.

use crate::compilers::compilation::{ChipFacts, Known};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::buffer_assignment::lifetimes::Lifetimes;
use crate::cost::kernels::{local_kernels, Kernel};
use crate::cost::local::Local;
use crate::cost::memory::Peak;
use crate::cost::steps::Step;
use crate::cost::{local_least_peak, local_lifetimes, local_peak, local_steps, ProgramCost};
use crate::work::ops::estimate::Estimates;
use crate::work::spaces::Space;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// The figures for each compiler.
#[derive(Default)]
pub(super) struct Compiled {
    /// What it knows of the chip.
    facts: ChipFacts,
    /// In the memory of the device, and in that of its host.
    peaks: [[OnceLock<Peak>; 2]; Compiler::ALL.len()],
    least_peaks: [OnceLock<u128>; Compiler::ALL.len()],
    steps: [OnceLock<Vec<Step>>; Compiler::ALL.len()],
    kernels: [OnceLock<Vec<Kernel>>; Compiler::ALL.len()],
}

impl Compiled {
    /// The figures of a program on such a chip.
    pub(super) fn new(facts: ChipFacts) -> Self {
        Self { facts, ..Self::default() }
    }
    /// The peak of the program of `local`, given its `cost`.
    pub(super) fn peak(
        &self,
        (local, cost): (Local<'_>, &ProgramCost),
        compiler: &str,
        on_host: bool,
    ) -> &Peak {
        let compiler = compiler_named(compiler);
        let space = if on_host { Space::Host } else { Space::Device };
        let make = || local_peak(local, cost, (compiler, self.facts), space);
        self.peaks[compiler as usize][usize::from(on_host)].get_or_init(make)
    }
    /// The peak of the program of `local` in the better of two orders.
    pub(super) fn least_peak(&self, local: Local<'_>, compiler: &str) -> u128 {
        let compiler = compiler_named(compiler);
        let make = || local_least_peak(local, compiler);
        *self.least_peaks[compiler as usize].get_or_init(make)
    }
    /// Its steps.
    pub(super) fn steps(
        &self,
        (local, estimates): (Local<'_>, &Estimates),
        compiler: &str,
    ) -> &[Step] {
        let compiler = compiler_named(compiler);
        let make = || local_steps(local, estimates, (compiler, self.facts));
        self.steps[compiler as usize].get_or_init(make)
    }
    /// The live ranges of its buffers.
    pub(super) fn lifetimes(
        &self,
        (local, cost): (Local<'_>, &ProgramCost),
        compiler: &str,
    ) -> Lifetimes {
        local_lifetimes(local, cost, (compiler_named(compiler), self.facts))
    }
    /// Its kernels.
    pub(super) fn kernels(
        &self,
        (local, estimates): (Local<'_>, &Estimates),
        known: &Known,
        compiler: &str,
    ) -> &[Kernel] {
        let compiler = compiler_named(compiler);
        let make = || local_kernels(local, estimates, (compiler, self.facts), known);
        self.kernels[compiler as usize].get_or_init(make)
    }
}

/// The passes on collectives of the compiler called `name`, with commas between.
#[pyfunction]
pub(super) fn collective_passes(name: &str) -> &'static str {
    compiler_named(name).collective_passes()
}

/// The compiler called `name`; Python has checked that it exists.
pub(super) fn compiler_named(name: &str) -> Compiler {
    Compiler::named(name).unwrap_or_default()
}
