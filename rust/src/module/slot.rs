//! A value that one run at a time replaces while other threads read it; [`super`] describes the
//! guarantees.
//!
//! Each method holds the lock for a few instructions only and calls nothing else meanwhile, so
//! there are no deadlocks. A thread that has to wait for another one gets [`Read::Wait`], and asks
//! again.
//!
//! Claims have a process id: a child that was forked while another thread of its parent had a claim
//! does not wait for that thread, which does not exist in the child.
//!
//! `tests/loom/slot.rs` runs this file in every interleaving of threads.

use super::sync::{here, Arc, Mutex, MutexGuard, PoisonError, Worker};

/// The value, and the threads that work on it.
pub struct Slot<T, O> {
    state: Mutex<State<T, O>>,
}

struct State<T, O> {
    /// The last value; absent after a run has taken it, until the run stores another one or a
    /// reader rebuilds it.
    value: Option<Arc<T>>,
    /// The origin from which the value can be rebuilt; `None` if it cannot.
    origin: Option<Arc<O>>,
    /// Number of runs that have stored a value.
    version: u64,
    /// The current run.
    run: Option<Run>,
    /// The thread that rebuilds the value.
    maker: Option<Worker>,
}

/// The result of a read.
pub enum Read<T, O> {
    /// The last value.
    Ready(Arc<T>),
    /// The reader has to rebuild the value from this ticket, and pass it to [`Slot::made`].
    Make(Ticket<O>),
    /// Another thread is rebuilding the value.
    Wait,
    /// The value was taken, and cannot be rebuilt.
    Lost,
}

/// The claim to rebuild the value.
pub struct Ticket<O> {
    /// The origin to rebuild it from.
    pub origin: Arc<O>,
    version: u64,
}

/// The claim to replace the value; there is one at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run {
    process: u32,
    number: u64,
}

/// The value that a run gets.
pub enum Taken<T> {
    /// The value itself.
    Owned(T),
    /// The value, which the run has to copy: there are other references, or it cannot be rebuilt.
    Shared(Arc<T>),
    /// Nothing: the value has to be rebuilt first, see [`Slot::read`].
    Absent,
}

impl<T, O> Slot<T, O> {
    /// A slot with `value`, which can be rebuilt from `origin` if there is one.
    pub fn new(value: Arc<T>, origin: Option<Arc<O>>) -> Self {
        let state = State { value: Some(value), origin, version: 0, run: None, maker: None };
        Self { state: Mutex::new(state) }
    }
    fn state(&self) -> MutexGuard<'_, State<T, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot with the last value of this one, which both share.
    pub fn share(&self) -> Self {
        let state = self.state();
        let (value, origin) = (state.value.clone(), state.origin.clone());
        let state = State { value, origin, version: 0, run: None, maker: None };
        Self { state: Mutex::new(state) }
    }

    /// The last value, or how to get it.
    pub fn read(&self) -> Read<T, O> {
        let here = here();
        let mut state = self.state();
        if let Some(value) = &state.value {
            return Read::Ready(value.clone());
        }
        // A signal handler may read the value that its own thread is rebuilding; then it does not
        // wait.
        if state.maker.is_some_and(|(process, thread)| process == here.0 && thread != here.1) {
            return Read::Wait;
        }
        let Some(origin) = state.origin.clone() else { return Read::Lost };
        state.maker = Some(here);
        Read::Make(Ticket { origin, version: state.version })
    }
    /// Stores the value that was rebuilt for `ticket`; `None` if that failed. Returns the value to
    /// read, which is the stored one if another thread was faster.
    pub fn made(&self, ticket: &Ticket<O>, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let here = here();
        let mut state = self.state();
        if state.maker == Some(here) {
            state.maker = None;
        }
        let value = value?;
        if state.version != ticket.version {
            // A run has stored another value meanwhile; this one was the last value at the time of
            // the read.
            return Some(value);
        }
        Some(state.value.get_or_insert(value).clone())
    }

    /// Begins a run; `None` if another one has not ended.
    pub fn begin(&self) -> Option<Run> {
        let (process, _) = here();
        let mut state = self.state();
        if state.run.is_some_and(|run| run.process == process) {
            return None;
        }
        let number = state.run.map_or(0, |run| run.number) + state.version + 1;
        let run = Run { process, number };
        state.run = Some(run);
        Some(run)
    }
    /// Takes the value for the current run. While the run has the value itself, readers rebuild it.
    pub fn take(&self) -> Taken<T> {
        let mut state = self.state();
        if state.origin.is_none() {
            return state.value.clone().map_or(Taken::Absent, Taken::Shared);
        }
        let Some(value) = state.value.take() else { return Taken::Absent };
        match Arc::try_unwrap(value) {
            Ok(value) => Taken::Owned(value),
            Err(value) => {
                state.value = Some(value.clone());
                Taken::Shared(value)
            }
        }
    }
    /// Ends `run`, and stores `value`, which can be rebuilt from `origin` if there is one. Returns
    /// `value` if another run has begun meanwhile, which is possible in a process that was forked
    /// during this run.
    pub fn finish(&self, run: Run, value: Arc<T>, origin: Option<Arc<O>>) -> Result<(), Arc<T>> {
        let mut state = self.state();
        if state.run != Some(run) {
            return Err(value);
        }
        let old = state.value.replace(value);
        state.origin = origin;
        state.version += 1;
        state.run = None;
        // Dropping it may take long, so that is done outside of the lock.
        drop(state);
        drop(old);
        Ok(())
    }
    /// Ends `run` without a value: the last one is kept.
    pub fn abandon(&self, run: Run) {
        let mut state = self.state();
        if state.run == Some(run) {
            state.run = None;
        }
    }
    /// The origin of the last value.
    pub fn origin(&self) -> Option<Arc<O>> {
        self.state().origin.clone()
    }
}
