//! Which rule each op carries as its `sdy.sharding_rule` attribute.

use crate::index::{Id, OpId, RuleId};

/// A rule or none for each op: dense, and without memory as long as no op has one.
#[derive(Clone, Debug, Default)]
pub struct OpRules {
    rules: Vec<RuleId>,
    num_rules: usize,
}

impl OpRules {
    /// The rule of `op`, `NONE` if it carries none.
    #[inline]
    pub fn get(&self, op: OpId) -> RuleId {
        self.rules.get(op.index()).copied().unwrap_or_default()
    }
    /// Sets or removes (`NONE`) the rule of `op`; true if that changed it.
    #[inline]
    pub fn set(&mut self, op: OpId, rule: RuleId) -> bool {
        let old = self.get(op);
        if old == rule {
            return false;
        }
        if op.index() >= self.rules.len() {
            self.rules.resize(op.index() + 1, RuleId::NONE);
        }
        self.num_rules += usize::from(rule.is_some());
        self.num_rules -= usize::from(old.is_some());
        self.rules[op.index()] = rule;
        true
    }
    /// Removes the rules that `drop` accepts, which is told the ops that carry them.
    pub fn remove_if(&mut self, mut drop: impl FnMut(OpId, RuleId) -> bool) {
        for (index, rule) in self.rules.iter_mut().enumerate() {
            if rule.is_some() && drop(OpId::from_index(index), *rule) {
                *rule = RuleId::NONE;
                self.num_rules -= 1;
            }
        }
    }
    /// Whether no op carries a rule.
    pub fn is_empty(&self) -> bool {
        self.num_rules == 0
    }
}
