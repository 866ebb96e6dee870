//! A program on which one thread runs passes in place while other threads read it.
//!
//! # The state of a module while a pass manager runs on it
//!
//! A module has a *last state*: the program as it was parsed, or as the last successful run left
//! it.
//!
//! 1. **Readers see the last state**, in any thread, and also in functions that a run calls:
//!    progress callbacks, rules, signal handlers. They never see a program that passes are
//!    changing, they do not wait for the run, and they never fail because of it. Objects that a
//!    reader has do not change.
//! 2. **One run at a time.** A second run on the same module, from another thread or from a
//!    callback of the run, is rejected at once with `busy`. It does not wait, so runs cannot
//!    deadlock. Runs on different modules are independent; to run passes on one program in several
//!    threads, give each thread a copy. A copy takes constant time until passes run on it.
//! 3. **A run that fails changes nothing**, whether by an error, an exception in a callback or an
//!    interrupt: the last state is kept, and the next run starts from it.
//! 4. A successful run makes its program the last state atomically.
//! 5. **Nothing in shardcore waits for a user's function to return.** A thread that needs a value
//!    that another thread computes waits only while that thread is inside shardcore.
//!
//! A run takes the program out of its module instead of copying it, since a copy would take as long
//! as a typical pass and twice the memory. If the module is read during the run, or after a run
//! that failed, one thread rebuilds the program, see [`origin`], and others wait for it. A program
//! that is referenced elsewhere (by values of modules), or that was run more than 16 times, is
//! copied instead.
//!
//! [`slot`] holds the state, and is the only file with a lock; `tests/loom` runs it in every
//! interleaving of threads, and `tests/unit/test_threads.py` tests modules in many threads.

mod origin;
mod slot;
mod sync;

use crate::error::{Code, Diagnostic, Error, Result};
use crate::ir::{Program, Source};
use crate::memory;
pub use origin::{Maker, Origin, Step};
pub use slot::{Read, Ticket};
use slot::{Run, Slot, Taken};
use std::sync::Arc;

/// A program with a last state and at most one run in progress.
pub struct Module {
    slot: Slot<Program, Origin>,
}

impl Module {
    /// A module of a program that cannot be rebuilt.
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        Self { slot: Slot::new(program.into(), None) }
    }
    /// A module of `program`, which was parsed from `source`.
    pub fn parsed(program: Program, source: Source) -> Self {
        let origin = Origin::new(source, program.shardy());
        Self { slot: Slot::new(Arc::new(program), Some(Arc::new(origin))) }
    }
    /// A module of `program`, which `make` can make again.
    pub fn made_by(program: Program, make: Arc<Maker>) -> Self {
        Self { slot: Slot::new(Arc::new(program), Some(Arc::new(Origin::made_by(make)))) }
    }
    /// Takes the program out, if there are no other references to it and it can be made again; a
    /// later reader of the module makes it again.
    pub fn give(&self) -> Option<Program> {
        match self.slot.take() {
            Taken::Owned(program) => Some(program),
            Taken::Shared(_) | Taken::Absent => None,
        }
    }
    /// A module with the last state of this one, which both share.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { slot: self.slot.share() }
    }
    /// The last state, or how to get it.
    pub fn read(&self) -> Read<Program, Origin> {
        self.slot.read()
    }
    /// Stores the program that was rebuilt for `ticket`; `None` if that failed.
    pub fn made(&self, ticket: &Ticket<Origin>, program: Option<Program>) -> Option<Arc<Program>> {
        self.slot.made(ticket, program.map(Arc::new))
    }
    /// Begins a run, which ends when the guard is dropped or [`RunOnModule::finish`]ed; an error if
    /// another run is in progress.
    pub fn begin(&self) -> Result<RunOnModule<'_>> {
        match self.slot.begin() {
            Some(run) => Ok(RunOnModule { module: self, run }),
            None => Err(busy("a pass manager is running on this module already")),
        }
    }
}

/// The error for a second run.
fn busy(message: &str) -> Error {
    let hint = "wait until that run is over, or run on a copy: copy.copy(module)";
    Diagnostic::new(Code::Busy, message).with_hint(hint).into()
}

/// A run on a module.
pub struct RunOnModule<'a> {
    module: &'a Module,
    run: Run,
}

impl RunOnModule<'_> {
    /// The program to run passes on; `None` if it has to be rebuilt first, see [`Module::read`].
    ///
    /// # Errors
    /// It has to be copied, and there is no memory for a copy.
    pub fn take(&self) -> Result<Option<Program>> {
        Ok(match self.module.slot.take() {
            Taken::Owned(program) => Some(program),
            Taken::Shared(program) => {
                memory::ensure_for_program(program.num_op_ids())?;
                Some(Program::clone(&program))
            }
            Taken::Absent => None,
        })
    }
    /// Ends the run: makes `program`, which [`RunOnModule::take`] returned, the last state, after
    /// `step`.
    pub fn finish(self, program: Program, step: Step) -> Result<()> {
        let slot = &self.module.slot;
        let origin = slot.origin().and_then(|origin| origin.after(step)).map(Arc::new);
        let finished = slot.finish(self.run, Arc::new(program), origin);
        finished
            .map_err(|_| busy("another run has begun on this module since the process was forked"))
    }
}

impl Drop for RunOnModule<'_> {
    fn drop(&mut self) {
        self.module.slot.abandon(self.run);
    }
}
