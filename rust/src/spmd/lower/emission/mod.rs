//! The local ops and values that are made, and those that are made as before.

pub(super) mod compute_on_shards;
pub(super) mod held_shard;
pub(super) mod known_repeated_ops;
pub(super) mod repeated_ops;
pub(super) mod value_table;
