//! Reshards of values, and collectives of `sdy` in the program.

pub(super) mod device_orders;
pub(super) mod placements;
pub(super) mod plan_table;
pub(super) mod reshard;
pub(super) mod sdy_collectives;
pub(super) mod single_device;
