//! Builds local ops, and reuses those that were built earlier for an equal op or value.

pub(super) mod compute_on_shards;
pub(super) mod local_value;
pub(super) mod repeated_op_table;
pub(super) mod repeated_ops;
pub(super) mod value_table;
