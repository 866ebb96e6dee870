//! Reductions along sharded dims: devices reduce their shards, then reduce the partial results over devices.

pub(super) mod arg_reduce;
pub(super) mod log_add_exp;
pub(super) mod reduce;
pub(super) mod sharded_sum_table;
pub(super) mod sharded_sums;
pub(super) mod top_k;
