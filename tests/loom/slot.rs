//! A module in every order in which threads can meet at it: `rust/src/module/slot.rs` on loom's primitives.
//!
//! The value is a number that each run counts up, and is made again from itself.

#[path = "../../rust/src/module/slot.rs"]
#[allow(dead_code)]
mod slot;

/// Loom's primitives in the place of those of the standard library.
mod sync {
    pub use loom::sync::{Arc, Mutex, MutexGuard};
    pub use std::sync::PoisonError;

    pub type Worker = (u32, loom::thread::ThreadId);

    pub fn here() -> Worker {
        (0, loom::thread::current().id())
    }
}

use loom::thread;
use slot::{Read, Slot, Taken};
use sync::Arc;

type Number = Slot<u32, u32>;

fn number() -> Arc<Number> {
    Arc::new(Slot::new(Arc::new(0), Some(Arc::new(0))))
}

/// The last value.
fn read(slot: &Number) -> u32 {
    loop {
        match slot.read() {
            Read::Ready(value) => return *value,
            Read::Make(ticket) => {
                thread::yield_now();
                let made = slot.made(&ticket, Some(Arc::new(*ticket.origin)));
                return *made.expect("it was made");
            }
            Read::Wait => thread::yield_now(),
            Read::Lost => panic!("the value is lost"),
        }
    }
}

/// Counts up, or fails on the way; false if it was refused.
fn run(slot: &Number, fails: bool) -> bool {
    let Some(run) = slot.begin() else { return false };
    let value = loop {
        match slot.take() {
            Taken::Owned(value) => break value,
            Taken::Shared(value) => break *value,
            Taken::Absent => drop(read(slot)),
        }
    };
    thread::yield_now();
    if fails {
        slot.abandon(run);
    } else {
        let (value, origin) = (Arc::new(value + 1), Arc::new(value + 1));
        assert!(slot.finish(run, value, Some(origin)).is_ok());
    }
    true
}

#[test]
fn of_two_runs_each_counts_or_is_refused() {
    loom::model(|| {
        let slot = number();
        let other = slot.clone();
        let thread = thread::spawn(move || run(&other, false));
        let here = run(&slot, false);
        let there = thread.join().expect("no panic");
        assert!(here || there);
        assert_eq!(read(&slot), u32::from(here) + u32::from(there));
    });
}

#[test]
fn readers_see_the_state_before_or_after_a_run_and_never_go_back() {
    loom::model(|| {
        let slot = number();
        let other = slot.clone();
        let thread = thread::spawn(move || run(&other, false));
        let first = read(&slot);
        let second = read(&slot);
        assert!(first <= second && second <= 1);
        assert!(thread.join().expect("no panic"));
        assert_eq!(read(&slot), 1);
    });
}

#[test]
fn a_run_that_fails_changes_nothing() {
    loom::model(|| {
        let slot = number();
        let other = slot.clone();
        let thread = thread::spawn(move || run(&other, true));
        assert_eq!(read(&slot), 0);
        assert!(thread.join().expect("no panic"));
        assert_eq!(read(&slot), 0);
        assert!(run(&slot, false));
        assert_eq!(read(&slot), 1);
    });
}

#[test]
fn readers_of_a_taken_value_share_what_one_of_them_makes() {
    loom::model(|| {
        let slot = number();
        assert!(run(&slot, true));
        let other = slot.clone();
        let thread = thread::spawn(move || read(&other));
        assert_eq!((read(&slot), thread.join().expect("no panic")), (0, 0));
    });
}

#[test]
fn a_value_that_could_not_be_made_is_made_by_the_next_who_asks() {
    loom::model(|| {
        let slot = number();
        assert!(run(&slot, true));
        let Read::Make(ticket) = slot.read() else { panic!("it was taken") };
        let other = slot.clone();
        let thread = thread::spawn(move || read(&other));
        assert!(slot.made(&ticket, None).is_none());
        assert_eq!(thread.join().expect("no panic"), 0);
        assert_eq!(read(&slot), 0);
    });
}
