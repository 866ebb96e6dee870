//! Calls of users' functions: rules, progress callbacks, what arguments iterate over.
//!
//! Three things are true of each such call, wherever it is made:
//!
//! - What it raises to end the program, or to stop it (`SystemExit`, `KeyboardInterrupt`, any exception that is
//!   no `Exception`), gets to the caller as it is, see [`interrupt`] and [`interruption`].
//! - Whoever waits for what this thread is working out is told that it is in a user's function, see
//!   [`working`]: nothing in shardcore waits for a user's function to return.
//! - At the end of the process no thread is in one: see [`finish`]. Python ends a daemon thread that wants to
//!   go on after the interpreter is gone by unwinding its stack, which Rust does not allow.

use crate::error::{Code, Diagnostic, Error, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long the end of the process waits for functions that are still running.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// What a user's function has raised to interrupt the work.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// What this thread is working out, outermost first.
    static WORK: RefCell<Vec<Arc<Work>>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// How many users' functions this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Something that a thread works out.
#[derive(Debug, Default)]
pub struct Work {
    /// How many users' functions its thread is in.
    in_user_code: AtomicUsize,
    /// How many it has come back from.
    returns: AtomicUsize,
}

impl Work {
    /// Whether its thread is in a user's function now.
    pub fn is_in_user_code(&self) -> bool {
        self.in_user_code.load(Ordering::Relaxed) > 0
    }
    /// How many users' functions its thread has come back from.
    pub fn returns(&self) -> usize {
        self.returns.load(Ordering::Relaxed)
    }
}

/// Runs `f`, which is `work`.
pub fn working<T>(work: &Arc<Work>, f: impl FnOnce() -> T) -> T {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            WORK.with_borrow_mut(Vec::pop);
        }
    }
    WORK.with_borrow_mut(|all| all.push(work.clone()));
    let _done = Done;
    f()
}

/// Fails if this thread is in so many users' functions, each called for another, that they seem not to end: a
/// rule that propagates a program with the op that it is the rule of would be called for ever.
pub fn check_depth() -> Result<()> {
    const MAX_DEPTH: usize = 32;
    if DEPTH.get() < MAX_DEPTH {
        return Ok(());
    }
    let message =
        format!("runs are nested {MAX_DEPTH} deep, each in a function that another one calls");
    let hint = "a rule or progress callback runs a program that calls it again";
    Err(Diagnostic::new(Code::Busy, message).with_hint(hint).into())
}

/// Number of calls of users' functions under way, in all threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is ending: no thread but the one that ends it begins a call.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A call of a user's function under way.
struct Call;

impl Call {
    /// Begins a call; `None` if the process is ending, and this thread is to rest.
    fn begin() -> Option<Self> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        if IS_ENDING.load(Ordering::SeqCst) && !ENDS.get() {
            CALLS.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        DEPTH.set(DEPTH.get() + 1);
        WORK.with_borrow(|all| {
            for work in all {
                work.in_user_code.fetch_add(1, Ordering::Relaxed);
            }
        });
        Some(Self)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        WORK.with_borrow(|all| {
            for work in all {
                work.in_user_code.fetch_sub(1, Ordering::Relaxed);
                work.returns.fetch_add(1, Ordering::Relaxed);
            }
        });
        DEPTH.set(DEPTH.get() - 1);
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Rests until the process has ended.
fn rest() -> ! {
    loop {
        thread::park();
    }
}

/// Calls a user's function from a thread that is not attached to the interpreter.
pub fn attach<T>(f: impl FnOnce(Python<'_>) -> T) -> T {
    let Some(call) = Call::begin() else { rest() };
    let answer = Python::try_attach(f);
    drop(call);
    answer.unwrap_or_else(|| rest())
}

/// Calls a user's function from a thread that is attached.
pub fn call<T>(py: Python<'_>, f: impl FnOnce() -> T) -> T {
    let Some(call) = Call::begin() else { py.detach(|| rest()) };
    let answer = f();
    drop(call);
    answer
}

/// The error for an exception that ends or stops the program; `None` for others.
pub fn interrupt(py: Python<'_>, error: &PyErr) -> Option<Error> {
    if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
        return None;
    }
    RAISED.set(Some(error.clone_ref(py)));
    Some(Diagnostic::new(Code::Interrupted, "interrupted").into())
}

/// The exception that has interrupted the work of this thread.
pub fn interruption() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Forgets all threads but this one: a process that was forked has no other. Python calls this in the child.
#[pyfunction]
pub fn after_fork_in_child() {
    CALLS.store(DEPTH.get(), Ordering::SeqCst);
}

/// Lets no other thread begin a call of a user's function any more, and waits for those under way; Python calls
/// this before the interpreter ends. A function that takes longer is left alone: it most likely waits for
/// something, and will not come back before the process is gone.
#[pyfunction]
pub fn finish(py: Python<'_>) {
    ENDS.set(true);
    IS_ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        while CALLS.load(Ordering::SeqCst) > DEPTH.get() && Instant::now() < until {
            thread::sleep(PAUSE);
        }
    });
}
