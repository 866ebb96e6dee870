//! The decomposition of a rule of a wide op into components, which is independent of shardings.

use super::components::{components, SubRule};
use crate::index::RuleId;
use crate::op_sharding_rule::{OpShardingRule, RuleTable, TensorMapping};
use rustc_hash::FxHashMap;

/// With more mappings in a component than this, a visit does not go through all groups of tensors.
const MANY_MAPPINGS: usize = 64;

/// A rule, decomposed.
pub struct RuleDecomposition {
    /// Its components: tensors that share factors, directly or through others.
    pub components: Vec<RuleComponent>,
    /// For each tensor its component, and its index there.
    pub places: Vec<Option<(u32, u32)>>,
    /// Whether some dim has several factors.
    pub has_splits: bool,
}

/// A component of a rule.
pub struct RuleComponent {
    /// The rule of the component.
    pub rule: RuleId,
    /// The tensors of the component, in order.
    pub tensors: Vec<u32>,
    /// For each tensor the first one on the same side (operands or results) with the same mapping.
    pub firsts: Vec<u32>,
    num_mappings: usize,
}

impl RuleDecomposition {
    /// Decomposes rule `id`.
    pub fn of(rules: &mut RuleTable, id: RuleId) -> Self {
        let rule = &rules[id];
        let num_tensors = rule.operands.len() + rule.results.len();
        let has_splits = rule.tensors().any(|tensor| tensor.dims.iter().any(|dim| dim.len() > 1));
        let mut split = components(rule);
        split.retain(|sub| !sub.tensors.is_empty());
        let components: Vec<RuleComponent> = if split.len() > 1 {
            let component = |SubRule { tensors, rule }| {
                let firsts = firsts(&rule);
                RuleComponent::new(rules.intern(rule), tensors, firsts)
            };
            split.into_iter().map(component).collect()
        } else {
            let tensors = (0..num_tensors as u32).collect();
            vec![RuleComponent::new(id, tensors, firsts(rule))]
        };
        let mut places = vec![None; num_tensors];
        for (component, RuleComponent { tensors, .. }) in components.iter().enumerate() {
            for (number, &tensor) in tensors.iter().enumerate() {
                places[tensor as usize] = Some((component as u32, number as u32));
            }
        }
        Self { components, places, has_splits }
    }
}

impl RuleComponent {
    fn new(rule: RuleId, tensors: Vec<u32>, firsts: Vec<u32>) -> Self {
        let num_mappings = (0..).zip(&firsts).filter(|&(index, &first)| index == first).count();
        Self { rule, tensors, firsts, num_mappings }
    }
    /// Whether the component has many different mappings.
    pub fn has_many_mappings(&self) -> bool {
        self.num_mappings > MANY_MAPPINGS.max(self.tensors.len() / 8)
    }
}

/// For each tensor the first one on the same side (operands or results) with the same mapping.
fn firsts(rule: &OpShardingRule) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(rule.operands.len() + rule.results.len());
    let mut start = 0;
    for side in [&rule.operands, &rule.results] {
        let mut known: FxHashMap<&TensorMapping, u32> = FxHashMap::default();
        for (index, mapping) in side.iter().enumerate() {
            firsts.push(*known.entry(mapping).or_insert(start + index as u32));
        }
        start += side.len() as u32;
    }
    firsts
}
