//! The primitives that [`super::slot`] is built on; `tests/loom` puts loom's in their place.

pub(super) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process, which is another one after a fork, and one of its threads.
pub(super) type Worker = (u32, std::thread::ThreadId);

/// The process and the thread that ask.
pub(super) fn here() -> Worker {
    (std::process::id(), std::thread::current().id())
}
