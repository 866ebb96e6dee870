//! Ops whose operands are indices: gathers, scatters and dynamic slices.

pub(super) mod dynamic_slices;
pub(super) mod on_indexed_dims;
