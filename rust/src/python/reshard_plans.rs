//! `shardcore._core.ReshardPlans`: plans of reshards that are shared between partitioned programs.

use crate::memoization::{CacheSlot, Taken};
use crate::spmd::PlanCache;
use pyo3::prelude::*;

/// Plans of reshards, shared between partitioned programs.
#[pyclass(name = "ReshardPlans", module = "shardcore", frozen)]
#[derive(Default)]
pub struct PyReshardPlans {
    known: CacheSlot<PlanCache>,
}

#[pymethods]
impl PyReshardPlans {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl PyReshardPlans {
    /// Takes the plans for a run, which extends them. Another thread that partitions at the same
    /// time has its own.
    pub fn take(&self) -> Taken<PlanCache> {
        self.known.take(PlanCache::default)
    }
    /// Puts plans back, unless they have become too large to be copied for each program.
    pub fn put(&self, known: Taken<PlanCache>) {
        if known.is_small() {
            self.known.leave(known, |known| known.plans.len());
        }
    }
}
