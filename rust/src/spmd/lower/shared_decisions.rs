//! Decisions that lowerings share, so that a program that is partitioned again, with other shardings, is decided anew only where
//! these differ.
//!
//! They are known by content: signatures and types by their texts, rules by what they say. A decision about an op with regions,
//! or about a custom call, depends on more, and is not shared. Nor are the numbers of placements those of one program: the
//! placements are shared along with the decisions.

use super::super::devices::Devices;
use super::super::digits::Digit;
use super::super::placement::PlacementId;
use super::decisions::{Decision, Key};
use super::held::Held;
use super::how::How;
use crate::index::OpId;
use crate::ir::{is_portable, OpKind, Program};
use crate::mesh::Mesh;
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The decisions of lowerings whose placements have the same numbers.
#[derive(Debug, Default)]
pub(in crate::spmd) struct SharedDecisions {
    /// The options and devices of lowerings.
    settings: Vec<(How, Vec<Mesh>)>,
    known: FxHashMap<SharedKey, Arc<Decision>>,
    /// Stages of reshards, by the digits along which XLA's partitioner has grouped devices.
    pub stages: FxHashMap<Vec<Digit>, u32>,
}

/// What a decision depends on.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(in crate::spmd) struct SharedKey {
    /// The number of the options and devices.
    setting: usize,
    /// The texts of the signature, and of the types of operands, results, and what operands are broadcasts of.
    text: String,
    rule: OpShardingRule,
    placements: Vec<PlacementId>,
    facts: Vec<i64>,
    free_digits: Vec<Digit>,
    /// The operands that are broadcasts, the placement of what each is a broadcast of, and the dims.
    origins: Vec<(usize, PlacementId, Vec<i64>)>,
    /// For each operand the first one that is the same value.
    same: Vec<usize>,
}

/// The most decisions that are kept.
const MAX_DECISIONS: usize = 1 << 12;

/// The most options and devices whose decisions are kept.
const MAX_SETTINGS: usize = 16;

impl SharedDecisions {
    /// The number of the options `how` with `devices`.
    pub fn setting(&mut self, how: How, devices: &Devices) -> usize {
        let is_full = self.known.len() >= MAX_DECISIONS || self.stages.len() >= MAX_DECISIONS;
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
    /// The decision that `key` is for.
    pub fn get(&self, key: &SharedKey) -> Option<Arc<Decision>> {
        self.known.get(key).cloned()
    }
    /// Adds a decision, if there is room for it.
    pub fn add(&mut self, key: SharedKey, decision: Arc<Decision>) {
        if self.known.len() < MAX_DECISIONS {
            self.known.insert(key, decision);
        }
    }
}

impl SharedKey {
    /// The key of the decision about `op`, which has the key `own` in its program; `None` if that is not shared.
    pub(super) fn of(
        setting: usize,
        program: &Program,
        op: OpId,
        own: &Key,
        operands: &[Held],
    ) -> Option<Self> {
        // Reversals bring orders of devices of their own.
        let is_apart = program.num_regions(op) > 0
            || program.kind(op) == OpKind::CustomCall
            || program.op_name(op) == "stablehlo.reverse";
        if is_apart {
            return None;
        }
        let rule = program.rules()[own.rule.get()?].clone();
        let mut text = program.signatures().key(own.signature.get()?).to_owned();
        for &ty in own.types.iter().chain(own.origins.iter().map(|origin| &origin.2)) {
            text.push('\0');
            text.push_str(program.type_text(ty));
        }
        if !is_portable(&text) {
            return None;
        }
        let origins = own.origins.iter();
        let same = operands.iter().map(|held| {
            let first = operands.iter().position(|other| other.shard() == held.shard());
            first.unwrap_or_default()
        });
        Some(Self {
            setting,
            text,
            rule,
            placements: own.placements.clone(),
            facts: own.facts.clone(),
            free_digits: own.free_digits.clone(),
            origins: origins.map(|origin| (origin.0, origin.1, origin.3.to_vec())).collect(),
            same: same.collect(),
        })
    }
}
