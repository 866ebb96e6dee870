//! The hash of a sharding: edits of many values are the keys of what sessions remember.

use super::sharding::PyTensorSharding;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl Hash for PyTensorSharding {
    /// Without the mesh, whose symbol tells most meshes apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut hasher = FxHasher::default();
        (&self.sharding, &self.symbol).hash(&mut hasher);
        state.write_u64(hasher.finish());
    }
}
