//! A cache of edits of values that are known to be valid.
//!
//! Whether values can be constrained does not depend on the annotations of arguments and results,
//! as long as these are valid by themselves, over meshes of the program. Checking it is slow: the
//! program has to be made, printed and parsed.
//!
//! Only threads that hold the GIL take the lock, and they keep the GIL while they hold it.

use super::edited::Edit;
use super::sharding::PyTensorSharding;
use crate::session::Target;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most lists of edits in the cache.
const MOST: usize = 64;

type Values = Vec<(Target, Option<PyTensorSharding>)>;

/// Lists of edits of values, each of which is valid.
#[derive(Default)]
pub(super) struct CheckedValues {
    lists: Mutex<Vec<Values>>,
}

impl CheckedValues {
    fn lists(&self) -> MutexGuard<'_, Vec<Values>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether the edits of values in `edits` are known to be valid together.
    pub fn has(&self, edits: &[Edit]) -> bool {
        let is_same = |list: &Values| {
            let own = list.iter().map(|(target, sharding)| (target, sharding));
            own.eq(of_values(edits).map(|edit| (&edit.target, &edit.sharding)))
        };
        of_values(edits).next().is_none() || self.lists().iter().any(is_same)
    }
    /// Records that the edits of values in `edits` are valid together.
    pub fn add(&self, edits: &[Edit]) {
        let values = of_values(edits).map(|edit| (edit.target, edit.sharding.clone())).collect();
        let mut lists = self.lists();
        if lists.len() >= MOST {
            lists.remove(0);
        }
        lists.push(values);
    }
}

fn of_values(edits: &[Edit]) -> impl Iterator<Item = &Edit> {
    edits.iter().filter(|edit| edit.is_of_value())
}
