//! Values that are computed once, on first use, by code that may call a user's function.

use super::errors::raise_unlocated;
use super::user_code::{working, Work};
use crate::error::{Code, Diagnostic};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The most threads that work out the same.
const MAX_MAKERS: usize = 4;

/// How long so many threads may be in users' functions, without coming back from any, until they are taken to
/// wait for the one that asks.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(2);

/// A Python object that is worked out once.
///
/// Who asks while another thread works it out waits, but not for a user's function: if that thread is in one,
/// the work is done a second time, and the first to be done wins. Who asks for what it is working out itself, in
/// a rule that is called for it, is refused; so is, in the end, who asks in a thread that such a rule waits for.
pub(super) struct Once<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Option<Py<T>>,
    makers: Vec<Maker>,
}

/// A thread of a process at work.
#[derive(Clone)]
struct Maker {
    process: u32,
    thread: ThreadId,
    work: Arc<Work>,
}

/// What to do for the value.
enum Next<T> {
    Take(Py<T>),
    Make(Maker),
    Wait,
    /// All makers are in users' functions, and have come back from so many.
    Stuck(usize),
    Refuse,
}

impl<T> Once<T> {
    pub fn new() -> Self {
        Self { state: Mutex::new(State { value: None, makers: Vec::new() }) }
    }
    /// Held for moments only, by threads that are attached: a fork finds it free.
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
    /// The object, which `make` works out if nobody has yet; `what` is what errors call it.
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

/// The claim of a maker, which ends however its work does.
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
