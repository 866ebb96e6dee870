//! Equivalence of rules: visits by equivalent rules have the same outcomes.
//!
//! A strategy that does not use exact factor sizes
//! ([`crate::propagation::visit::strategy::StrategyGuarantees`]) uses sizes for two things: to
//! split axes among the factors of a dim with several factors, and to compare tensors by size.
//! Rules whose dims have at most one factor each, and whose tensors compare by size in the same
//! way, are therefore equivalent; the rules of additions of different shapes are an example. All
//! rules of a class are replaced by one of them, its representative. So the memo is useful even in
//! a program whose ops all have different shapes.

use crate::index::{Id, RuleId};
use crate::memoization::Memo;
use crate::op_sharding_rule::{OpShardingRule, RuleTable, SharedRule};
use rustc_hash::FxHashMap;

/// Rules with more tensors than this are not compared with others.
const MAX_TENSORS: usize = 64;

/// The most rules whose representatives are stored.
const MAX_RULES: usize = 1 << 15;

/// The classes.
#[derive(Clone, Default)]
pub struct RuleEquivalence {
    /// The representatives of all classes.
    rules: RuleTable,
    /// Whether each rule of the current program is its own representative.
    is_exact: bool,
    /// For each rule of the current program its representative, `NONE` if not known yet.
    representatives: Vec<RuleId>,
    by_description: Memo<RuleId>,
    /// Representatives of rules of this program and earlier ones, at most [`MAX_RULES`], since
    /// computing one takes about a dozen memory accesses.
    by_rule: FxHashMap<SharedRule, RuleId>,
    sizes: Vec<i64>,
    /// For each factor one more than the index of the last tensor that had it.
    seen: Vec<u32>,
}

impl RuleEquivalence {
    /// The representatives of all classes.
    pub fn rules(&self) -> &RuleTable {
        &self.rules
    }
    /// Starts another program. If `is_exact`, some of its visits use exact factor sizes, and each
    /// rule is its own representative.
    pub fn start_program(&mut self, is_exact: bool) {
        self.is_exact = is_exact;
        self.representatives.clear();
    }
    /// Removes the rules of the current program, except representatives.
    pub fn forget_program(&mut self) {
        self.representatives = Vec::new();
    }
    /// The representative, an id of [`RuleEquivalence::rules`], of `rule`, an id of `rules`.
    #[inline]
    pub fn representative(&mut self, rules: &RuleTable, rule: RuleId) -> RuleId {
        match self.representatives.get(rule.index()).copied().and_then(RuleId::get) {
            Some(known) => known,
            None => self.find(rules, rule),
        }
    }

    #[cold]
    fn find(&mut self, rules: &RuleTable, rule: RuleId) -> RuleId {
        if self.representatives.len() <= rule.index() {
            self.representatives.resize(rules.len().max(rule.index() + 1), RuleId::NONE);
        }
        let shared = rules.shared(rule);
        let found = if self.is_exact {
            self.rules.intern_shared(shared)
        } else {
            let known = self.by_rule.get(shared).copied();
            known.unwrap_or_else(|| self.find_new(shared))
        };
        self.representatives[rule.index()] = found;
        found
    }

    fn find_new(&mut self, rule: &SharedRule) -> RuleId {
        let mut key = self.by_description.key();
        let first = if self.describe(rule, &mut key).is_none() {
            self.rules.intern_shared(rule)
        } else {
            self.by_description.find(key).unwrap_or_else(|key| {
                let first = self.rules.intern_shared(rule);
                self.by_description.add(key, first)
            })
        };
        if self.by_rule.len() < MAX_RULES {
            self.by_rule.insert(rule.clone(), first);
        }
        first
    }

    /// Writes what visits can tell of `rule` into `key`; `None` if no other rule can be equivalent.
    fn describe(&mut self, rule: &OpShardingRule, key: &mut Vec<u32>) -> Option<()> {
        self.sizes.clear();
        if rule.operands.len() + rule.results.len() > MAX_TENSORS {
            return None;
        }
        key.extend([rule.num_factors(), rule.operands.len()].map(|count| count as u32));
        for list in [&rule.reduction, &rule.need_replication, &rule.permutation, &rule.blocked] {
            key.push(list.len() as u32);
            key.extend(list.iter().map(|factor| factor.index() as u32));
        }
        self.seen.clear();
        self.seen.resize(rule.num_factors(), 0);
        for (tensor_number, tensor) in (1..).zip(rule.tensors()) {
            key.push(tensor.dims.len() as u32);
            let mut size = 1i64;
            for dim in &tensor.dims {
                match dim.as_slice() {
                    [] => key.push(u32::MAX),
                    &[factor] => {
                        // A rule in which a tensor has a factor twice has no equivalent rules.
                        let seen = &mut self.seen[factor.index()];
                        if std::mem::replace(seen, tensor_number) == tensor_number {
                            return None;
                        }
                        key.push(factor.index() as u32);
                        size = size.checked_mul(rule.factor_size(factor))?;
                    }
                    _ => return None,
                }
            }
            if size < 0 {
                return None;
            }
            self.sizes.push(size);
        }
        // The key has the rank of each size.
        for size in &self.sizes {
            key.push(self.sizes.iter().filter(|&other| other < size).count() as u32);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::FactorId;

    #[test]
    fn sizes_count_only_where_they_compare() {
        let mut rules = RuleTable::default();
        let mut equivalence = RuleEquivalence::default();
        let mut dot = |m, n, k| {
            let factors = |list: &[u32]| list.iter().map(|&f| vec![FactorId::new(f)]).collect();
            let tensor =
                |list: &[u32]| crate::op_sharding_rule::TensorMapping { dims: factors(list) };
            let id = rules.intern(OpShardingRule {
                factor_sizes: vec![m, n, k],
                operands: vec![tensor(&[0, 2]), tensor(&[2, 1])],
                results: vec![tensor(&[0, 1])],
                reduction: vec![FactorId::new(2)],
                ..OpShardingRule::default()
            });
            equivalence.representative(&rules, id)
        };
        let first = dot(2, 4, 8);
        assert_eq!(dot(3, 5, 7), first);
        assert_ne!(dot(4, 2, 8), first);
        assert_ne!(dot(4, 4, 8), first);
    }

    #[test]
    fn exact_rules_stand_for_themselves() {
        let mut rules = RuleTable::default();
        let mut equivalence = RuleEquivalence::default();
        let mut ids = [8, 16].map(|size| rules.intern(OpShardingRule::identity(&[size], 1, 1)));
        let mut representatives = |is_exact| {
            equivalence.start_program(is_exact);
            ids.reverse();
            ids.map(|id| equivalence.representative(&rules, id))
        };
        let [a, b] = representatives(false);
        assert_eq!(a, b);
        let [c, d] = representatives(true);
        assert_ne!(c, d);
        assert_eq!(representatives(false), [a, b]);
    }
}
