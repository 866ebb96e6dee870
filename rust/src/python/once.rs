//! A lazily computed value whose computation may call a user's Python function.

use super::errors::raise_unlocated;
use super::user_code::{working, Work};
use crate::error::{Code, Diagnostic};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The most threads that compute one value simultaneously.
const MAX_MAKERS: usize = 4;

/// If all of these threads are in users' functions for this time without a return, they are assumed
/// to wait for the thread that asks.
const PATIENCE: Duration = Duration::from_secs(3);

/// The pause between two attempts to read the state.
const PAUSE: Duration = Duration::from_millis(2);

/// A Python object that is computed once.
/// If a thread asks for the value while another one computes it, it waits, but not for users'
/// functions: if the computing thread is in one, the waiting thread computes the value too, and the
/// first result is kept. A thread that asks for a value that it is computing itself, in a rule that
/// is called for it, gets an error; so does, after some time, a thread that such a rule waits for.
pub(super) struct Once<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Option<Py<T>>,
    makers: Vec<Maker>,
}

/// A thread that computes the value.
#[derive(Clone)]
struct Maker {
    process: u32,
    thread: ThreadId,
    work: Arc<Work>,
}

/// What a thread that asks for the value does next.
enum Next<T> {
    Take(Py<T>),
    Make(Maker),
    Wait,
    /// All makers are in users' functions; the number of returns from these functions so far.
    Stuck(usize),
    Refuse,
}

impl<T> Once<T> {
    pub fn new() -> Self {
        Self { state: Mutex::new(State { value: None, makers: Vec::new() }) }
    }
    /// Locks the state. Only threads attached to the interpreter take the lock, for a short time,
    /// so that it is free at a fork.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn next(&self, py: Python<'_>) -> Next<T> {
        let mut state = self.state();
        if let Some(value) = &state.value {
            return Next::Take(value.clone_ref(py));
        }
        let (process, thread) = (std::process::id(), thread::current().id());
        state.makers.retain(|maker| maker.process == process);
        if state.makers.iter().any(|maker| maker.thread == thread) {
            return Next::Refuse;
        }
        if state.makers.iter().any(|maker| !maker.work.is_in_user_code()) {
            return Next::Wait;
        }
        if state.makers.len() >= MAX_MAKERS {
            return Next::Stuck(state.makers.iter().map(|maker| maker.work.returns()).sum());
        }
        let maker = Maker { process, thread, work: Arc::default() };
        state.makers.push(maker.clone());
        Next::Make(maker)
    }
    /// Forgets the object; it is computed again when it is needed.
    pub fn forget(&self) {
        // Dropped after the lock is released, as that may run Python code.
        let _value = self.state().value.take();
    }
    /// The object; `make` computes it if needed. `what` is its name in errors.
    pub fn get(
        &self,
        py: Python<'_>,
        what: &str,
        make: impl FnOnce() -> PyResult<Py<T>>,
    ) -> PyResult<Py<T>> {
        let mut stuck = (0, Instant::now());
        let maker = loop {
            match self.next(py) {
                Next::Take(value) => return Ok(value),
                Next::Make(maker) => break maker,
                Next::Stuck(returns) if returns == stuck.0 && stuck.1.elapsed() > PATIENCE => {
                    return Err(refusal(py, what));
                }
                Next::Stuck(returns) => {
                    if returns != stuck.0 {
                        stuck = (returns, Instant::now());
                    }
                    py.detach(|| thread::sleep(PAUSE));
                }
                Next::Wait => {
                    stuck.1 = Instant::now();
                    py.detach(|| thread::sleep(PAUSE));
                }
                Next::Refuse => return Err(refusal(py, what)),
            }
            py.check_signals()?;
        };
        let claim = Claim { once: self, maker };
        let made = working(&claim.maker.work, make)?;
        let mut state = self.state();
        let kept = state.value.get_or_insert_with(|| made.clone_ref(py)).clone_ref(py);
        drop(state);
        drop(claim);
        Ok(kept)
    }
}

/// The claim of a maker, which ends with the computation, even if that fails.
struct Claim<'a, T> {
    once: &'a Once<T>,
    maker: Maker,
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let work = &self.maker.work;
        self.once.state().makers.retain(|other| !Arc::ptr_eq(&other.work, work));
    }
}

fn refusal(py: Python<'_>, what: &str) -> PyErr {
    let message = format!("{what} are asked for by a function that is called to work them out");
    let hint = "a rule may depend on nothing but its signature";
    raise_unlocated(py, vec![Diagnostic::new(Code::Busy, message).with_hint(hint)])
}
