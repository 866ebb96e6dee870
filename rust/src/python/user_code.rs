//! Calls of Python code: users' functions (rules, progress callbacks, iterators of arguments), and
//! the Python parts of shardcore.
//!
//! Each call of a user's function has these properties; calls of shardcore's own code have only the
//! last:
//!
//! - Exceptions that end the program (`SystemExit`, `KeyboardInterrupt`, any that is not an
//!   `Exception`) are passed on to the caller unchanged, see [`interrupt`] and [`interruption`].
//! - Threads that wait for a value that this thread computes can see that it is in a user's
//!   function, see [`working`]: nothing in shardcore waits for a user's function to return.
//! - At the end of the process no thread is in such a call: see [`finish`]. Python unwinds the
//!   stack of a daemon thread that continues after the interpreter has ended, which Rust does not
//!   allow.

use crate::error::{Code, Diagnostic, Error, Result};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two attempts to read the state.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// The exception that a user's function raised to interrupt the work.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The computations in progress in this thread, outermost first.
    static WORK: RefCell<Vec<Arc<Work>>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread is the one that ends the process.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// The number of users' functions that this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The number of calls of Python code in progress in this thread.
    static OWN_CALLS: Cell<usize> = const { Cell::new(0) };
    /// Python's identifier of this thread, if it was in a call.
    static IDENT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A computation of a value by a thread.
#[derive(Debug, Default)]
pub struct Work {
    /// The number of users' functions that the thread is in.
    in_user_code: AtomicUsize,
    /// The number of users' functions that have returned to the thread.
    returns: AtomicUsize,
}

impl Work {
    /// Whether the thread is in a user's function now.
    pub fn is_in_user_code(&self) -> bool {
        self.in_user_code.load(Ordering::Relaxed) > 0
    }
    /// The number of users' functions that have returned to the thread.
    pub fn returns(&self) -> usize {
        self.returns.load(Ordering::Relaxed)
    }
}

/// Runs `f` as part of `work`.
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

/// Fails if this thread is in too many nested users' functions: a rule that propagates a program
/// with its own op would recurse without end.
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

/// Number of calls of Python code in progress, in all threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is ending: then only the thread that ends it may begin calls.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The Python identifiers of threads in calls. Only attached threads take the lock, for as long as
/// they change the list.
static THREADS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The identifier of this thread in [`THREADS`] while it is in a call.
struct Listed(u64);

impl Listed {
    /// Lists this thread, unless the call is nested in another one or Python does not provide the
    /// identifier.
    fn new(py: Python<'_>) -> Option<Self> {
        if OWN_CALLS.get() != 1 {
            return None;
        }
        let ident = IDENT.get().or_else(|| ident(py))?;
        IDENT.set(Some(ident));
        THREADS.lock().ok()?.push(ident);
        Some(Self(ident))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Ok(mut threads) = THREADS.lock() {
            if let Some(at) = threads.iter().position(|&ident| ident == self.0) {
                threads.swap_remove(at);
            }
        }
    }
}

/// Python's identifier of this thread.
fn ident(py: Python<'_>) -> Option<u64> {
    py.import("threading").ok()?.call_method0("get_ident").ok()?.extract().ok()
}

/// A call of Python code in progress.
struct Call {
    /// Whether it is a user's function.
    is_users: bool,
}

impl Call {
    /// Begins a call; `None` if the process is ending, and this thread has to block.
    fn begin(is_users: bool) -> Option<Self> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        if IS_ENDING.load(Ordering::SeqCst) && !ENDS.get() {
            CALLS.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        OWN_CALLS.set(OWN_CALLS.get() + 1);
        if is_users {
            DEPTH.set(DEPTH.get() + 1);
            WORK.with_borrow(|all| {
                for work in all {
                    work.in_user_code.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Some(Self { is_users })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.is_users {
            WORK.with_borrow(|all| {
                for work in all {
                    work.in_user_code.fetch_sub(1, Ordering::Relaxed);
                    work.returns.fetch_add(1, Ordering::Relaxed);
                }
            });
            DEPTH.set(DEPTH.get() - 1);
        }
        OWN_CALLS.set(OWN_CALLS.get() - 1);
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Blocks until the process has ended.
fn rest() -> ! {
    loop {
        thread::park();
    }
}

/// Calls a user's function from a thread that is not attached to the interpreter.
pub fn attach<T>(f: impl FnOnce(Python<'_>) -> T) -> T {
    let Some(call) = Call::begin(true) else { rest() };
    let answer = Python::try_attach(|py| {
        let _listed = Listed::new(py);
        f(py)
    });
    drop(call);
    answer.unwrap_or_else(|| rest())
}

/// Calls a user's function from a thread that is attached.
pub fn call<T>(py: Python<'_>, f: impl FnOnce() -> T) -> T {
    begun(py, true, f)
}

/// Calls Python code of shardcore, which may take long or call users' functions.
pub fn call_own<T>(py: Python<'_>, f: impl FnOnce() -> T) -> T {
    begun(py, false, f)
}

/// Calls a function or class of a Python module of shardcore.
pub fn own_function<'py, A: PyCallArgs<'py>>(
    py: Python<'py>,
    module: &str,
    name: &str,
    arguments: A,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    call_own(py, || py.import(module)?.getattr(name)?.call(arguments, options))
}

fn begun<T>(py: Python<'_>, is_users: bool, f: impl FnOnce() -> T) -> T {
    let Some(call) = Call::begin(is_users) else { py.detach(|| rest()) };
    let listed = Listed::new(py);
    let answer = f();
    drop(listed);
    drop(call);
    answer
}

/// The error for an exception that ends the program; `None` for others.
pub fn interrupt(py: Python<'_>, error: &PyErr) -> Option<Error> {
    if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
        return None;
    }
    RAISED.set(Some(error.clone_ref(py)));
    Some(Diagnostic::new(Code::Interrupted, "interrupted").into())
}

/// The exception that interrupted the work of this thread.
pub fn interruption() -> PyErr {
    RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Resets the counters of calls to those of this thread, since a forked process has no other
/// threads. Python calls this in the child.
#[pyfunction]
pub fn after_fork_in_child() {
    CALLS.store(OWN_CALLS.get(), Ordering::SeqCst);
    if let Ok(mut threads) = THREADS.lock() {
        threads.retain(|&ident| Some(ident) == IDENT.get());
    }
}

/// Prevents other threads from beginning calls of Python code, and waits for those in progress, for
/// at most `seconds`.
#[pyfunction]
pub fn finish(py: Python<'_>, seconds: f64) -> Vec<u64> {
    ENDS.set(true);
    IS_ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let start = Instant::now();
        while CALLS.load(Ordering::SeqCst) > OWN_CALLS.get()
            && start.elapsed().as_secs_f64() < seconds
        {
            thread::sleep(PAUSE);
        }
    });
    let threads = THREADS.lock().map_or_else(|_| Vec::new(), |threads| threads.clone());
    threads.into_iter().filter(|&ident| Some(ident) != IDENT.get()).collect()
}
