//! Looks ahead: a value whose only user reshards it is computed for where that user wants it. Between a pad that grows a
//! dim, say, and an all-gather of it, the operand of the pad is gathered if that sends less. Of reshards in a row only the
//! last one counts.

use super::super::placement::PlacementId;
use super::super::policy::Policy;
use super::{Lowering, Treatment};
use crate::index::{OpId, ValueId};
use crate::ir::OpKind;

impl Lowering<'_, '_, '_> {
    /// The placement to which the only user of `value` reshards it; `None` if it has other users, or that one does not.
    pub(super) fn wanted_of(&mut self, mut value: ValueId) -> Option<PlacementId> {
        if self.how.policy != Policy::FewestBytes || self.how.one_by_one.is_some() {
            return None;
        }
        let mut wanted = None;
        while let Some((user, index)) = self.only_user(value) {
            let kind = self.emit.program.kind(user);
            let result = match Treatment::of(kind) {
                Treatment::Return => {
                    let expected = self.returns.last().and_then(|list| list.get(index));
                    return expected.copied().or(wanted);
                }
                Treatment::Reshard
                    if matches!(kind, OpKind::Reshard | OpKind::ShardingConstraint) =>
                {
                    0
                }
                Treatment::Barrier => index,
                Treatment::Branches if kind == OpKind::While => index,
                _ => break,
            };
            let Some(next) = self.emit.program.op_results(user).nth(result) else { break };
            wanted = Some(self.target(next));
            if !matches!(kind, OpKind::Reshard | OpKind::ShardingConstraint) {
                break;
            }
            value = next;
        }
        wanted
    }
    /// The user of `value` in its block if it is the only one, and which operand of it `value` is.
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
