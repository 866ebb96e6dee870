//! Op sharding rules: which dims of an op's operands and results are the same factor.
//!
//! A matmul `[i,k] x [k,j] -> [i,j]` has three factors; `k` is a reduction. A reshape `[8] -> [2,4]`
//! has the compound dim `ij` on the left. A dim with no factor does not exist: size-1 factors stand
//! for dims that map to nothing.
//!
//! Source: Shardy's propagation document, "Op sharding rules".

use crate::index::{FactorId, Id, IdVec, RuleId};
use rustc_hash::FxHashMap;
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
        !self.reduction.contains(&factor)
            && !self.need_replication.contains(&factor)
            && !self.permutation.contains(&factor)
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

/// Hash-conses rules: equal rules have equal ids.
#[derive(Clone, Debug, Default)]
pub struct RuleTable {
    rules: IdVec<RuleId, Arc<OpShardingRule>>,
    ids: FxHashMap<Arc<OpShardingRule>, RuleId>,
    /// Ids by address, of rules that others hold too; they are kept alive by `shared`.
    by_address: FxHashMap<usize, RuleId>,
    shared: Vec<Arc<OpShardingRule>>,
}

impl RuleTable {
    /// The id of `rule`, new if it was never seen.
    pub fn intern(&mut self, rule: OpShardingRule) -> RuleId {
        if let Some(&id) = self.ids.get(&rule) {
            return id;
        }
        self.push(Arc::new(rule))
    }
    /// The same for a rule that is shared with others: from the second time on its address tells.
    pub fn intern_shared(&mut self, rule: &Arc<OpShardingRule>) -> RuleId {
        let address = Arc::as_ptr(rule) as usize;
        if let Some(&id) = self.by_address.get(&address) {
            return id;
        }
        let known = self.ids.get(rule).copied();
        let id = known.unwrap_or_else(|| self.push(rule.clone()));
        self.by_address.insert(address, id);
        self.shared.push(rule.clone());
        id
    }
    fn push(&mut self, rule: Arc<OpShardingRule>) -> RuleId {
        let id = self.rules.push(rule.clone());
        self.ids.insert(rule, id);
        id
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
        &self.rules[id]
    }
}
