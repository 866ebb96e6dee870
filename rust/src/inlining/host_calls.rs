//! Calls marked by JAX's `compute_on("device_host")`, which the host of a device executes.
//!
//! JAX marks calls, and most ops in their callees; XLA offloads the whole call.

use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};
use crate::mlir::op_attribute;

/// The attribute with XLA's frontend attributes.
pub const FRONTEND_ATTRIBUTES: &str = "mhlo.frontend_attributes";

/// Whether `op` is marked for the host.
pub fn is_for_host(program: &Program, op: OpId) -> bool {
    if program.attr(op, FRONTEND_ATTRIBUTES).is_none() {
        return false;
    }
    let found = op_attribute(program, op, FRONTEND_ATTRIBUTES);
    let kind = found.as_ref().and_then(|found| found.field("_xla_compute_type")?.as_str());
    kind == Some("host")
}

/// Marks `op` for the host, unless it is a terminator or has other frontend attributes.
pub(super) fn let_host_compute(program: &mut Program, op: OpId) {
    let is_plain = program.attr(op, FRONTEND_ATTRIBUTES).is_none()
        && !program.has_traits(op, OpTraits::TERMINATOR)
        && !matches!(program.kind(op), OpKind::Call | OpKind::Constant);
    if is_plain {
        program.set_attr(op, FRONTEND_ATTRIBUTES, "{_xla_compute_type = \"host\"}");
    }
}
