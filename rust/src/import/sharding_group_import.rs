//! `sdy-sharding-group-import`: merges sharding groups that share a value, numbers them from 0, drops
//! repeated memberships, and checks that the members of a group can be sharded alike: they have the
//! same shape and are inside the same manual computation, or none.

use super::mistake;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Payload, Program, Type};
use rustc_hash::FxHashMap;

/// One membership.
struct Member {
    op: OpId,
    value: ValueId,
    group: i64,
}

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let members = members(program);
    if members.is_empty() {
        return Ok(());
    }
    Error::check(check(program, &members))?;
    let by_value = by_value(&members);
    let ids = unify(&members, &by_value);
    for group_ops in by_value {
        for (place, &member) in group_ops.iter().enumerate() {
            let Member { op, group, .. } = members[member];
            if place > 0 {
                program.erase_op(op);
            } else if ids[&group] != group {
                program.set_payload(op, Payload::ShardingGroup(ids[&group]));
            }
        }
    }
    Ok(())
}

/// All memberships in program order.
fn members(program: &mut Program) -> Vec<Member> {
    let mut members = Vec::new();
    for op in program.ops_in_post_order(&[OpKind::ShardingGroup]) {
        if let Some(&Payload::ShardingGroup(group)) = program.payload(op) {
            members.push(Member { op, value: program.operand(op, 0), group });
        }
    }
    members
}

/// Every member that does not go with the first one of its group.
fn check(program: &Program, members: &[Member]) -> Vec<Diagnostic> {
    let mut first: FxHashMap<i64, (&Member, Option<OpId>)> = FxHashMap::default();
    let mut diagnostics = Vec::new();
    for member in members {
        let parent = manual_computation_around(program, member.op);
        let &mut (other, other_parent) = first.entry(member.group).or_insert((member, parent));
        let group = member.group;
        let problem = if parent != other_parent {
            format!(
                "ShardingGroupOps values cannot cross ManualComputationOp boundaries for groupId: \
                 {group}"
            )
        } else if shape(program, member.value) != shape(program, other.value) {
            format!("ShardingGroupOps values must have the same shape for groupId: {group}")
        } else {
            continue;
        };
        let diagnostic = mistake(program, member.op, Code::InvalidGroup, problem);
        diagnostics.push(match program.op_span(other.op) {
            Some(span) => diagnostic.with_related(span, "first member of the group"),
            None => diagnostic,
        });
    }
    diagnostics
}

fn shape(program: &Program, value: ValueId) -> &[Option<i64>] {
    match program.value_type(value) {
        Type::RankedTensor { shape, .. } => shape,
        _ => &[],
    }
}

/// The innermost manual computation that `op` is in.
fn manual_computation_around(program: &Program, op: OpId) -> Option<OpId> {
    let parents = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
    parents.into_iter().find(|&op| program.kind(op) == OpKind::ManualComputation)
}

/// Positions in `members` by value, values in order of first appearance.
fn by_value(members: &[Member]) -> Vec<Vec<usize>> {
    let mut places: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let place = *places.entry(member.value).or_insert(lists.len());
        if place == lists.len() {
            lists.push(Vec::new());
        }
        lists[place].push(index);
    }
    lists
}

/// For each group id the number of the merged group. A merged group keeps the place of the group
/// that absorbed the others: the first one of the value that joined them.
fn unify(members: &[Member], by_value: &[Vec<usize>]) -> FxHashMap<i64, i64> {
    let mut sets = DisjointSets::default();
    for list in by_value {
        let leader = sets.element(members[list[0]].group);
        for &member in list {
            let other = sets.element(members[member].group);
            sets.union(leader, other);
        }
    }
    let leaders: Vec<usize> = (0..sets.ids.len()).map(|element| sets.leader(element)).collect();
    let mut numbers: Vec<i64> = Vec::with_capacity(leaders.len());
    let mut count = 0;
    for (element, &leader) in leaders.iter().enumerate() {
        numbers.push(count);
        count += i64::from(leader == element);
    }
    sets.ids.iter().zip(&leaders).map(|(&id, &leader)| (id, numbers[leader])).collect()
}

/// Sets of group ids; elements in order of first appearance.
#[derive(Default)]
struct DisjointSets {
    ids: Vec<i64>,
    elements: FxHashMap<i64, usize>,
    parents: Vec<usize>,
    /// Number of elements below each root, and the element that leads them.
    sizes: Vec<usize>,
    leaders: Vec<usize>,
}

impl DisjointSets {
    fn element(&mut self, id: i64) -> usize {
        *self.elements.entry(id).or_insert_with(|| {
            let element = self.ids.len();
            self.ids.push(id);
            self.parents.push(element);
            self.sizes.push(1);
            self.leaders.push(element);
            element
        })
    }
    fn root(&mut self, mut element: usize) -> usize {
        while self.parents[element] != element {
            self.parents[element] = self.parents[self.parents[element]];
            element = self.parents[element];
        }
        element
    }
    fn leader(&mut self, element: usize) -> usize {
        let root = self.root(element);
        self.leaders[root]
    }
    /// Merges the sets of `a` and `b`; the leader of the former leads.
    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let leader = self.leaders[a];
        let (child, root) = if self.sizes[a] < self.sizes[b] { (a, b) } else { (b, a) };
        self.parents[child] = root;
        self.sizes[root] += self.sizes[child];
        self.leaders[root] = leader;
    }
}
