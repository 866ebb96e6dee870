//! A program that passes work on in place, while anybody reads it.
//!
//! # What a module is while a pass manager runs on it
//!
//! A module has a *last state*: the program as it was parsed, or as the last run that succeeded left it.
//!
//! 1. **Readers see the last state**, whichever thread they are in, also those that a run calls: progress
//!    callbacks, rules, signal handlers. They never see a program that passes are at work on, they do not
//!    wait for the run, and they never fail because of it. What a reader has got stays as it was.
//! 2. **One run at a time.** A second run on a module that is being run, from another thread or from a
//!    callback of the run, is refused at once with `busy`. It does not wait, so runs cannot wait for each
//!    other in a circle. Runs on different modules do not hinder each other; to run on one program in many
//!    threads give each thread a copy, which costs nothing until it is run on.
//! 3. **A run that fails changes nothing**, whether by an error, an exception in a callback or an interrupt:
//!    the last state stays, and the next run starts from it.
//! 4. A run that succeeds makes its program the last state all at once.
//! 5. **Nothing in shardcore waits for a user's function to return.** Who needs what another thread is working
//!    out waits only as long as that thread is inside shardcore.
//!
//! A run takes the program out of its module rather than copying it, which would take as long as many a pass
//! and twice the memory. Who looks at the module meanwhile, or after the run has failed, has the program made
//! again, see [`origin`]; one thread does so, others wait for it. A program that others hold (values of
//! modules hold it), or that was run more than 16 times, is copied instead.
//!
//! [`slot`] holds the state, and is the only place with a lock; `tests/loom` runs it in every order in which
//! threads can meet, `tests/unit/test_threads.py` the whole in many threads.

mod origin;
mod slot;
mod sync;

use crate::error::{Code, Diagnostic, Error, Result};
use crate::ir::{Program, Source};
pub use origin::{Origin, Step};
pub use slot::{Read, Ticket};
use slot::{Run, Slot, Taken};
use std::sync::Arc;

/// A program with a last state and at most one run.
pub struct Module {
    slot: Slot<Program, Origin>,
}

impl Module {
    /// A module of a program that was made in some way of its own.
    pub fn new(program: Program) -> Self {
        Self { slot: Slot::new(Arc::new(program), None) }
    }
    /// A module of the program that `source` says.
    pub fn parsed(program: Program, source: Source) -> Self {
        Self { slot: Slot::new(Arc::new(program), Some(Arc::new(Origin::new(source)))) }
    }
    /// A module with the last state of this one, which they share.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { slot: self.slot.share() }
    }
    /// The last state, or what to do to get it.
    pub fn read(&self) -> Read<Program, Origin> {
        self.slot.read()
    }
    /// Keeps the program that was made for `ticket`; `None` if it could not be made.
    pub fn made(&self, ticket: &Ticket<Origin>, program: Option<Program>) -> Option<Arc<Program>> {
        self.slot.made(ticket, program.map(Arc::new))
    }
    /// Begins a run, which ends when what is returned is dropped or [`RunOnModule::finish`]ed; an error if one
    /// is at work.
    pub fn begin(&self) -> Result<RunOnModule<'_>> {
        match self.slot.begin() {
            Some(run) => Ok(RunOnModule { module: self, run }),
            None => Err(busy("a pass manager is running on this module already")),
        }
    }
}

/// The error that a second run is refused with.
fn busy(message: &str) -> Error {
    let hint = "wait until that run is over, or run on a copy: copy.copy(module)";
    Diagnostic::new(Code::Busy, message).with_hint(hint).into()
}

/// A run at work on a module.
pub struct RunOnModule<'a> {
    module: &'a Module,
    run: Run,
}

impl RunOnModule<'_> {
    /// The program to run passes on; `None` if it has to be made first, see [`Module::read`].
    pub fn take(&self) -> Option<Program> {
        match self.module.slot.take() {
            Taken::Owned(program) => Some(program),
            Taken::Shared(program) => Some(Program::clone(&program)),
            Taken::Absent => None,
        }
    }
    /// Makes `program`, which [`RunOnModule::take`] gave, the last state after `step`.
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
