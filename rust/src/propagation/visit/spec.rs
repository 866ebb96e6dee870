//! The spec of a visit: everything that it depends on except shardings and the kind of run.

use super::direction::{Directions, OpClass};
use crate::index::RuleId;
use crate::op_sharding_rule::RuleTable;

/// The id of a spec in the current program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpecId(pub u32);

/// Everything that a visit depends on except the shardings of the op's tensors and the kind of run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VisitSpec {
    /// The rule.
    pub rule: RuleId,
    /// How the direction depends on the op-priority step.
    pub class: OpClass,
    /// Whether each operand that is not a scalar has no other use.
    pub has_single_uses: bool,
    /// Whether the op is elementwise.
    pub is_elementwise: bool,
    /// Whether sub-axes may not propagate.
    pub is_conservative: bool,
}

impl VisitSpec {
    /// The directions in which visits propagate.
    pub fn directions(self, rules: &RuleTable) -> Directions {
        Directions::new(self.class, self.has_single_uses, &rules[self.rule])
    }
}
