//! `shardcore._core.ReshardPlans`: plans of reshards that lowerings share.

use crate::kept::{Kept, Taken};
use crate::spmd::KnownPlans;
use pyo3::prelude::*;

/// Plans of reshards, which lowerings share.
#[pyclass(name = "ReshardPlans", module = "shardcore", frozen)]
#[derive(Default)]
pub struct PyReshardPlans {
    known: Kept<KnownPlans>,
}

#[pymethods]
impl PyReshardPlans {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl PyReshardPlans {
    /// The plans, taken out while they are extended. Another thread that partitions at the same time has its own.
    pub fn take(&self) -> Taken<KnownPlans> {
        self.known.take(KnownPlans::default)
    }
    /// Puts back what was taken, unless it has become too large to be copied for each program.
    pub fn put(&self, known: Taken<KnownPlans>) {
        if known.is_small() {
            self.known.leave(known, |known| known.plans.len());
        }
    }
}
