//! Values that devices recompute rather than send: those that depend on no argument, and broadcasts.

pub(super) mod argument_free;
pub(super) mod argument_free_table;
pub(super) mod broadcast_table;
pub(super) mod broadcasts;
pub(super) mod no_operands;
