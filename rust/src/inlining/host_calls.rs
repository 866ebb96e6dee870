//! Calls that JAX's `compute_on("device_host")` marks: what the host of a device computes.
//!
//! JAX says it of calls, and of most ops in what they call; XLA takes all of these.

use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};
use crate::mlir::op_attribute;

/// The attribute that has those of XLA.
pub const FRONTEND_ATTRIBUTES: &str = "mhlo.frontend_attributes";

/// Whether the host is to compute `op`.
pub fn is_for_host(program: &Program, op: OpId) -> bool {
    if program.attr(op, FRONTEND_ATTRIBUTES).is_none() {
        return false;
    }
    let found = op_attribute(program, op, FRONTEND_ATTRIBUTES);
    let kind = found.as_ref().and_then(|found| found.field("_xla_compute_type")?.as_str());
    kind == Some("host")
}

/// Lets the host compute `op`, unless that is a terminator or has other attributes for XLA.
pub(super) fn let_host_compute(program: &mut Program, op: OpId) {
    let is_plain = program.attr(op, FRONTEND_ATTRIBUTES).is_none()
        && !program.has_traits(op, OpTraits::TERMINATOR)
        && !matches!(program.kind(op), OpKind::Call | OpKind::Constant);
    if is_plain {
        program.set_attr(op, FRONTEND_ATTRIBUTES, "{_xla_compute_type = \"host\"}");
    }
}
