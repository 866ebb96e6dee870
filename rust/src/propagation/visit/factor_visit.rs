//! A visit as the strategies see it: what is given beside the factor table.

use crate::index::FactorId;
use crate::ir::Direction;
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;

/// A visit once its factor table is there.
pub struct FactorVisit<'a> {
    pub rule: &'a OpShardingRule,
    pub mesh: &'a Mesh,
    /// The factors that tensors differ in. What propagates along others is a prefix of what all have.
    pub factors: &'a [FactorId],
    /// For each factor of the rule.
    pub directions: &'a [Direction],
    pub conservative: bool,
    pub is_elementwise: bool,
}
