//! Replaces composites by their decompositions.

use super::room::room_for_copy;
use crate::inlining::call_inliner::Inlined;
use crate::ir::{OpKind, Program};
use pyo3::prelude::*;
use std::sync::Arc;

/// `program` with its composites replaced by their decompositions, as XLA has it before
/// propagation.
pub fn without_composites(py: Python<'_>, program: Arc<Program>) -> PyResult<Arc<Program>> {
    if !program.has_any(&[OpKind::Composite]) {
        return Ok(program);
    }
    room_for_copy(py, &program)?;
    Ok(Arc::new(py.detach(|| Inlined::composites(&program).into_parts().0)))
}
