//! The choice of a strategy for each op.
//!
//! [`partition_rules`], [`factor_abilities`] and [`factor_placements`] say what is possible, [`candidates`] lists the strategies to
//! try and what each sends, [`xla`] says which one XLA's partitioner takes; [`op_strategy`] chooses, once for all ops with the same
//! inputs.

pub(super) mod candidates;
pub(super) mod decision_cache;
pub(super) mod factor_abilities;
pub(super) mod factor_placements;
pub(super) mod op_strategy;
pub(super) mod partition_rules;
pub(in crate::spmd) mod shared_decision_cache;
pub(super) mod user_placement;
pub(super) mod xla;
pub(super) mod xla_contraction;
pub(super) mod xla_gather_scatter;
