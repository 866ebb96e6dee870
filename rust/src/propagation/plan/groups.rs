//! Sharding groups: sets of values that always have the same sharding.
//!
//! Source: Shardy's `ShardingGroupMap`.

use super::edges::{Edges, Holder};
use crate::context::RuleSource;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{Id, ShardingId, ValueId};
use crate::ir::{InsertPoint, OpKind, Payload, Place as Position, Program, ValueDef};
use std::ops::Range;

/// The groups of a program.
#[derive(Clone, Default)]
pub struct ShardingGroups {
    /// Members of all groups, in order of group ids.
    members: Vec<ValueId>,
    /// For each group the end of its members.
    ends: Vec<usize>,
    /// For each value its group, [`NO_GROUP`] if it has none.
    groups: Vec<u32>,
}

/// The group of values without a group.
const NO_GROUP: u32 = u32::MAX;

impl ShardingGroups {
    /// The groups that `sdy.sharding_group` ops declare. A value may be in only one group; import
    /// passes merge groups for that.
    fn new(program: &mut Program) -> Result<Self> {
        let mut groups = Self::default();
        if !program.has_any(&[OpKind::ShardingGroup]) {
            return Ok(groups);
        }
        let mut members: Vec<(i64, ValueId)> = Vec::new();
        // At first this has the index of each value among the members.
        groups.groups = vec![NO_GROUP; program.num_value_ids()];
        for op in program.ops_in_post_order(&[OpKind::ShardingGroup]) {
            let Some(&Payload::ShardingGroup(id)) = program.payload(op) else { continue };
            let value = program.operand(op, 0);
            let place = &mut groups.groups[value.index()];
            if *place == NO_GROUP {
                *place = members.len() as u32;
            } else if members[*place as usize].0 != id {
                let message = "a value is in two sharding groups";
                let diagnostic = Diagnostic::new(Code::InvalidGroup, message).at_op(program, op);
                let hint = "run sdy-sharding-group-import first, which merges them";
                return Err(diagnostic.with_hint(hint).into());
            }
            members.push((id, value));
        }
        members.sort_by_key(|&(id, _)| id);
        for alike in members.chunk_by(|(id, _), (other, _)| id == other) {
            for &(_, member) in alike {
                groups.groups[member.index()] = groups.ends.len() as u32;
                groups.members.push(member);
            }
            groups.ends.push(groups.members.len());
        }
        Ok(groups)
    }
    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The group that `value` is in.
    #[inline]
    pub fn group_of(&self, value: ValueId) -> Option<usize> {
        let group = self.groups.get(value.index()).copied()?;
        (group != NO_GROUP).then_some(group as usize)
    }
    /// The members of a group in program order.
    pub fn members(&self, group: usize) -> &[ValueId] {
        &self.members[self.range(group)]
    }
    fn range(&self, group: usize) -> Range<usize> {
        group.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[group]
    }
    /// The members of all groups, each with its group.
    pub fn all(&self) -> impl Iterator<Item = (usize, ValueId)> + '_ {
        (0..self.ends.len())
            .flat_map(|group| self.members(group).iter().map(move |&it| (group, it)))
    }
    /// The groups of `program`, after giving all members the same sharding, see
    /// [`ShardingGroups::synchronise`].
    pub fn synchronised(program: &mut Program, rules: &dyn RuleSource) -> Result<Self> {
        let mut groups = Self::new(program)?;
        if !groups.is_empty() {
            let edges = Edges::new(program, rules);
            groups.synchronise(program, &edges);
        }
        Ok(groups)
    }
    /// Gives all members of each group the sharding that some of them have. If members have
    /// different shardings, each keeps its own, and an open constraint on it becomes the member.
    fn synchronise(&mut self, program: &mut Program, edges: &Edges) {
        for group in 0..self.ends.len() {
            match self.common_sharding(program, edges, group) {
                Common::None => {}
                Common::One(sharding) => {
                    for &member in self.members(group) {
                        set(program, edges, member, sharding);
                    }
                }
                Common::Conflict(first) => self.constrain(program, group, first),
            }
        }
    }

    fn common_sharding(&self, program: &mut Program, edges: &Edges, group: usize) -> Common {
        let members = self.members(group);
        let mut common = ShardingId::NONE;
        if members.len() == 1 {
            return Common::None;
        }
        for &member in members {
            let id = edges.sharding(program, member);
            let Some(candidate) = program.shardings().get(id) else { continue };
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

    /// Puts an open constraint on each member, which becomes the member instead.
    fn constrain(&mut self, program: &mut Program, group: usize, sharding: ShardingId) {
        self.groups.resize(program.num_value_ids() + self.members(group).len(), NO_GROUP);
        for index in self.range(group) {
            let member = self.members[index];
            let ty = program.type_of(member);
            let open = program.replicated(program.mesh_of(sharding), ty, false);
            let place = match program.def(member) {
                ValueDef::Result(def) => Position::After(def),
                ValueDef::Arg(block) => Position::Start(block),
            };
            let at = InsertPoint { place, loc: program.value_loc(member) };
            let op = program.build_unary(OpKind::ShardingConstraint, member, open, at);
            let result = program.result(op, 0);
            program.replace_all_uses_except(member, result, op);
            self.groups[member.index()] = NO_GROUP;
            self.groups[result.index()] = group as u32;
            self.members[index] = result;
        }
    }
}

/// Sets the sharding of `value`, whatever holds it.
fn set(program: &mut Program, edges: &Edges, value: ValueId, sharding: ShardingId) {
    match edges.holder(value) {
        Holder::None => {}
        Holder::ManualArg(op, arg) => program.set_manual_arg_sharding(op, arg, sharding),
        Holder::Value(value) if program.defining_op(value).is_some() => {
            program.set_result_sharding(value, sharding);
        }
        Holder::Value(value) => {
            program.set_sharding(value, sharding);
        }
    }
}

/// The sharding that the members of a group have in common.
enum Common {
    /// No member has a sharding.
    None,
    /// All members that have a sharding have this one.
    One(ShardingId),
    /// Members have different shardings; this is the first.
    Conflict(ShardingId),
}
