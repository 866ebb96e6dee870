//! `shardcore._core.ReshardPlans`: plans of reshards that lowerings share.

use crate::spmd::KnownPlans;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Plans of reshards, which lowerings share.
#[pyclass(name = "ReshardPlans", module = "shardcore", frozen)]
#[derive(Default)]
pub struct PyReshardPlans {
    known: Mutex<KnownPlans>,
}

#[pymethods]
impl PyReshardPlans {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl PyReshardPlans {
    /// The plans, taken out while they are extended. Another thread that partitions at the same time starts without.
    pub fn take(&self) -> KnownPlans {
        std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// Puts back what was taken, unless it has become too large to be copied for each program.
    pub fn put(&self, known: KnownPlans) {
        if known.is_small() {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
    }
}
