//! A value that one run at a time replaces while anybody reads it; [`super`] says what is promised.
//!
//! No method waits for anything but the few instructions that another one takes, and none calls back, so
//! without deadlock in any order of calls. A thread that has to wait for another one is told so, and asks again.
//!
//! Claims are those of a process: a child that was forked while another thread of its parent was at work
//! does not wait for a thread that it does not have.
//!
//! `tests/loom/slot.rs` runs this file in every order in which threads can meet.

use super::sync::{here, Arc, Mutex, MutexGuard, PoisonError, Worker};

/// The value, and which threads work on it.
pub struct Slot<T, O> {
    state: Mutex<State<T, O>>,
}

struct State<T, O> {
    /// The last value; absent once a run has taken it, until the run puts another one or a reader makes it
    /// again.
    value: Option<Arc<T>>,
    /// What the value can be made from again; `None` if it cannot.
    origin: Option<Arc<O>>,
    /// Number of runs that have put a value.
    version: u64,
    /// The run at work.
    run: Option<Run>,
    /// The thread that makes the value again.
    maker: Option<Worker>,
}

/// What a reader gets.
pub enum Read<T, O> {
    /// The last value.
    Ready(Arc<T>),
    /// Nothing: the reader is to make the value from this, and to give it to [`Slot::made`].
    Make(Ticket<O>),
    /// Nothing yet: another thread is making the value.
    Wait,
    /// Nothing, for ever: it was taken, and cannot be made again.
    Lost,
}

/// The claim to make the value again.
pub struct Ticket<O> {
    /// What to make it from.
    pub origin: Arc<O>,
    version: u64,
}

/// The right to replace the value, of which there is one at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run {
    process: u32,
    number: u64,
}

/// What a run works on.
pub enum Taken<T> {
    /// The value itself.
    Owned(T),
    /// The value, of which the run has to make a copy: others have it, or it cannot be made again.
    Shared(Arc<T>),
    /// Nothing: the value has to be made first, see [`Slot::read`].
    Absent,
}

impl<T, O> Slot<T, O> {
    /// A slot with `value`, which can be made again from `origin` if there is one.
    pub fn new(value: Arc<T>, origin: Option<Arc<O>>) -> Self {
        let state = State { value: Some(value), origin, version: 0, run: None, maker: None };
        Self { state: Mutex::new(state) }
    }
    fn state(&self) -> MutexGuard<'_, State<T, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot with the last value of this one, which they share.
    pub fn share(&self) -> Self {
        let state = self.state();
        let (value, origin) = (state.value.clone(), state.origin.clone());
        let state = State { value, origin, version: 0, run: None, maker: None };
        Self { state: Mutex::new(state) }
    }

    /// The last value, or what to do to get it.
    pub fn read(&self) -> Read<T, O> {
        let here = here();
        let mut state = self.state();
        if let Some(value) = &state.value {
            return Read::Ready(value.clone());
        }
        // A signal handler may read what its own thread is making.
        if state.maker.is_some_and(|(process, thread)| process == here.0 && thread != here.1) {
            return Read::Wait;
        }
        let Some(origin) = state.origin.clone() else { return Read::Lost };
        state.maker = Some(here);
        Read::Make(Ticket { origin, version: state.version })
    }
    /// Keeps the value that was made for `ticket`; `None` if it could not be made. Returns what to read: the
    /// value that was kept before if another one was quicker.
    pub fn made(&self, ticket: &Ticket<O>, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let here = here();
        let mut state = self.state();
        if state.maker == Some(here) {
            state.maker = None;
        }
        let value = value?;
        if state.version != ticket.version {
            // A run has put another value meanwhile; this one was the last when it was asked for.
            return Some(value);
        }
        Some(state.value.get_or_insert(value).clone())
    }

    /// Begins a run; `None` if one is at work.
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
    /// What the run at work works on. As long as it has the value itself, readers make theirs.
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
    /// Ends `run`, and puts `value`, which can be made again from `origin` if there is one. Returns `value`
    /// if another run has begun meanwhile, as one may in a process that was forked during this one.
    pub fn finish(&self, run: Run, value: Arc<T>, origin: Option<Arc<O>>) -> Result<(), Arc<T>> {
        let mut state = self.state();
        if state.run != Some(run) {
            return Err(value);
        }
        let old = state.value.replace(value);
        state.origin = origin;
        state.version += 1;
        state.run = None;
        // Large: not within the lock.
        drop(state);
        drop(old);
        Ok(())
    }
    /// Ends `run` without a value: the last one stays.
    pub fn abandon(&self, run: Run) {
        let mut state = self.state();
        if state.run == Some(run) {
            state.run = None;
        }
    }
    /// What the last value can be made from again.
    pub fn origin(&self) -> Option<Arc<O>> {
        self.state().origin.clone()
    }
}
