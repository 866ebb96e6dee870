//! Builds an op sharding rule factor by factor.
//!
//! A factor that does not fit the shapes (such as a dim that a tensor does not have) makes the rule
//! invalid: [`RuleBuilder::build`] then returns `None`, so that malformed ops have no rule.

use super::view::SignatureView;
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};

/// The kind of a factor: what is needed to compute the op on shards along it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FactorKind {
    /// Each device computes its shard; no communication is needed.
    PassThrough,
    /// Partial results are reduced across devices.
    Reduction,
    /// The factor has to be replicated first.
    NeedReplication,
    /// Devices exchange parts of their shards, as in a collective permute.
    Permutation,
}

/// A rule that is being built.
#[derive(Debug)]
pub struct RuleBuilder {
    rule: OpShardingRule,
    is_invalid: bool,
    /// The number of scalar operands after those that factors are added to.
    num_scalars: usize,
}

impl RuleBuilder {
    /// Starts a rule without factors, for tensors of these shapes.
    pub fn new(view: &SignatureView<'_>) -> Self {
        let mut operands: Vec<TensorMapping> =
            view.ranks().map(|rank| TensorMapping { dims: vec![Vec::new(); rank] }).collect();
        let results = operands.split_off(view.num_operands());
        Self::with_mappings(operands, results)
    }

    /// Starts a rule without factors for an op whose operands from the `num_operands`-th on are
    /// scalars, such as the start indices of a dynamic slice, whose number is the rank.
    pub fn with_scalars_after(num_operands: usize, view: &SignatureView<'_>) -> Self {
        let mut builder = Self::new(view);
        let operands = &mut builder.rule.operands;
        let scalars = operands.split_off(num_operands.min(operands.len()));
        builder.is_invalid = scalars.iter().any(|scalar| !scalar.dims.is_empty());
        builder.num_scalars = scalars.len();
        builder
    }

    /// Starts a rule with these mappings; the caller adds their factors in order.
    pub fn with_mappings(operands: Vec<TensorMapping>, results: Vec<TensorMapping>) -> Self {
        let rule = OpShardingRule { operands, results, ..OpShardingRule::default() };
        Self { rule, is_invalid: false, num_scalars: 0 }
    }

    /// Whether a result has `factor`.
    pub fn is_in_result(&self, factor: FactorId) -> bool {
        self.rule.results.iter().any(|result| result.contains(factor))
    }

    /// Adds a factor that is not in any dim yet.
    pub fn reserve(&mut self, size: i64, kind: FactorKind) -> FactorId {
        let factor = FactorId::from_index(self.rule.factor_sizes.len());
        self.rule.factor_sizes.push(size);
        match kind {
            FactorKind::PassThrough => {}
            FactorKind::Reduction => self.rule.reduction.push(factor),
            FactorKind::NeedReplication => self.rule.need_replication.push(factor),
            FactorKind::Permutation => self.rule.permutation.push(factor),
        }
        factor
    }

    /// Adds a factor of these operand and result dims: one entry for each tensor, `None` if the
    /// tensor does not have it. A factor of size 1 is left out of a dim that has another factor
    /// already. An op may have fewer tensors than entries, such as a custom call with an optional
    /// result.
    pub fn factor(
        &mut self,
        operand_dims: &[Option<usize>],
        result_dims: &[Option<usize>],
        size: i64,
        kind: FactorKind,
    ) -> &mut Self {
        let factor = self.reserve(size, kind);
        let rule = &mut self.rule;
        self.is_invalid |=
            rule.operands.len() > operand_dims.len() || rule.results.len() > result_dims.len();
        let tensors = rule.operands.iter_mut().zip(operand_dims);
        for (tensor, dim) in tensors.chain(rule.results.iter_mut().zip(result_dims)) {
            let Some(dim) = *dim else { continue };
            match tensor.dims.get_mut(dim) {
                Some(factors) if size == 1 && !factors.is_empty() => {}
                Some(factors) => factors.push(factor),
                None => self.is_invalid = true,
            }
        }
        self
    }

    /// Adds a factor of dim `dim` of every tensor that is not a scalar.
    pub fn everywhere(&mut self, dim: usize, size: i64, kind: FactorKind) -> &mut Self {
        let factor = self.reserve(size, kind);
        let Self { rule, is_invalid, .. } = self;
        add_to_all(&mut rule.operands, dim, factor, is_invalid);
        add_to_all(&mut rule.results, dim, factor, is_invalid);
        self
    }

    /// Adds a factor of dim `dim` of every operand that is not a scalar.
    pub fn all_operands(&mut self, dim: usize, size: i64, kind: FactorKind) -> &mut Self {
        let factor = self.reserve(size, kind);
        add_to_all(&mut self.rule.operands, dim, factor, &mut self.is_invalid);
        self
    }

    /// Adds a factor of dim `dim` of every result that is not a scalar.
    pub fn all_results(&mut self, dim: usize, size: i64, kind: FactorKind) -> &mut Self {
        let factor = self.reserve(size, kind);
        add_to_all(&mut self.rule.results, dim, factor, &mut self.is_invalid);
        self
    }

    /// Adds a pass-through factor of all tensors for each dim of `shape`.
    pub fn pointwise(&mut self, shape: &[i64]) -> &mut Self {
        for (dim, &size) in shape.iter().enumerate() {
            self.everywhere(dim, size, FactorKind::PassThrough);
        }
        self
    }

    /// Adds a factor of all tensors for each dim of `shape`: pass-through if `other_shape` has the
    /// same size there, else of this kind, and blocked if `is_blocked`.
    pub fn pointwise_or(
        &mut self,
        shape: &[i64],
        other_shape: &[i64],
        mismatch: FactorKind,
        is_blocked: bool,
    ) -> &mut Self {
        self.is_invalid |= shape.len() != other_shape.len();
        for (dim, (&size, &other)) in shape.iter().zip(other_shape).enumerate() {
            if size == other {
                self.everywhere(dim, size, FactorKind::PassThrough);
            } else {
                self.everywhere(dim, size, mismatch).blocked_if(is_blocked);
            }
        }
        self
    }

    /// Blocks the last factor if `is_blocked`: nothing propagates along it.
    pub fn blocked_if(&mut self, is_blocked: bool) -> &mut Self {
        if is_blocked {
            let last = self.rule.factor_sizes.len() - 1;
            self.rule.blocked.push(FactorId::from_index(last));
        }
        self
    }

    /// Builds the rule: each dim without a factor gets one of size 1, after all others. `None` if a
    /// factor did not fit the shapes.
    pub fn build(&mut self) -> Option<OpShardingRule> {
        let mut rule = std::mem::take(&mut self.rule);
        let sizes = &mut rule.factor_sizes;
        for tensor in rule.operands.iter_mut().chain(&mut rule.results) {
            for factors in tensor.dims.iter_mut().filter(|factors| factors.is_empty()) {
                factors.push(FactorId::from_index(sizes.len()));
                sizes.push(1);
            }
        }
        rule.operands.extend((0..self.num_scalars).map(|_| TensorMapping::default()));
        (!self.is_invalid).then_some(rule)
    }
}

fn add_to_all(tensors: &mut [TensorMapping], dim: usize, factor: FactorId, is_invalid: &mut bool) {
    for tensor in tensors.iter_mut().filter(|tensor| !tensor.dims.is_empty()) {
        match tensor.dims.get_mut(dim) {
            // Most dims have one factor.
            Some(factors) if factors.is_empty() => *factors = vec![factor],
            Some(factors) => factors.push(factor),
            None => *is_invalid = true,
        }
    }
}
