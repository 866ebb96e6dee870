//! The primitives that [`super::slot`] is built on; `tests/loom` replaces them by those of loom.

pub(super) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process id, which changes at a fork, and a thread.
pub(super) type Worker = (u32, std::thread::ThreadId);

/// The current process and thread.
pub(super) fn here() -> Worker {
    (std::process::id(), std::thread::current().id())
}
