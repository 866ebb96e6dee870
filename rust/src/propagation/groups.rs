//! Sharding groups: values that are sharded alike at all times.
//!
//! Source: Shardy's `ShardingGroupMap`.

use super::edges::Edges;
use super::engine::sharding;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{ShardingId, ValueId};
use crate::ir::{OpKind, Payload, Place as Position, Program, ValueDef};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The groups of a program.
#[derive(Default)]
pub(super) struct Groups {
    /// In order of their ids.
    members: Vec<Vec<ValueId>>,
    groups: FxHashMap<ValueId, u32>,
}

impl Groups {
    /// The groups that `sdy.sharding_group` ops declare. A value may be in one only; the import
    /// passes see to that.
    pub fn new(program: &Program) -> Result<Self> {
        if !program.has_any(&[OpKind::ShardingGroup]) {
            return Ok(Self::default());
        }
        let mut by_id: BTreeMap<i64, Vec<ValueId>> = BTreeMap::new();
        let mut ids: FxHashMap<ValueId, i64> = FxHashMap::default();
        for op in program.post_order(program.module) {
            if program.kind(op) != OpKind::ShardingGroup {
                continue;
            }
            let Some(&Payload::ShardingGroup(id)) = program.payload(op) else { continue };
            let value = program.operand(op, 0);
            if *ids.entry(value).or_insert(id) != id {
                let message = "a value is in two sharding groups";
                let diagnostic = Diagnostic::new(Code::InvalidGroup, message).at_op(program, op);
                let hint = "run sdy-sharding-group-import first, which merges them";
                return Err(diagnostic.with_hint(hint).into());
            }
            by_id.entry(id).or_default().push(value);
        }
        let mut groups = Self::default();
        for members in by_id.into_values() {
            for &member in &members {
                groups.groups.insert(member, groups.members.len() as u32);
            }
            groups.members.push(members);
        }
        Ok(groups)
    }
    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
    /// The group that `value` is in.
    #[inline]
    pub fn group_of(&self, value: ValueId) -> Option<usize> {
        if self.groups.is_empty() {
            return None;
        }
        self.groups.get(&value).map(|&group| group as usize)
    }
    /// The members of a group in program order.
    pub fn members(&self, group: usize) -> &[ValueId] {
        &self.members[group]
    }
    /// Gives all members of each group the sharding that some of them have. Where they have
    /// different ones, each keeps its own, and an open constraint on it becomes the member.
    ///
    /// `set` sets the sharding of a value.
    pub fn synchronise(
        &mut self,
        program: &mut Program,
        edges: &Edges,
        mut set: impl FnMut(&mut Program, ValueId, ShardingId),
    ) {
        for group in 0..self.members.len() {
            match self.common_sharding(program, edges, group) {
                Common::None => {}
                Common::One(sharding) => {
                    for &member in &self.members[group] {
                        set(program, member, sharding);
                    }
                }
                Common::Conflict(first) => self.constrain(program, group, first),
            }
        }
    }

    fn common_sharding(&self, program: &mut Program, edges: &Edges, group: usize) -> Common {
        let members = &self.members[group];
        let mut common = ShardingId::NONE;
        if members.len() == 1 {
            return Common::None;
        }
        for &member in members {
            let id = sharding(program, edges, member);
            let Some(candidate) = program.shardings.get(id) else { continue };
            if candidate.dims.iter().all(|dim| dim.axes.is_empty() && !dim.is_closed) {
                continue;
            }
            if common.is_none() {
                common = id;
            } else if common != id {
                return Common::Conflict(common);
            }
        }
        common.get().map_or(Common::None, Common::One)
    }

    /// Puts an open constraint on each member, which takes the member's place.
    fn constrain(&mut self, program: &mut Program, group: usize, sharding: ShardingId) {
        for index in 0..self.members[group].len() {
            let member = self.members[group][index];
            let ty = program.values[member].ty;
            let open = program.replicated(program.mesh_of(sharding), ty, false);
            let op = program.create_op("sdy.sharding_constraint", &[member], &[ty]);
            program.op_texts[op].loc = program.value_loc(member);
            let place = match program.values[member].def() {
                ValueDef::Result(def) => Position::After(def),
                ValueDef::Arg(block) => Position::Start(block),
            };
            program.insert_op(op, place);
            let result = program.result(op, 0);
            program.set_sharding(result, open);
            program.replace_all_uses_except(member, result, op);
            self.groups.remove(&member);
            self.groups.insert(result, group as u32);
            self.members[group][index] = result;
        }
    }
}

/// What the members of a group have in common.
enum Common {
    /// Nothing to share.
    None,
    /// This sharding, where they have one.
    One(ShardingId),
    /// Different ones, of which this is the first.
    Conflict(ShardingId),
}
