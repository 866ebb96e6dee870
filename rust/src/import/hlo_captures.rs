//! During propagation, replaces values that a loop carries unchanged by values that its regions
//! capture.
//!
//! Values that may be sharded are captured through a constraint without axes, so that the loop may
//! use them with another sharding. After propagation, captured values become operands again.
//!
//! Source: the canonicalization of `while` in MLIR, XLA's `OpenWhileFreeVarsShardingPass` and `PrepareForExport`.

use super::hlo_loops::{bodies, is_constant, reached, rewrite, Form, Role};
use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{InsertPoint, OpKind, Place, Program, ValueDef};
use crate::sharding::TensorSharding;
use rustc_hash::FxHashSet;

/// Replaces the loop-invariant operands of the loops of `program` by captures.
pub fn capture(program: &mut Program, originals: &mut Originals) {
    let mut loops = Vec::new();
    for op in reached(program) {
        let Some([_, body]) = bodies(program, op) else { continue };
        let returned: Vec<ValueId> = program.operands(program.last_op(body)).collect();
        let mut form = Form::default();
        for (index, (arg, value)) in program.block_args(body).zip(returned).enumerate() {
            let is_kept = arg == value;
            form.roles.push(if is_kept { Role::Captured } else { Role::Carried });
            if !is_kept {
                form.order.push(index);
            }
        }
        let is_changed = form.order.len() < form.roles.len();
        loops.push(if is_changed { rewrite(program, originals, op, &form, &[]) } else { op });
    }
    for op in loops {
        open(program, originals, op);
    }
}

/// Makes the captured values of the loops of `program` operands, except constants.
pub fn release(program: &mut Program, originals: &mut Originals) {
    // Inner loops first.
    for op in reached(program).into_iter().rev() {
        let mut captured = captured(program, op);
        captured.retain(|&value| !is_constant(program, value));
        if !captured.is_empty() {
            let count = program.num_operands(op);
            let form = Form { roles: vec![Role::Carried; count], order: (0..count).collect() };
            rewrite(program, originals, op, &form, &captured);
        }
    }
}

/// Inserts an open constraint without axes between values outside `op` that may be sharded and
/// their uses inside. This does not depend on annotations: arguments count as sharded.
fn open(program: &mut Program, originals: &mut Originals, op: OpId) {
    let mut found = captured(program, op);
    found.retain(|&value| is_annotated(program, value));
    let inside: FxHashSet<OpId> = program.pre_order(op).skip(1).collect();
    for value in found {
        let Some(rank) = program.value_type(value).rank() else { continue };
        let sharding = program.shardings().get(program.sharding(value));
        let Some(mesh) = sharding.map(|sharding| sharding.mesh).or(program.meshes().ids().next())
        else {
            continue;
        };
        let open = TensorSharding::fully_replicated(mesh, rank, false);
        let open = program.intern_sharding(open);
        let at = InsertPoint { place: Place::Before(op), loc: program.loc(op) };
        let made = program.build_unary(OpKind::ShardingConstraint, value, open, at);
        let image = program.result(made, 0);
        originals.note_op(made, op);
        originals.note_value(image, value);
        program.replace_uses_if(value, image, |program, slot| inside.contains(&program.user(slot)));
    }
}

/// Whether annotations are written on `value`.
fn is_annotated(program: &Program, value: ValueId) -> bool {
    match program.def(value) {
        ValueDef::Result(op) => program.kind(op) == OpKind::ShardingConstraint,
        ValueDef::Arg(block) => program.kind(program.block_parent_op(block)) != OpKind::While,
    }
}

/// The values outside `op` that are used inside it, in the order of their first uses.
fn captured(program: &Program, op: OpId) -> Vec<ValueId> {
    let inside: FxHashSet<OpId> = program.pre_order(op).collect();
    let mut seen: FxHashSet<ValueId> = FxHashSet::default();
    let mut found: Vec<ValueId> = Vec::new();
    for user in program.post_order(op).filter(|&user| user != op) {
        for value in program.operands(user) {
            let owner = match program.def(value) {
                ValueDef::Result(def) => def,
                ValueDef::Arg(block) => program.block_parent_op(block),
            };
            if !inside.contains(&owner) && seen.insert(value) {
                found.push(value);
            }
        }
    }
    found
}
