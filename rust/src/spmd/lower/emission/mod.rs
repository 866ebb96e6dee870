//! The local ops and values that are made, and those that are made as before.

pub(super) mod compute_on_shards;
pub(super) mod local_value;
pub(super) mod repeated_op_table;
pub(super) mod repeated_ops;
pub(super) mod value_table;
