//! `sdy-sharding-group-import`: merges sharding groups that share a value, numbers them from 0,
//! drops repeated memberships, and checks that the members of a group have the same shape and the
//! same innermost manual computation, if any. Since [`Change::GroupsAcrossCalls`], functions count
//! as inside the manual computation that calls them.

use super::{mistake, CallGraph};
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{FuncId, Id, OpId, ValueId};
use crate::ir::{OpKind, Payload, Program, SymbolTable};
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// A member of a group.
struct Member {
    op: OpId,
    value: ValueId,
    /// The index of its group in order of first appearance.
    group: usize,
}

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let (members, ids) = members(program);
    if members.is_empty() {
        return Ok(());
    }
    let around = if program.shardy().has(Change::GroupsAcrossCalls) {
        manual_computations_of_calls(program)
    } else {
        FxHashMap::default()
    };
    Error::check(check(program, &members, &ids, &around))?;
    let by_value = by_value(program, &members);
    let groups = unify(&members, &by_value, ids.len());
    let mut last = ValueId::NONE;
    for index in by_value {
        let Member { op, value, group } = members[index as usize];
        if value == last {
            program.erase_op(op);
        } else if groups[group] != ids[group] {
            program.set_payload(op, Payload::ShardingGroup(groups[group]));
        }
        last = value;
    }
    Ok(())
}

/// All members in program order, and the ids of groups.
fn members(program: &mut Program) -> (Vec<Member>, Vec<i64>) {
    let (mut members, mut ids) = (Vec::new(), Vec::new());
    let mut numbers: FxHashMap<i64, usize> = FxHashMap::default();
    for op in program.ops_in_post_order(&[OpKind::ShardingGroup]) {
        if let Some(&Payload::ShardingGroup(id)) = program.payload(op) {
            let group = *numbers.entry(id).or_insert(ids.len());
            if group == ids.len() {
                ids.push(id);
            }
            members.push(Member { op, value: program.operand(op, 0), group });
        }
    }
    (members, ids)
}

/// An error for every member that does not fit the first member of its group.
fn check(
    program: &Program,
    members: &[Member],
    ids: &[i64],
    around: &FxHashMap<FuncId, OpId>,
) -> Vec<Diagnostic> {
    let mut first: Vec<Option<(&Member, Option<OpId>)>> = vec![None; ids.len()];
    let mut diagnostics = Vec::new();
    for member in members {
        let parent = manual_computation_around(program, member.op, around);
        let (other, other_parent) = *first[member.group].get_or_insert((member, parent));
        let group = ids[member.group];
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
    program.value_type(value).shape().unwrap_or_default()
}

/// The innermost manual computation around `op`; `around` has those that call functions.
fn manual_computation_around(
    program: &Program,
    op: OpId,
    around: &FxHashMap<FuncId, OpId>,
) -> Option<OpId> {
    let mut parents = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
    let found =
        parents.find(|&op| matches!(program.kind(op), OpKind::ManualComputation | OpKind::Func))?;
    match program.kind(found) {
        OpKind::Func => around.get(&program.function_of(found)).copied(),
        _ => Some(found),
    }
}

/// The innermost manual computation around the calls of each function that is called in one.
/// Callers come before callees; of several calls the last one counts.
fn manual_computations_of_calls(program: &mut Program) -> FxHashMap<FuncId, OpId> {
    let mut around: FxHashMap<FuncId, OpId> = FxHashMap::default();
    if !program.has_any(&[OpKind::Call]) {
        return around;
    }
    let symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    for &call in graph.post_order.iter().rev().flat_map(|&func| graph.calls(func)) {
        let Some(&Payload::Call(name)) = program.payload(call) else { continue };
        let Some(callee) = symbols.function(name) else { continue };
        match manual_computation_around(program, call, &around) {
            Some(op) => around.insert(callee, op),
            None => around.remove(&callee),
        };
    }
    around
}

/// Indices in `members`, grouped by value in order of first appearance.
fn by_value(program: &Program, members: &[Member]) -> Vec<u32> {
    // First computes for each member the first one with the same value; then the members of each
    // value.
    let mut first_of: Vec<u32> = vec![u32::MAX; program.num_value_ids()];
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(members.len());
    for (place, member) in members.iter().enumerate() {
        let first = &mut first_of[member.value.index()];
        *first = (*first).min(place as u32);
        places.push((*first, place as u32));
    }
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

/// For each group the id of its merged group. A merged group takes the position of the group that
/// others were merged into: the first group of the value that connects them.
fn unify(members: &[Member], by_value: &[u32], num_groups: usize) -> Vec<i64> {
    let mut sets = DisjointSets::new(num_groups);
    let by_value = by_value.iter().map(|&place| &members[place as usize]);
    let mut leader: Option<&Member> = None;
    for member in by_value {
        let first = *leader.get_or_insert(member);
        if first.value == member.value {
            sets.union(first.group, member.group);
        } else {
            leader = Some(member);
        }
    }
    let leaders: Vec<usize> = (0..num_groups).map(|group| sets.leader(group)).collect();
    let mut numbers: Vec<i64> = Vec::with_capacity(leaders.len());
    let mut count = 0;
    for (element, &leader) in leaders.iter().enumerate() {
        numbers.push(count);
        count += i64::from(leader == element);
    }
    leaders.iter().map(|&leader| numbers[leader]).collect()
}

/// Disjoint sets of groups.
struct DisjointSets {
    parents: Vec<usize>,
    /// The size of each set, by root, and its representative.
    sizes: Vec<usize>,
    leaders: Vec<usize>,
}

impl DisjointSets {
    fn new(len: usize) -> Self {
        let each: Vec<usize> = (0..len).collect();
        Self { parents: each.clone(), sizes: vec![1; len], leaders: each }
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
    /// Merges the sets of `a` and `b`; the representative of `a` is kept.
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
