//! Look-ahead: if the only user of a value is a reshard, the value is computed with the target placement of that. For example, the
//! operand of a pad is all-gathered, instead of its larger result, if that sends less. Of successive reshards only the last one
//! counts. With [`Results::AsWanted`] the look-ahead passes elementwise ops between the value and the reshard.

use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Type};
use crate::spmd::lower::{Lowering, LoweringKind};
use crate::spmd::placement::PlacementId;
use crate::spmd::policy::Policy;
use crate::spmd::results::Results;

/// The most elementwise ops that the look-ahead passes.
const MOST_PASSED: usize = 64;

impl Lowering<'_, '_, '_> {
    /// The placement to which the only user of `value` reshards it; `None` if there are other users, or the user is no reshard.
    #[inline]
    pub(in crate::spmd::lower) fn wanted_of(&mut self, value: ValueId) -> Option<PlacementId> {
        if self.how.policy != Policy::FewestBytes || self.how.global_to_local.is_some() {
            return None;
        }
        self.wanted_ahead(value)
    }
    fn wanted_ahead(&mut self, value: ValueId) -> Option<PlacementId> {
        // Reshards in a row are walked once: each hands on to the next one what was found.
        let known = self.ahead.get(&value).copied();
        let (wanted, last) = known.or_else(|| self.end_of_row(value))?;
        if let Some((user, _)) = self.only_user(value).filter(|_| value != last) {
            let next = self.emit.program.result(user, 0);
            if next != last {
                self.ahead.insert(next, (wanted, last));
            }
        }
        Some(wanted)
    }
    /// The target placement of the successive reshards of `value`, and the result of the last one.
    fn end_of_row(&mut self, mut value: ValueId) -> Option<(PlacementId, ValueId)> {
        let (mut wanted, mut passed) = (None, 0);
        while let Some((user, index)) = self.only_user(value) {
            let kind = self.emit.program.kind(user);
            let result = match LoweringKind::of(kind) {
                LoweringKind::Return => {
                    let expected = self.returns.last().and_then(|list| list.get(index));
                    wanted = expected.copied().or(wanted);
                    break;
                }
                LoweringKind::Reshard if is_reshard(kind) => 0,
                LoweringKind::OpWithRule if self.is_identity(user) => {
                    let result = self.emit.program.result(user, 0);
                    if self.how.results != Results::AsComputed {
                        wanted = Some(self.target(result));
                    }
                    value = result;
                    continue;
                }
                LoweringKind::OpWithRule
                    if passed < MOST_PASSED && self.is_elementwise(user, value) =>
                {
                    value = self.emit.program.result(user, 0);
                    passed += 1;
                    continue;
                }
                LoweringKind::Barrier => index,
                LoweringKind::Branches if kind == OpKind::While => index,
                _ => break,
            };
            let Some(next) = self.emit.program.op_results(user).nth(result) else { break };
            wanted = Some(self.target(next));
            if !is_reshard(kind) {
                break;
            }
            value = next;
        }
        Some((wanted?, value))
    }
    /// Whether the look-ahead passes `op`: it is elementwise in `value`.
    fn is_elementwise(&self, op: OpId, value: ValueId) -> bool {
        let program = &*self.emit.program;
        let shape = |ty| match &program.types()[ty] {
            Type::RankedTensor { shape, .. } => Some(shape),
            _ => None,
        };
        self.how.results == Results::AsWanted
            && program.has_traits(op, OpTraits::ELEMENTWISE)
            && shape(self.global_type(value)) == shape(program.type_of(program.result(op, 0)))
    }
    /// The only user of `value`, if it is in the same block, and the operand index of `value` in it.
    fn only_user(&self, value: ValueId) -> Option<(OpId, usize)> {
        let program = &*self.emit.program;
        let mut uses = program.uses(value);
        let slot = uses.next()?;
        let (user, op) = (program.user(slot), program.defining_op(value)?);
        let is_only = uses.next().is_none();
        let is_here = program.parent_block(user) == program.parent_block(op);
        (is_only && is_here).then(|| (user, program.operand_index(slot)))
    }
}

const fn is_reshard(kind: OpKind) -> bool {
    matches!(kind, OpKind::Reshard | OpKind::ShardingConstraint)
}
