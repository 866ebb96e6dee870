//! Checks the types of the operands of Shardy's ops.

use super::Verifier;
use crate::error::Code;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Type};

/// The types that the operands of an op may have.
#[derive(Clone, Copy)]
enum OperandType {
    /// Ranked tensors.
    RankedTensor,
    /// Tensors, buffers and vectors.
    Shaped,
}

impl OperandType {
    /// The operand types of ops of `kind`, if they are restricted.
    fn of(kind: OpKind) -> Option<Self> {
        match kind {
            OpKind::ShardingGroup | OpKind::PropagationBarrier => Some(Self::RankedTensor),
            OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge => Some(Self::Shaped),
            kind => kind.is_collective().then_some(Self::Shaped),
        }
    }
    /// The description of the type in MLIR's message.
    const fn text(self) -> &'static str {
        match self {
            Self::RankedTensor => "ranked tensor",
            Self::Shaped => "shaped",
        }
    }
}

impl Verifier<'_> {
    /// Whether the operands of `op` have types that it accepts, if it is Shardy's; reports an error
    /// if not.
    pub(super) fn has_sdy_types(&mut self, op: OpId) -> bool {
        let program = self.program;
        let Some(wanted) = OperandType::of(program.kind(op)) else { return true };
        let Some(index) = program.operands(op).position(|operand| !self.is(operand, wanted)) else {
            return true;
        };
        let found = program.value_type_text(program.operand(op, index));
        let name = program.op_name(op);
        if !self.is_in_custom_syntax(op) {
            let wanted = wanted.text();
            let message = format!(
                "operand #{index} must be {wanted} of any non-token type values, but got '{found}'"
            );
            self.report_at_sharding(op, Code::InvalidOp, &message);
            return false;
        }
        let mut message = format!("custom op '{name}' invalid kind of type specified");
        if matches!(wanted, OperandType::RankedTensor) {
            message = format!("{message}: expected builtin.tensor, but found '{found}'");
        }
        self.bare(op, message);
        false
    }
    fn is(&self, value: ValueId, wanted: OperandType) -> bool {
        match (self.program.value_type(value), wanted) {
            (Type::RankedTensor { .. } | Type::MeshTensor { .. }, _)
            | (Type::UnrankedTensor(_), OperandType::Shaped) => true,
            (Type::Other(_), OperandType::Shaped) => is_shaped(self.program.value_type_text(value)),
            _ => false,
        }
    }
}

/// Whether `ty`, which is not a tensor, has a shape.
fn is_shaped(ty: &str) -> bool {
    ty.starts_with("memref<") || ty.starts_with("vector<")
}

/// Whether the type with text `ty`, which is not a tensor, has a static shape.
pub(super) fn has_static_shape(ty: &str) -> bool {
    let sizes = ty.split_once('<').map_or("", |(_, rest)| rest);
    is_shaped(ty) && !sizes.starts_with('*') && !sizes.contains('?')
}
