//! The peaks of memory of a program's figures, by compiler and memory, computed when they are asked for.

use crate::compilers::target::Compiler;
use crate::cost::local::Local;
use crate::cost::memory::Peak;
use crate::cost::{local_peak, ProgramCost};
use crate::work::spaces::Space;
use std::sync::OnceLock;

/// By compiler, in the memory of the device and in that of its host.
#[derive(Default)]
pub(super) struct Peaks([[OnceLock<Peak>; 2]; Compiler::ALL.len()]);

impl Peaks {
    /// That of the program of `local`, given its `cost`, as the compiler called `compiler` has it.
    pub(super) fn of(
        &self,
        (local, cost): (Local<'_>, &ProgramCost),
        compiler: &str,
        on_host: bool,
    ) -> &Peak {
        let compiler = compiler_named(compiler);
        let space = if on_host { Space::Host } else { Space::Device };
        let make = || local_peak(local, cost, (compiler, space));
        self.0[compiler as usize][usize::from(on_host)].get_or_init(make)
    }
}

/// The compiler called `name`; Python has checked that there is one.
pub(super) fn compiler_named(name: &str) -> Compiler {
    Compiler::named(name).unwrap_or_default()
}
