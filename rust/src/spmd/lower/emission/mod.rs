//! Builds local ops, and reuses those that were built for an op or a value before.

pub(super) mod compute_on_shards;
pub(super) mod local_value;
pub(super) mod repeated_op_table;
pub(super) mod repeated_ops;
pub(super) mod value_table;
