//! SSA names: which value a name stands for, and how values are called.

mod binding;
pub(super) mod scopes;
pub(super) mod text;
