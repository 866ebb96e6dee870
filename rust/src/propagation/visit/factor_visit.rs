//! The input of a visit strategy besides the factor table.

use crate::index::FactorId;
use crate::ir::Direction;
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;

/// A visit for which the factor table has been computed.
pub struct FactorVisit<'a> {
    pub rule: &'a OpShardingRule,
    pub mesh: &'a Mesh,
    /// The factors in which tensors differ. Along other factors nothing can propagate.
    pub factors: &'a [FactorId],
    /// The direction of each factor of the rule.
    pub directions: &'a [Direction],
    pub conservative: bool,
    pub is_elementwise: bool,
}
