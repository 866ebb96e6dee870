//! A cache of the rules ("answers") that users' functions have returned.
//!
//! Calling a function is slow, so its answers are cached for the whole process, up to
//! [`MAX_ENTRIES`] and [`MAX_BYTES`]; the oldest are evicted first. A run that may be repeated also
//! records its answers, so that repeating it calls no function: see [`Record`].
//!
//! Waiting for the lock has a time limit: if another thread held it when the process was forked, it
//! is never released in the child, which then calls functions as if the cache were empty.

use crate::op_sharding_rule::OpShardingRule;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The most answers in the cache.
pub const MAX_ENTRIES: usize = 1 << 14;

/// The most bytes of the cache, approximately: signatures may have attributes of megabytes.
pub const MAX_BYTES: usize = 32 << 20;

/// The result of a user's function: a rule, or `None` for no rule.
pub type Answer = Option<Arc<OpShardingRule>>;

/// A cache key: the number of the function, and its arguments as bytes that are independent of the
/// program.
pub type Question = (u64, Arc<[u8]>);

/// The cache of the process.
#[derive(Debug, Default)]
struct Answers {
    by_question: FxHashMap<Question, Answer>,
    /// The keys, oldest first.
    order: VecDeque<Question>,
    bytes: usize,
}

static ANSWERS: Mutex<Option<Answers>> = Mutex::new(None);

/// Locks the cache of the process; `None` if it is not released in time. No Python code runs under
/// the lock.
fn lock_answers() -> Option<MutexGuard<'static, Option<Answers>>> {
    const TRIES: usize = 1000;
    for _ in 0..TRIES {
        match ANSWERS.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// The cached answer to `question`.
pub fn find(question: &Question) -> Option<Answer> {
    lock_answers()?.as_ref()?.get(question)
}

/// Adds an answer to the cache.
pub fn keep(question: Question, answer: Answer) {
    if let Some(mut cache) = lock_answers() {
        cache.get_or_insert_default().keep(question, answer);
    }
}

/// Empties the cache.
pub fn clear() {
    // Dropped outside of the lock.
    let old = lock_answers().and_then(|mut cache| cache.take());
    drop(old);
}

/// Number of answers in the cache.
pub fn len() -> usize {
    lock_answers().map_or(0, |cache| cache.as_ref().map_or(0, |answers| answers.by_question.len()))
}

/// The approximate size of an answer and its key in bytes.
fn bytes_of(question: &Question, answer: &Answer) -> usize {
    let rule = answer.as_ref().map_or(0, |rule| {
        let dims: usize = rule.tensors().map(|tensor| 32 + 32 * tensor.dims.len()).sum();
        dims + 16 * rule.num_factors()
    });
    256 + question.1.len() + rule
}

impl Answers {
    /// The answer to `question`.
    fn get(&self, question: &Question) -> Option<Answer> {
        self.by_question.get(question).cloned()
    }
    /// Adds an answer, and evicts the oldest ones beyond the limits.
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

/// All answers that a run has received.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<FxHashMap<Question, Answer>>>);

impl Record {
    fn answers(&self) -> MutexGuard<'_, FxHashMap<Question, Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The recorded answer to `question`.
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
