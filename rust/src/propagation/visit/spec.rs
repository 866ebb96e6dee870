//! What a visit depends on beside shardings.

use super::direction::{Directions, OpClass};
use crate::index::RuleId;
use crate::rule::RuleTable;

/// The number of a spec in the program at hand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpecId(pub u32);

/// What a visit depends on, beside the shardings of the op's tensors and the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VisitSpec {
    /// The rule.
    pub rule: RuleId,
    /// How its direction depends on the step.
    pub class: OpClass,
    /// Whether each operand that is not a scalar has no other use.
    pub has_single_uses: bool,
    /// Whether the op is elementwise.
    pub is_elementwise: bool,
    /// Whether sub-axes may not propagate.
    pub is_conservative: bool,
}

impl VisitSpec {
    /// In which directions it propagates.
    pub fn directions(self, rules: &RuleTable) -> Directions {
        Directions::new(self.class, self.has_single_uses, &rules[self.rule])
    }
}
