//! The hash of a sharding, since sessions use edits of many values as keys.

use super::sharding::PyTensorSharding;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl Hash for PyTensorSharding {
    /// Leaves out the mesh, since its symbol distinguishes most meshes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut hasher = FxHasher::default();
        (&self.sharding, &self.symbol).hash(&mut hasher);
        state.write_u64(hasher.finish());
    }
}
