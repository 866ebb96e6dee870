//! Manual bodies of GSPMD in a block.
//!
//! A manual body is a set of ops on shards: those that are connected by values between custom calls
//! `@SPMDFullToShardShape` and `@SPMDShardToFullShape`.

use super::mistake;
use crate::error::{Code, Result};
use crate::index::{BlockId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::FxHashMap;

/// A custom call that starts or ends a manual body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// Whether it starts a body.
    pub is_start: bool,
    /// The sharding of the global value, if it ends a body.
    pub sharding: ShardingId,
    /// The manual axes, if it starts a body.
    pub axes: Vec<StrId>,
}

/// The custom calls around manual bodies.
pub type Boundaries = FxHashMap<OpId, Boundary>;

/// One manual body in a block; its ops are in the block's order.
pub(super) struct Body {
    /// The custom calls that start it.
    pub starts: Vec<OpId>,
    /// The ops between them.
    pub ops: Vec<OpId>,
    /// The custom calls that end it.
    pub ends: Vec<OpId>,
}

/// The bodies in `block`.
pub(super) fn bodies(
    program: &Program,
    block: BlockId,
    boundaries: &Boundaries,
) -> Result<Vec<Body>> {
    let ops: Vec<OpId> = program.block_ops(block).collect();
    if ops.iter().all(|op| !boundaries.contains_key(op)) {
        return Ok(Vec::new());
    }
    let mut search = Search {
        program,
        block,
        boundaries,
        places: ops.iter().copied().zip(0..).collect(),
        body_of: vec![None; ops.len()],
    };
    let mut found = Vec::new();
    for &op in &ops {
        let place = search.places[&op];
        if boundaries.contains_key(&op) && search.body_of[place].is_none() {
            search.connect(op, found.len())?;
            found.push(Body { starts: Vec::new(), ops: Vec::new(), ends: Vec::new() });
        }
    }
    for (place, &op) in ops.iter().enumerate() {
        let Some(body) = search.body_of[place] else { continue };
        match boundaries.get(&op) {
            Some(boundary) if boundary.is_start && !found[body].ends.is_empty() => {
                let message = "shards are made after the manual body that uses them has ended";
                return Err(mistake(program, op, Code::InvalidSharding, message).into());
            }
            Some(boundary) if boundary.is_start => found[body].starts.push(op),
            Some(_) => found[body].ends.push(op),
            None => found[body].ops.push(op),
        }
    }
    Ok(found)
}

struct Search<'p> {
    program: &'p Program,
    block: BlockId,
    boundaries: &'p Boundaries,
    places: FxHashMap<OpId, usize>,
    body_of: Vec<Option<usize>>,
}

impl Search<'_> {
    /// Adds `op`, and all ops that are connected with it by local values, to body `number`.
    fn connect(&mut self, op: OpId, number: usize) -> Result<()> {
        let mut todo = vec![op];
        while let Some(op) = todo.pop() {
            let place = &mut self.body_of[self.places[&op]];
            if place.is_some() {
                continue;
            }
            *place = Some(number);
            let boundary = self.boundaries.get(&op);
            if boundary.is_none_or(|boundary| boundary.is_start) {
                self.users(op, &mut todo)?;
            }
            if boundary.is_none_or(|boundary| !boundary.is_start) {
                self.producers(op, &mut todo)?;
            }
        }
        Ok(())
    }
    /// Appends the ops of the block that use results of `op` to `todo`.
    fn users(&self, op: OpId, todo: &mut Vec<OpId>) -> Result<()> {
        for result in self.program.op_results(op) {
            for slot in self.program.uses(result) {
                let user = self.in_block(self.program.user(slot));
                let is_last = self.program.last_op(self.block) == user;
                if is_last && self.program.op_results(user).len() == 0 {
                    let message = "a shard leaves its manual body";
                    let diagnostic = mistake(self.program, op, Code::InvalidSharding, message);
                    let hint = "@SPMDShardToFullShape makes whole values of shards";
                    return Err(diagnostic.with_hint(hint).into());
                }
                todo.push(user);
            }
        }
        Ok(())
    }
    /// Appends the ops of the block that define operands of `op` and of ops inside it to `todo`,
    /// except constants.
    fn producers(&self, op: OpId, todo: &mut Vec<OpId>) -> Result<()> {
        for value in values_used(self.program, op) {
            let maker = match self.program.def(value) {
                ValueDef::Result(maker) => Some(maker),
                ValueDef::Arg(block) if block == self.block => None,
                ValueDef::Arg(block) => Some(self.program.block_parent_op(block)),
            };
            let is_inside = maker.is_some_and(|maker| self.is_inside(maker, op));
            match maker {
                _ if is_inside => {}
                Some(maker) if is_constant(self.program, maker) => {}
                Some(maker) if self.places.contains_key(&maker) => todo.push(maker),
                _ => {
                    let message = "a whole value is used among shards";
                    let diagnostic = mistake(self.program, op, Code::InvalidSharding, message);
                    let hint = "@SPMDFullToShardShape makes shards of whole values";
                    return Err(diagnostic.with_hint(hint).into());
                }
            }
        }
        Ok(())
    }
    /// The op of the block that is `op` or encloses it.
    fn in_block(&self, mut op: OpId) -> OpId {
        while self.program.parent_block(op) != self.block {
            let Some(parent) = self.program.parent_op(op) else { break };
            op = parent;
        }
        op
    }
    fn is_inside(&self, op: OpId, outer: OpId) -> bool {
        std::iter::successors(Some(op), |&op| self.program.parent_op(op)).any(|op| op == outer)
    }
}

/// The operands of `op` and of the ops inside it.
fn values_used(program: &Program, op: OpId) -> Vec<ValueId> {
    let inside = program.pre_order(op);
    inside.flat_map(|op| program.operands(op)).collect()
}

/// Whether `op` is a constant, which may be cloned into a body.
pub(super) fn is_constant(program: &Program, op: OpId) -> bool {
    program.num_operands(op) == 0
        && program.num_regions(op) == 0
        && program.kind(op) != OpKind::Call
}
