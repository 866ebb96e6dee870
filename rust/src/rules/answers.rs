//! What users' functions have answered.
//!
//! Calling a function is slow, so its answers are remembered for the whole process, up to [`MAX_ENTRIES`] and
//! [`MAX_BYTES`]; those that were given first are forgotten first. A run that may be repeated records its
//! answers besides, so that repeating it calls no function: see [`Record`].
//!
//! The lock is not waited for longer than another thread takes to look something up: if one held it when the
//! process was forked, functions are asked as if nothing were remembered.

use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The most answers that are remembered.
pub const MAX_ENTRIES: usize = 1 << 14;

/// The most bytes that they take, about: signatures may hold attributes of megabytes.
pub const MAX_BYTES: usize = 32 << 20;

/// An answer: a rule, or that there is none.
pub type Answer = Option<Arc<OpShardingRule>>;

/// The function and its arguments, as bytes that mean the same in every program.
pub type Question = (u64, Arc<[u8]>);

/// The answers of the process.
#[derive(Debug, Default)]
struct Answers {
    by_question: FxHashMap<Question, Answer>,
    /// In the order in which they came.
    order: VecDeque<Question>,
    bytes: usize,
}

static KEPT: Mutex<Option<Answers>> = Mutex::new(None);

/// The answers of the process; `None` if another thread holds them, and does not let go. No Python runs while
/// they are held.
fn kept() -> Option<MutexGuard<'static, Option<Answers>>> {
    const TRIES: usize = 1000;
    for _ in 0..TRIES {
        match KEPT.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// The answer to `question`, if it is remembered.
pub fn find(question: &Question) -> Option<Answer> {
    kept()?.as_ref()?.get(question)
}

/// Remembers an answer.
pub fn keep(question: Question, answer: Answer) {
    if let Some(mut kept) = kept() {
        kept.get_or_insert_default().keep(question, answer);
    }
}

/// Forgets all answers.
pub fn clear() {
    // Dropped outside of the lock.
    let old = kept().and_then(|mut kept| kept.take());
    drop(old);
}

/// Number of answers that are remembered.
pub fn len() -> usize {
    kept().map_or(0, |kept| kept.as_ref().map_or(0, |answers| answers.by_question.len()))
}

/// About how many bytes an answer takes.
fn bytes_of(question: &Question, answer: &Answer) -> usize {
    let rule = answer.as_ref().map_or(0, |rule| {
        let dims: usize = rule.tensors().map(|tensor| 32 + 32 * tensor.dims.len()).sum();
        dims + 16 * rule.num_factors()
    });
    256 + question.1.len() + rule
}

impl Answers {
    /// The answer to `question`, if it was given.
    fn get(&self, question: &Question) -> Option<Answer> {
        self.by_question.get(question).cloned()
    }
    /// Remembers an answer, and forgets the oldest if they are too many.
    fn keep(&mut self, question: Question, answer: Answer) {
        let bytes = bytes_of(&question, &answer);
        if bytes > MAX_BYTES / 4 || self.by_question.contains_key(&question) {
            return;
        }
        self.bytes += bytes;
        self.order.push_back(question.clone());
        self.by_question.insert(question, answer);
        while self.order.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(answer) = self.by_question.remove(&oldest) {
                self.bytes -= bytes_of(&oldest, &answer);
            }
        }
    }
}

/// The answers that a run has got, all of them.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<FxHashMap<Question, Answer>>>);

impl Record {
    fn answers(&self) -> MutexGuard<'_, FxHashMap<Question, Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The answer to `question`, if the run has got it.
    pub fn get(&self, question: &Question) -> Option<Answer> {
        self.answers().get(question).cloned()
    }
    /// Records an answer.
    pub fn keep(&self, question: Question, answer: Answer) {
        self.answers().insert(question, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: usize, bytes: usize) -> Question {
        let mut key = number.to_le_bytes().to_vec();
        key.resize(bytes.max(8), 0);
        (1, key.into())
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut answers = Answers::default();
        for number in 0..MAX_ENTRIES + 10 {
            answers.keep(question(number, 8), None);
        }
        assert_eq!(answers.by_question.len(), MAX_ENTRIES);
        assert!(answers.get(&question(9, 8)).is_none());
        assert!(answers.get(&question(10, 8)).is_some());
        assert!(answers.get(&question(MAX_ENTRIES + 9, 8)).is_some());
    }

    #[test]
    fn bytes_are_bounded() {
        let mut answers = Answers::default();
        for number in 0..100 {
            answers.keep(question(number, 1 << 20), None);
            assert!(answers.bytes <= MAX_BYTES);
        }
        assert_eq!(answers.by_question.len(), (MAX_BYTES / ((1 << 20) + 256)));
        answers.keep(question(1000, MAX_BYTES), None);
        assert!(answers.get(&question(1000, MAX_BYTES)).is_none());
        assert!(answers.get(&question(99, 1 << 20)).is_some());
    }
}
