//! `shardcore._core.Originals`: for each op and value of a program with inlined calls, its
//! original.

use crate::inlining::call_inliner::Originals;
use pyo3::prelude::*;
use std::sync::Arc;

/// The originals of the clones in a program whose calls were inlined.
#[pyclass(name = "Originals", module = "shardcore", frozen)]
pub struct PyOriginals(pub(super) Arc<Originals>);
