//! Ops that read or write where indices say.

pub(super) mod dynamic_slices;
pub(super) mod on_indexed_dims;
