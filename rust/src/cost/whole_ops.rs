//! The work, on global shapes, of ops of the source program that devices compute in parts.

use super::local::Local;
use super::OpRow;
use crate::index::{Id, OpId};
use crate::work::cached::{Outcome, Works};

/// The FLOPs of an op of the source, and the number of devices that share it: those with equal coordinates on the manual axes
/// around it.
pub type WholeOp = (u128, u128);

/// For each of `rows` that is a dot or convolution the global op that it is a part of, if there is one, in a program over
/// `num_devices` devices. Custom calls with a cost estimate have none.
pub fn whole_ops(local: Local<'_>, rows: &[OpRow], num_devices: u128) -> Vec<Option<WholeOp>> {
    let mut works = Works::new(local.source);
    let mut of = |row: &OpRow| {
        row.unit.product()?;
        let op = source_op(local, row.op)?;
        match works.of(op) {
            Outcome::Counted(work) => Some((work.flops, num_devices / manual(local, op).max(1))),
            _ => None,
        }
    };
    rows.iter().map(&mut of).collect()
}

/// The op of the source that `op` is a part of; its clone, if its function was inlined.
fn source_op(local: Local<'_>, op: OpId) -> Option<OpId> {
    let source = local.source;
    let is_there = |&found: &OpId| {
        found.index() < source.num_op_ids()
            && !source.is_erased(found)
            && source.op_name(found) == local.program.op_name(op)
    };
    Some(op).filter(is_there).or_else(|| local.source_op(op).filter(is_there))
}

/// The number of devices along the manual axes around `op`, an op of the source.
fn manual(local: Local<'_>, op: OpId) -> u128 {
    let source = local.source;
    let around = source.manual_axes_around_op(op);
    if around.is_empty() {
        return 1;
    }
    let Some(mesh) = local.meshes(Some(op)).next() else { return 1 };
    let mesh = source.mesh(mesh);
    let names = around.iter().map(|&name| source.strings().get(name));
    let sizes = names.filter_map(|name| mesh.axes.iter().find(|axis| *axis.name == *name));
    sizes.map(|axis| u128::from(axis.size.unsigned_abs())).product()
}
