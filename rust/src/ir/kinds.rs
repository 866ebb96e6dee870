//! Finds ops by kind without a walk over all ops, and compares the positions of two ops in a block.
//!
//! Most passes need only a few kinds of ops, and most programs have none or few of those. Ops of each
//! kind, and of each name without a kind, are listed when they are made; look-ups skip those that were erased
//! or renamed since, so edits need not update the lists.
//!
//! Each op has a number that grows along its block, with gaps. An op inserted where there is no gap
//! left marks its block as crowded, and the block is renumbered when the order of its ops is next needed.

use super::{EdgeSpec, OpKind, OpTraits, Program, OPS};
use crate::bitset::BitSet;
use crate::index::{BlockId, Id, OpId, StrId};
use rustc_hash::FxHashSet;

/// The ops of each kind, those of [`OpKind::Other`] by name, and the traits of op names without a kind.
#[derive(Clone, Debug, Default)]
pub(super) struct KindTable {
    /// For each kind, all ops ever made, in order of creation.
    lists: Vec<Vec<OpId>>,
    /// For each name, all ops of kind `Other` ever made, in order of creation.
    named: Vec<Vec<OpId>>,
    /// For each kind, an upper bound of the number of ops that are not erased.
    counts: Vec<usize>,
    /// The traits of ops of kind `Other` by name, filled in when first needed.
    traits: Vec<Option<OpTraits>>,
    /// The names of kinds, filled in when first needed.
    names: Vec<StrId>,
    crowded: FxHashSet<BlockId>,
}

/// Numbers in a path per nesting level: region, block, and position in the block.
const PATH_STEP: usize = 3;
/// The difference between the numbers of neighbouring ops when ops are appended to a block.
const GAP: u32 = 1 << 10;
/// If more than one in `RARE` ops of the program is requested or encloses a requested one, a walk
/// over all ops is faster than sorting.
const RARE: usize = 8;

impl KindTable {
    pub(super) fn added(&mut self, op: OpId, kind: OpKind, name: StrId) {
        if kind == OpKind::Other {
            if self.named.len() <= name.index() {
                self.named.resize(name.index() + 1, Vec::new());
            }
            self.named[name.index()].push(op);
            return;
        }
        if self.lists.is_empty() {
            self.lists = vec![Vec::new(); OpKind::Other as usize];
            self.counts = vec![0; OpKind::Other as usize];
        }
        self.lists[kind as usize].push(op);
        self.counts[kind as usize] += 1;
    }
    pub(super) fn removed(&mut self, kind: OpKind) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count = count.saturating_sub(1);
        }
    }
    /// The traits of ops called `id`, which is `name`.
    pub(super) fn traits_of(&mut self, id: StrId, name: &str, kind: OpKind) -> OpTraits {
        if kind != OpKind::Other {
            return OPS[kind as usize].traits;
        }
        if self.traits.len() <= id.index() {
            self.traits.resize(id.index() + 1, None);
        }
        *self.traits[id.index()].get_or_insert_with(|| OpTraits::of_name(name))
    }
}

impl Program {
    /// How many ops of `kind`, which is not `Other`, were ever made.
    pub fn num_made(&self, kind: OpKind) -> usize {
        self.kinds.lists.get(kind as usize).map_or(0, Vec::len)
    }
    /// The `index`-th op of `kind` that was ever made.
    pub fn made(&self, kind: OpKind, index: usize) -> OpId {
        self.kinds.lists[kind as usize][index]
    }
    /// The name of ops of `kind`, which is not `Other`.
    pub(super) fn kind_name(&mut self, kind: OpKind) -> StrId {
        let names = &mut self.kinds.names;
        if names.is_empty() {
            names.resize(OpKind::Other as usize, StrId::NONE);
        }
        if names[kind as usize].is_none() {
            names[kind as usize] = self.strings.intern(OPS[kind as usize].name);
        }
        names[kind as usize]
    }
    /// Whether there may be an op of one of `kinds`; false if there is none.
    pub fn has_any(&self, kinds: &[OpKind]) -> bool {
        kinds.iter().any(|&kind| self.kinds.counts.get(kind as usize).is_some_and(|&n| n > 0))
    }
    /// The ops of `kinds`, which are not `Other`, in no particular order.
    pub fn ops_of(&self, kinds: &[OpKind]) -> Vec<OpId> {
        let mut ops = Vec::new();
        for &kind in kinds {
            let found = self.repeated_ops_of(kind);
            if ops.is_empty() {
                ops = distinct(found.collect());
            } else {
                ops.extend(distinct(found.collect()));
            }
        }
        ops
    }
    /// The ops of `kind`, which is not `Other`, in no particular order; some may be repeated.
    pub fn repeated_ops_of(&self, kind: OpKind) -> impl Iterator<Item = OpId> + '_ {
        let list = self.kinds.lists.get(kind as usize).filter(|_| self.has_any(&[kind]));
        let is_there = move |&op: &OpId| {
            let row = &self.ops[op];
            row.kind == kind && row.parent.is_some() && !row.is_erased
        };
        list.into_iter().flatten().copied().filter(is_there)
    }
    /// The ops that have data-flow edges, in pre-order.
    pub fn ops_with_edges_in_pre_order(&mut self) -> Vec<OpId> {
        if self.edge_specs.is_empty() {
            return self.ops_in_pre_order(&EdgeSpec::KINDS);
        }
        self.pre_order(self.module).filter(|&op| self.edge_spec(op).is_some()).collect()
    }
    /// The ops that have data-flow edges, in post-order.
    pub fn ops_with_edges_in_post_order(&mut self) -> Vec<OpId> {
        if self.edge_specs.is_empty() {
            return self.ops_in_post_order(&EdgeSpec::KINDS);
        }
        self.post_order(self.module).filter(|&op| self.edge_spec(op).is_some()).collect()
    }
    /// The op of the module's block that `op` is, or is inside.
    pub fn top_level_op(&self, mut op: OpId) -> OpId {
        while let Some(parent) = self.parent_op(op).filter(|&parent| parent != self.module) {
            op = parent;
        }
        op
    }
    /// Whether `op` is in the module: not inside a function that was taken out of it.
    pub fn is_linked(&self, op: OpId) -> bool {
        op == self.module || self.ops[self.top_level_op(op)].parent.is_some()
    }
    /// The ops of `kinds` in pre-order.
    pub fn ops_in_pre_order(&mut self, kinds: &[OpKind]) -> Vec<OpId> {
        self.ops_in_order(kinds, false)
    }
    /// The ops of `kinds` in post-order.
    pub fn ops_in_post_order(&mut self, kinds: &[OpKind]) -> Vec<OpId> {
        self.ops_in_order(kinds, true)
    }
    fn ops_in_order(&mut self, kinds: &[OpKind], is_post: bool) -> Vec<OpId> {
        let max_len = PATH_STEP * (self.ops.len() / RARE);
        let count = |&kind: &OpKind| self.kinds.counts.get(kind as usize).map_or(0, |&n| n);
        if PATH_STEP * kinds.iter().map(count).sum::<usize>() > max_len {
            return self.walk_for(kinds, is_post);
        }
        let ops = self.ops_of(kinds);
        self.in_order(&ops, is_post).unwrap_or_else(|| self.walk_for(kinds, is_post))
    }
    /// The ops called one of `names`, in pre-order.
    pub fn ops_named_in_pre_order(&mut self, names: &[StrId]) -> Vec<OpId> {
        let mut ops = Vec::new();
        for &name in names {
            ops.extend(distinct(self.ops_named(name).collect()));
        }
        self.sorted_in_pre_order(&ops)
    }
    /// `ops`, which are distinct, in pre-order.
    pub fn sorted_in_pre_order(&mut self, ops: &[OpId]) -> Vec<OpId> {
        self.in_order(ops, false).unwrap_or_else(|| {
            let mut is_one = BitSet::new(self.ops.len());
            for &op in ops {
                is_one.insert(op);
            }
            self.pre_order(self.module).filter(|&op| is_one.contains(op)).collect()
        })
    }
    /// The ops called `name`, in no particular order; some may be repeated.
    fn ops_named(&self, name: StrId) -> impl Iterator<Item = OpId> + '_ {
        let list = match OpKind::from_name(self.strings.get(name)) {
            OpKind::Other => self.kinds.named.get(name.index()),
            kind => self.kinds.lists.get(kind as usize),
        };
        let is_there = move |&op: &OpId| {
            let row = &self.ops[op];
            row.name == name && row.parent.is_some() && !row.is_erased
        };
        list.into_iter().flatten().copied().filter(is_there)
    }
    /// `ops` in pre- or post-order; `None` if a walk over all ops is faster.
    fn in_order(&mut self, ops: &[OpId], is_post: bool) -> Option<Vec<OpId>> {
        if ops.len() < 2 {
            return Some(ops.to_vec());
        }
        let max_len = PATH_STEP * (self.ops.len() / RARE);
        let mut paths: Vec<u32> = Vec::new();
        let mut keys: Vec<(u32, u32, OpId)> = Vec::new();
        for &op in ops {
            let start = paths.len();
            if start + PATH_STEP * (ops.len() - keys.len()) > max_len {
                return None;
            }
            self.push_path(op, &mut paths);
            if is_post {
                // Larger than the paths of all ops inside.
                paths.push(u32::MAX);
            }
            keys.push((start as u32, paths.len() as u32, op));
        }
        let path = |&(start, end, _): &(u32, u32, OpId)| &paths[start as usize..end as usize];
        keys.sort_unstable_by(|a, b| path(a).cmp(path(b)));
        Some(keys.into_iter().map(|(_, _, op)| op).collect())
    }
    fn walk_for(&self, kinds: &[OpKind], is_post: bool) -> Vec<OpId> {
        let is_one = |op: &OpId| kinds.contains(&self.kind(*op));
        if is_post {
            self.post_order(self.module).filter(is_one).collect()
        } else {
            self.pre_order(self.module).filter(is_one).collect()
        }
    }
    /// Appends the path of `op` from the outside in: region, block and position in the block at each level.
    fn push_path(&mut self, mut op: OpId, path: &mut Vec<u32>) {
        let start = path.len();
        while let Some(block) = self.ops[op].parent.get() {
            self.number_block(block);
            path.push(self.ops[op].order);
            let region = self.blocks[block].region;
            op = self.regions[region].op;
            let blocks = self.region_blocks(region);
            path.push(blocks.take_while(|&other| other != block).count() as u32);
            path.push(region.index() as u32 - self.ops[op].first_region.index() as u32);
        }
        path[start..].reverse();
    }
    /// Renumbers the ops of `block` if it is crowded.
    pub fn number_block(&mut self, block: BlockId) {
        if self.kinds.crowded.is_empty() || !self.kinds.crowded.remove(&block) {
            return;
        }
        let count = self.block_ops(block).count() as u64;
        let gap = (u64::from(u32::MAX - 1) / (count + 1)).min(u64::from(GAP)) as u32;
        let mut next = self.blocks[block].first_op;
        let mut number = 0;
        while let Some(op) = next.get() {
            number += gap;
            self.ops[op].order = number;
            next = self.ops[op].next;
        }
    }
    /// Numbers `op`, which was just put into its block.
    #[inline]
    pub(super) fn number_op(&mut self, op: OpId) {
        let row = &self.ops[op];
        let (block, next) = (row.parent, row.next);
        let low = row.prev.get().map_or(0, |prev| self.ops[prev].order);
        let high = next.get().map_or(low.saturating_add(2 * GAP), |next| self.ops[next].order);
        if high <= low.saturating_add(1) {
            self.kinds.crowded.insert(block);
        }
        self.ops[op].order = low + high.saturating_sub(low) / 2;
    }
    /// Whether `a` comes before `b` in the block of both, which is numbered.
    #[inline]
    pub fn is_before(&self, a: OpId, b: OpId) -> bool {
        debug_assert!(!self.kinds.crowded.contains(&self.ops[a].parent));
        self.ops[a].order < self.ops[b].order
    }
    /// The traits of ops with the name of `op`; `None` if the engine does not know the name.
    #[inline]
    pub fn traits(&self, op: OpId) -> Option<OpTraits> {
        let traits = self.ops[op].traits;
        traits.has(OpTraits::KNOWN).then_some(traits)
    }
    /// Whether `op` is known to have all of `traits`.
    #[inline]
    pub fn has_traits(&self, op: OpId, traits: OpTraits) -> bool {
        self.ops[op].traits.has(traits)
    }
}

/// `ops` without duplicates: an op that was renamed and renamed back is listed twice.
fn distinct(mut ops: Vec<OpId>) -> Vec<OpId> {
    if !ops.is_sorted_by(|a, b| a < b) {
        ops.sort_unstable();
        ops.dedup();
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{NewOp, Place};
    use std::fmt::Write;

    #[test]
    fn kinds_are_found_in_order_however_ops_move() {
        let text = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n\
                    %0 = stablehlo.negate %a : tensor<f32>\nreturn %0 : tensor<f32>\n}";
        let mut program = crate::mlir::parse(text.into()).unwrap();
        let func = program.functions_in_order()[0];
        let (body, ty) = (program.functions[func].body, program.func_args(func)[0].ty);
        let arg = program.block_args(body).next().unwrap();
        let first = program.blocks[body].first_op;
        let place_of =
            |i: usize| [Place::Before(first), Place::Start(body), Place::After(first)][i % 3];
        for i in 0..200 {
            let op = program.create_op(NewOp::new("sdy.reshard", &[arg], &[ty]));
            program.insert_op(op, place_of(i));
            let other = program.create_op(NewOp::new("stablehlo.negate", &[arg], &[ty]));
            program.insert_op(other, place_of(i + 1));
            if i % 7 == 0 {
                program.rename_ops(&[op], "sdy.sharding_constraint");
                program.rename_ops(&[op], "sdy.reshard");
            }
            if i % 5 == 0 {
                program.erase_op(op);
            }
        }
        for _ in 0..2000 {
            let op = program.create_op(NewOp::new("stablehlo.negate", &[arg], &[ty]));
            program.insert_op(op, Place::Start(body));
        }
        let walked: Vec<OpId> = program
            .pre_order(program.module)
            .filter(|&op| program.kind(op) == OpKind::Reshard)
            .collect();
        assert_eq!(walked.len(), 160);
        assert!(walked.len() < program.ops.len() / RARE);
        assert_eq!(program.ops_in_pre_order(&[OpKind::Reshard]), walked);
        assert_eq!(program.ops_in_post_order(&[OpKind::Reshard]), walked);
        let name = program.op_name_id(walked[0]);
        assert_eq!(program.ops_named_in_pre_order(&[name]), walked);
        let all = [name, program.strings().find("stablehlo.negate").unwrap()];
        let is_one = |op: &OpId| all.contains(&program.op_name_id(*op));
        let walked: Vec<OpId> = program.pre_order(program.module).filter(is_one).collect();
        assert!(walked.len() > program.ops.len() / RARE);
        assert_eq!(program.ops_named_in_pre_order(&all), walked);
        assert!(!program.has_any(&[OpKind::ShardingConstraint, OpKind::While]));
    }

    #[test]
    fn what_is_inside_comes_before_or_after() {
        let region = "({\n%i = stablehlo.constant dense<1> : tensor<i32>\n\
                      %r = \"stablehlo.case\"(%i) ({ %c = stablehlo.constant dense<2> : tensor<i32>\n\
                      stablehlo.return %c : tensor<i32> }) : (tensor<i32>) -> tensor<i32>\n\
                      stablehlo.return %r : tensor<i32> }, { %d = stablehlo.constant dense<3> : \
                      tensor<i32>\nstablehlo.return %d : tensor<i32> })";
        let mut text = String::from("func.func @f(%a: tensor<i32>) -> tensor<i32> {\n");
        for i in 0..3 {
            writeln!(text, "%{i} = \"stablehlo.case\"(%a) {region} : (tensor<i32>) -> tensor<i32>")
                .unwrap();
        }
        for i in 3..400 {
            writeln!(text, "%{i} = stablehlo.negate %{} : tensor<i32>", i - 1).unwrap();
        }
        text += "return %9 : tensor<i32>\n}";
        let mut program = crate::mlir::parse(text.as_str().into()).unwrap();
        let kinds = [OpKind::Case, OpKind::Constant];
        let is_one = |program: &Program, op: &OpId| kinds.contains(&program.kind(*op));
        let pre: Vec<OpId> =
            program.pre_order(program.module).filter(|op| is_one(&program, op)).collect();
        let post: Vec<OpId> =
            program.post_order(program.module).filter(|op| is_one(&program, op)).collect();
        assert!(pre.len() == 15 && pre != post && pre.len() < program.ops.len() / RARE);
        assert_eq!(program.ops_in_pre_order(&kinds), pre);
        assert_eq!(program.ops_in_post_order(&kinds), post);
        let names = [pre[0], pre[1]].map(|op| program.op_name_id(op));
        assert_eq!(program.ops_named_in_pre_order(&names), pre);
        // With an op those inside it go, too.
        program.erase_op(pre[0]);
        assert_eq!(program.ops_named_in_pre_order(&names), pre[5..]);
    }
}
