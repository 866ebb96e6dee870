//! Which rule each op carries as its `sdy.sharding_rule` attribute.

use crate::index::{Id, OpId, RuleId};

/// The rule of each op, if it has one: a dense table that takes no memory until an op has one.
#[derive(Clone, Debug, Default)]
pub struct OpRules {
    rules: Vec<RuleId>,
    num_rules: usize,
    /// All ops with a rule in `rules`, and maybe some that had one earlier.
    carriers: Vec<OpId>,
    /// The rules that propagation has set on ops that are not in `rules`; they are removed
    /// together.
    left: Vec<RuleId>,
}

impl OpRules {
    /// The rule of `op`, `NONE` if it carries none.
    #[inline]
    pub fn get(&self, op: OpId) -> RuleId {
        let own = self.own(op);
        if own.is_some() || self.left.is_empty() {
            return own;
        }
        self.left.get(op.index()).copied().unwrap_or_default()
    }
    /// Whether the rule of `op` was set by [`OpRules::leave`].
    #[inline]
    pub fn is_left(&self, op: OpId) -> bool {
        self.left.get(op.index()).is_some_and(|rule| rule.is_some())
    }
    /// Whether the op carries its rule as an attribute.
    #[inline]
    pub fn is_own(&self, op: OpId) -> bool {
        self.own(op).is_some()
    }
    #[inline]
    fn own(&self, op: OpId) -> RuleId {
        self.rules.get(op.index()).copied().unwrap_or_default()
    }
    /// Sets or removes (`NONE`) the rule of `op`; true if that changed it.
    #[inline]
    pub fn set(&mut self, op: OpId, rule: RuleId) -> bool {
        if self.get(op) == rule {
            return false;
        }
        if let Some(left) = self.left.get_mut(op.index()) {
            *left = RuleId::NONE;
        }
        let old = self.own(op);
        if old == rule {
            return true;
        }
        if op.index() >= self.rules.len() {
            self.rules.resize(op.index() + 1, RuleId::NONE);
        }
        self.num_rules += usize::from(rule.is_some());
        self.num_rules -= usize::from(old.is_some());
        if old.is_none() {
            self.carriers.push(op);
        }
        self.rules[op.index()] = rule;
        true
    }
    /// Sets `rules`, indexed by op, as propagation's rules; `NONE` for ops that carry their own.
    pub fn leave(&mut self, rules: Vec<RuleId>) {
        self.left = rules;
    }
    /// Removes the rules that [`OpRules::leave`] has set.
    pub fn remove_left(&mut self) {
        self.left = Vec::new();
    }
    /// Removes those rules carried by ops that `drop` accepts; returns the ops that carried them.
    pub fn remove_if(&mut self, drop: impl Fn(RuleId) -> bool) -> Vec<OpId> {
        let mut removed = Vec::new();
        let rules = &mut self.rules;
        self.carriers.retain(|&op| {
            let rule = std::mem::take(&mut rules[op.index()]);
            if rule.is_some() && drop(rule) {
                removed.push(op);
                return false;
            }
            rules[op.index()] = rule;
            rule.is_some()
        });
        self.num_rules -= removed.len();
        removed
    }
    /// Whether no op carries a rule.
    pub fn is_empty(&self) -> bool {
        self.num_rules == 0 && self.left.is_empty()
    }
}
