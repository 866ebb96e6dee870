//! What ops mean beyond their form: symbols, meshes, shardings, rules, calls.

pub(super) mod notes;
pub(super) mod resolve;
mod structure;
pub(super) mod target;
