//! Values by their names: `module["%12"]`.

use crate::index::{FuncId, ValueId};
use crate::ir::Program;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};

/// The names of the function that was asked for last, so that looking up all of its values takes time
/// linear in their number. Belongs to one program, which stays as it is.
#[derive(Default)]
pub(super) struct Names(Mutex<Option<Index>>);

struct Index {
    function: FuncId,
    /// The first value with a name of this hash.
    values: FxHashMap<u64, ValueId>,
}

impl Names {
    /// The first value in `function` that is called `name`, which starts with `%`.
    pub fn find(&self, program: &Program, function: FuncId, name: &str) -> Option<ValueId> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.take().filter(|index| index.function == function);
        let index = kept.insert(known.unwrap_or_else(|| Index::new(program, function)));
        let first = *index.values.get(&FxBuildHasher.hash_one(name))?;
        if program.value_name(first) == name {
            return Some(first);
        }
        // Another name has the same hash.
        let values = program.values_of(program.functions[function].op);
        values.into_iter().find(|&value| program.value_name(value) == name)
    }
}

impl Index {
    fn new(program: &Program, function: FuncId) -> Self {
        let mut values = FxHashMap::default();
        for value in program.values_of(program.functions[function].op) {
            let hash = FxBuildHasher.hash_one(&*program.value_name(value));
            values.entry(hash).or_insert(value);
        }
        Self { function, values }
    }
}
