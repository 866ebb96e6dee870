//! Op sharding rules: which dims of an op's operands and results are the same factor.
//!
//! A matmul `[i,k] x [k,j] -> [i,j]` has three factors; `k` is a reduction. A reshape
//! `[8] -> [2,4]` has the compound dim `ij` on the left. Every dim has a factor: one that
//! corresponds to no other dim has a factor of its own.
//!
//! Source: Shardy's propagation document, "Op sharding rules".

use crate::index::{FactorId, Id, IdVec, RuleId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The factors of each dim of one tensor, major to minor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TensorMapping {
    /// For each dim its factors, major to minor.
    pub dims: Vec<Vec<FactorId>>,
}

impl TensorMapping {
    /// Whether any dim has `factor`.
    pub fn contains(&self, factor: FactorId) -> bool {
        self.dims.iter().any(|dim| dim.contains(&factor))
    }
}

/// The rule of one op.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OpShardingRule {
    /// Size of each factor.
    pub factor_sizes: Vec<i64>,
    /// Operand dims by factors.
    pub operands: Vec<TensorMapping>,
    /// Result dims by factors.
    pub results: Vec<TensorMapping>,
    /// Factors that are summed away (sorted).
    pub reduction: Vec<FactorId>,
    /// Factors that have to be replicated to compute the op (sorted).
    pub need_replication: Vec<FactorId>,
    /// Factors that need a permutation of shards when sharded (sorted).
    pub permutation: Vec<FactorId>,
    /// Factors along which nothing propagates (sorted).
    pub blocked: Vec<FactorId>,
    /// Whether a user wrote it; such a rule is kept through the pipeline.
    pub is_custom: bool,
}

impl OpShardingRule {
    /// Number of factors.
    pub fn num_factors(&self) -> usize {
        self.factor_sizes.len()
    }
    /// Size of `factor`.
    pub fn factor_size(&self, factor: FactorId) -> i64 {
        self.factor_sizes[factor.index()]
    }
    /// Whether `factor` is neither a reduction nor needs replication nor a permutation.
    pub fn is_pass_through(&self, factor: FactorId) -> bool {
        let has = |list: &[FactorId]| list.binary_search(&factor).is_ok();
        !has(&self.reduction) && !has(&self.need_replication) && !has(&self.permutation)
    }
    /// All tensors' mappings: operands, then results.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorMapping> {
        self.operands.iter().chain(&self.results)
    }
    /// The rule of an op whose tensors all have the same shape: one factor a dim.
    pub fn identity(shape: &[i64], num_operands: usize, num_results: usize) -> Self {
        let dims = (0..shape.len()).map(|dim| vec![FactorId::from_index(dim)]).collect();
        let mapping = TensorMapping { dims };
        Self {
            factor_sizes: shape.to_vec(),
            operands: vec![mapping.clone(); num_operands],
            results: vec![mapping; num_results],
            ..Self::default()
        }
    }
}

/// A rule shared by several tables, with its hash, which is slow to compute.
#[derive(Clone, Debug)]
pub struct SharedRule {
    hash: u64,
    rule: Arc<OpShardingRule>,
}

impl From<OpShardingRule> for SharedRule {
    fn from(rule: OpShardingRule) -> Self {
        Self { hash: FxBuildHasher.hash_one(&rule), rule: Arc::new(rule) }
    }
}

impl Hash for SharedRule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for SharedRule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rule, &other.rule) || self.hash == other.hash && self.rule == other.rule
    }
}

impl Eq for SharedRule {}

impl Deref for SharedRule {
    type Target = OpShardingRule;
    fn deref(&self) -> &OpShardingRule {
        &self.rule
    }
}

/// Hash-conses rules: equal rules have equal ids.
#[derive(Clone, Debug, Default)]
pub struct RuleTable {
    rules: IdVec<RuleId, SharedRule>,
    ids: FxHashMap<SharedRule, RuleId>,
}

impl RuleTable {
    /// The id of `rule`, new if it was never seen.
    pub fn intern(&mut self, rule: OpShardingRule) -> RuleId {
        self.intern_shared(&rule.into())
    }
    /// The id of a shared rule, new if it was never seen.
    pub fn intern_shared(&mut self, rule: &SharedRule) -> RuleId {
        if let Some(&id) = self.ids.get(rule) {
            return id;
        }
        let id = self.rules.push(rule.clone());
        self.ids.insert(rule.clone(), id);
        id
    }
    /// The rule of `id`, for another table.
    pub fn shared(&self, id: RuleId) -> &SharedRule {
        &self.rules[id]
    }
    /// How many different rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl std::ops::Index<RuleId> for RuleTable {
    type Output = OpShardingRule;
    fn index(&self, id: RuleId) -> &OpShardingRule {
        &self.rules[id].rule
    }
}
