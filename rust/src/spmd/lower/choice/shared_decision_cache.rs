//! A cache of strategies across programs, for partitioning a program again with other shardings: only ops whose tensors have other
//! placements are decided anew.
//!
//! Keys are by content: the texts of signatures and types, and the contents of rules. A decision about a custom call, or about an
//! op with regions other than known reducers, depends on more, and is not shared. Placement numbers are not those of one program:
//! placements are shared along with the decisions.

use crate::index::OpId;
use crate::ir::{is_portable, OpKind, Program};
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::devices::Devices;
use crate::spmd::digits::Digit;
use crate::spmd::lower::choice::decision_cache::{Decision, Key, Origin};
use crate::spmd::lower::emission::local_value::LocalValue;
use crate::spmd::lower::options::How;
use crate::spmd::placement::PlacementId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The decisions of lowerings that share placement numbers.
#[derive(Debug, Default)]
pub(in crate::spmd) struct SharedDecisions {
    /// The options and devices of lowerings.
    settings: Vec<(How, Vec<Mesh>)>,
    /// Decisions by the hashes of what they depend on.
    known: FxHashMap<u64, Vec<(SharedKey, Arc<Decision>)>>,
    num_known: usize,
    /// Stages of reshards, by the digits along which XLA's partitioner groups devices.
    pub stages: FxHashMap<Vec<Digit>, u32>,
}

/// The key of a decision: all that it depends on.
#[derive(Debug)]
struct SharedKey {
    /// The number of the options and devices.
    setting: usize,
    /// The texts of the signature, and of the types of operands, results, and the operands of broadcasts.
    text: String,
    rule: OpShardingRule,
    placements: Vec<PlacementId>,
    facts: Vec<i64>,
    free_digits: Vec<Digit>,
    /// The operands that are broadcasts: index, placement of the value that is broadcast, and dims.
    origins: Vec<(usize, PlacementId, Vec<i64>)>,
    /// For each operand the first operand that is the same value.
    same: Vec<usize>,
}

/// The most decisions that are kept.
const MAX_DECISIONS: usize = 1 << 12;

/// The most options and devices whose decisions are kept.
const MAX_SETTINGS: usize = 16;

impl SharedDecisions {
    /// The number of the options `how` with `devices`.
    pub fn setting(&mut self, how: How, devices: &Devices) -> usize {
        let is_full = self.num_known >= MAX_DECISIONS || self.stages.len() >= MAX_DECISIONS;
        if is_full || self.settings.len() >= MAX_SETTINGS {
            *self = Self::default();
        }
        let is_same =
            |(other, orders): &(How, Vec<Mesh>)| *other == how && orders == devices.orders();
        self.settings.iter().position(is_same).unwrap_or_else(|| {
            self.settings.push((how, devices.orders().to_vec()));
            self.settings.len() - 1
        })
    }
    /// The decision for the key `sought`.
    pub(in crate::spmd::lower) fn get(&self, sought: &Sought) -> Option<Arc<Decision>> {
        let known = self.known.get(&sought.hash())?;
        let found = known.iter().find(|(key, _)| sought.has(key));
        found.map(|(_, decision)| Arc::clone(decision))
    }
    /// Adds the decision for the key `sought`, which has none, if there is room for it.
    pub(in crate::spmd::lower) fn add(&mut self, sought: &Sought, decision: &Arc<Decision>) {
        if self.num_known < MAX_DECISIONS {
            let Some(key) = sought.key() else { return };
            self.known.entry(sought.hash()).or_default().push((key, Arc::clone(decision)));
            self.num_known += 1;
        }
    }
}

/// A key that borrows from its program: a look-up copies nothing.
pub(in crate::spmd::lower) struct Sought<'a> {
    setting: usize,
    program: &'a Program,
    /// The text of the signature.
    signature: &'a str,
    rule: &'a OpShardingRule,
    own: &'a Key,
    operands: &'a [LocalValue],
}

impl<'a> Sought<'a> {
    /// The key of the decision about `op`, whose key within its program is `own`; `None` if the decision is not shared.
    pub(in crate::spmd::lower) fn of(
        setting: usize,
        program: &'a Program,
        op: OpId,
        own: &'a Key,
        operands: &'a [LocalValue],
    ) -> Option<Self> {
        // The facts say all of a region of known reducers.
        let is_told = matches!(program.kind(op), OpKind::Reduce | OpKind::Scatter)
            && own.facts.first().is_some_and(|&reducer| reducer >= 0);
        // Reversals bring orders of devices of their own.
        let is_apart = (program.num_regions(op) > 0 && !is_told)
            || program.kind(op) == OpKind::CustomCall
            || program.op_name(op) == "stablehlo.reverse";
        if is_apart {
            return None;
        }
        let rule = &program.rules()[own.rule.get()?];
        let signature = program.signatures().key(own.signature.get()?);
        Some(Self { setting, program, signature, rule, own, operands })
    }
    /// The texts of the types.
    fn types(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (own, program) = (self.own, self.program);
        let types = own.types.iter().chain(own.origins.iter().map(|origin| &origin.2));
        types.map(|&ty| program.type_text(ty))
    }
    /// For each operand the first operand that is the same value.
    fn same(&self) -> impl Iterator<Item = usize> + use<'a> {
        let operands = self.operands;
        operands.iter().map(|held| {
            let first = operands.iter().position(|other| other.shard() == held.shard());
            first.unwrap_or_default()
        })
    }
    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.signature.hash(&mut hasher);
        // The rule mostly follows from the signature.
        let Key { placements, facts, free_digits, origins, .. } = self.own;
        (self.setting, placements, facts, free_digits).hash(&mut hasher);
        self.types().for_each(|ty| ty.hash(&mut hasher));
        for origin in origins {
            (origin.0, origin.1).hash(&mut hasher);
        }
        hasher.finish()
    }
    /// Whether `key` equals this one.
    fn has(&self, key: &SharedKey) -> bool {
        let Key { placements, facts, free_digits, origins, .. } = self.own;
        let is_same = |(index, placement, dims): &(usize, PlacementId, Vec<i64>), own: &Origin| {
            (*index, *placement, &dims[..]) == (own.0, own.1, &own.3[..])
        };
        self.has_text(&key.text)
            && (key.setting, &key.placements, &key.facts) == (self.setting, placements, facts)
            && key.free_digits == *free_digits
            && key.origins.len() == origins.len()
            && key.origins.iter().zip(origins).all(|(known, own)| is_same(known, own))
            && key.same.iter().copied().eq(self.same())
            && key.rule == *self.rule
    }
    /// Whether `text` is that of the signature and the types.
    fn has_text(&self, text: &str) -> bool {
        let rest = text.strip_prefix(self.signature);
        let rest = self.types().fold(rest, |rest, ty| rest?.strip_prefix('\0')?.strip_prefix(ty));
        rest == Some("")
    }
    /// An owned copy of this key; `None` if it has another meaning in other programs.
    fn key(&self) -> Option<SharedKey> {
        let mut text = self.signature.to_owned();
        for ty in self.types() {
            text.push('\0');
            text.push_str(ty);
        }
        let Key { placements, facts, free_digits, origins, .. } = self.own;
        let origins = origins.iter().map(|origin| (origin.0, origin.1, origin.3.to_vec()));
        is_portable(&text).then(|| SharedKey {
            setting: self.setting,
            text,
            rule: self.rule.clone(),
            placements: placements.clone(),
            facts: facts.clone(),
            free_digits: free_digits.clone(),
            origins: origins.collect(),
            same: self.same().collect(),
        })
    }
}
