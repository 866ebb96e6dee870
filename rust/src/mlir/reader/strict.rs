//! Rejects dictionaries that repeat attributes of the op's custom syntax, as newer versions of MLIR
//! do.

use super::parser::{Parser, PendingOp};
use crate::error::Result;
use crate::ir::OpKind;
use crate::mlir::cursor::syntax;
use crate::mlir::meaning::{axes_attribute, in_own_syntax};
use crate::shardy::Change;

impl Parser<'_> {
    /// Fails if the dictionary of `pending`'s op, which is on the stack of attributes, has an
    /// attribute that is part of the op's custom syntax.
    pub(super) fn check_strict(&self, pending: &PendingOp) -> Result<()> {
        let attrs = &self.parts.attrs[pending.base.attrs..];
        if attrs.is_empty() || !self.program.shardy().has(Change::StrictDictionaries) {
            return Ok(());
        }
        let op = self.program.str(pending.name.id);
        for attr in attrs {
            let name = self.program.str(attr.name);
            if is_inherent(op, pending.name.kind, name) {
                let message = format!(
                    "inherent attribute '{name}' cannot be parsed from attr-dict when strict properties in assembly \
                     format is enabled"
                );
                return Err(in_own_syntax(op, syntax(attr.value, message).into()));
            }
        }
        Ok(())
    }
}

/// Whether attribute `name` is part of the custom syntax of ops called `op`, of a dialect whose dictionaries are strict.
fn is_inherent(op: &str, kind: OpKind, name: &str) -> bool {
    match kind {
        OpKind::Module => matches!(name, "sym_name" | "sym_visibility"),
        OpKind::Mesh => matches!(name, "sym_name" | "mesh"),
        OpKind::Call => matches!(name, "callee" | "no_inline" | "arg_attrs" | "res_attrs"),
        OpKind::ShardingConstraint | OpKind::Reshard | OpKind::DataFlowEdge => name == "sharding",
        OpKind::ShardingGroup => name == "group_id",
        OpKind::PropagationBarrier => name == "allowed_direction",
        OpKind::ManualComputation => {
            matches!(name, "in_shardings" | "out_shardings" | "manual_axes")
        }
        OpKind::NamedComputation => matches!(name, "name" | "in_shardings" | "out_shardings"),
        OpKind::AllReduce | OpKind::ReduceScatter if name == "reduction_op" => true,
        _ if axes_attribute(kind).is_some() => {
            name == "out_sharding" || axes_attribute(kind) == Some(name)
        }
        _ => op.strip_prefix("arith.").is_some_and(|op| is_inherent_of_arith(op, name)),
    }
}

/// Whether attribute `name` is part of the custom syntax of op `op` of `arith`.
fn is_inherent_of_arith(op: &str, name: &str) -> bool {
    match name {
        "value" => op == "constant",
        "overflowFlags" => matches!(op, "addi" | "subi" | "muli" | "shli" | "trunci"),
        "isExact" => matches!(op, "divsi" | "divui" | "shrsi" | "shrui"),
        "nonNeg" => matches!(op, "extui" | "uitofp" | "index_castui"),
        "roundingmode" => matches!(op, "addf" | "subf" | "mulf" | "divf" | "truncf"),
        "fastmath" => matches!(
            op,
            "addf"
                | "subf"
                | "mulf"
                | "divf"
                | "remf"
                | "negf"
                | "maximumf"
                | "minimumf"
                | "maxnumf"
                | "minnumf"
                | "extf"
                | "truncf"
        ),
        _ => false,
    }
}
