//! Annotations on arguments, results and values of a program before propagation.

use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, Id, OpId, ShardingId, UseId, ValueId};
use crate::ir::{InsertPoint, OpKind, Program, ValueDef};
use rustc_hash::FxHashSet;

/// What can be annotated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// An argument of a function, by its index.
    Argument(FuncId, usize),
    /// A result of a function, by its index.
    Result(FuncId, usize),
    /// A value in a function.
    Value(ValueId),
}

impl Target {
    /// The target that `value` stands for: an argument, if it is one of a function.
    pub fn of_value(program: &Program, value: ValueId) -> Self {
        let ValueDef::Arg(block) = program.def(value) else { return Self::Value(value) };
        let owner = program.block_parent_op(block);
        if program.kind(owner) == OpKind::Func {
            return Self::Argument(program.function_of(owner), program.value_index(value));
        }
        Self::Value(value)
    }
}

/// The sharding that `target` is annotated with: that of the argument, of the result, of the constraint that
/// makes the value, or of the op that does; `NONE` if there is none.
pub fn annotation(program: &Program, target: Target) -> ShardingId {
    match target {
        Target::Argument(func, index) => program.func_arg_sharding(func, index),
        Target::Result(func, index) => program.func_results(func)[index].sharding,
        Target::Value(value) => program.sharding(value),
    }
}

/// The given annotations besides those of the arguments and results of `entry`: results of constraints, results with shardings on
/// ops that are not of Shardy's dialect, and arguments and results of other functions; in order.
pub fn annotated_values(program: &Program, entry: FuncId) -> Vec<Target> {
    let mut found = Vec::new();
    for func in program.functions_in_order() {
        let values = program.values_of(program.func_op(func)).into_iter();
        let annotated = values.filter(|&value| {
            program.sharding(value).is_some() && is_annotation(program, value, entry)
        });
        found.extend(annotated.map(|value| Target::of_value(program, value)));
        if func != entry {
            let results = program.func_results(func).iter().enumerate();
            let annotated = results.filter(|(_, result)| result.sharding.is_some());
            found.extend(annotated.map(|(index, _)| Target::Result(func, index)));
        }
    }
    found
}

/// Whether the sharding of `value` is an annotation of a value.
fn is_annotation(program: &Program, value: ValueId, entry: FuncId) -> bool {
    match program.def(value) {
        ValueDef::Result(op) => is_constraint(program, op) || !is_of_shardy(program, op),
        ValueDef::Arg(block) => {
            let owner = program.block_parent_op(block);
            program.kind(owner) == OpKind::Func && program.function_of(owner) != entry
        }
    }
}

/// Annotates each target of a parsed program with its sharding, or removes its annotation (`NONE`). Annotations
/// are removed before others are added, so that the order of `edits` does not matter.
///
/// # Errors
/// A value is not a tensor.
pub fn annotate(program: &mut Program, edits: &[(Target, ShardingId)]) -> Result<(), Diagnostic> {
    let (removed, set): (Vec<_>, Vec<_>) = edits.iter().partition(|(_, id)| id.is_none());
    let bare = removed.iter().filter_map(|(target, _)| match target {
        Target::Value(value) => Some(*value),
        Target::Argument(..) | Target::Result(..) => None,
    });
    let bare: FxHashSet<ValueId> = bare.collect();
    for (target, sharding) in removed.into_iter().chain(set) {
        annotate_one(program, target, sharding, &bare)?;
    }
    Ok(())
}

/// Annotates `target` with `sharding`, or removes its annotation (`NONE`). A value is constrained as by
/// `with_sharding_constraint`: the ops that use it use the constraint's result instead. If it is a
/// constraint's result already, the constraint gets the sharding. `bare` are the values whose annotations are removed.
fn annotate_one(
    program: &mut Program,
    target: Target,
    sharding: ShardingId,
    bare: &FxHashSet<ValueId>,
) -> Result<(), Diagnostic> {
    match target {
        Target::Argument(func, index) => {
            match program.func_body(func).get() {
                Some(body) => program.set_sharding(program.block_arg(body, index), sharding),
                None => program.set_declared_arg_sharding(func, index, sharding),
            };
        }
        Target::Result(func, index) => {
            program.set_func_result_sharding(func, index, sharding);
        }
        Target::Value(value) => return constrain(program, value, sharding, bare),
    }
    Ok(())
}

fn constrain(
    program: &mut Program,
    value: ValueId,
    sharding: ShardingId,
    bare: &FxHashSet<ValueId>,
) -> Result<(), Diagnostic> {
    if program.types()[program.type_of(value)].rank().is_none() {
        let message = format!("{} is not a tensor", program.value_name(value));
        let hint = "annotate a tensor of static rank";
        return Err(Diagnostic::new(Code::InvalidSharding, message).with_hint(hint));
    }
    let constraint = program.defining_op(value).filter(|&op| is_constraint(program, op));
    match (constraint, sharding.is_some()) {
        (Some(_), true) => {
            program.set_sharding(value, sharding);
        }
        (Some(op), false) => remove_constraint(program, op),
        (None, true) => add_constraint(program, value, sharding),
        (None, false) => return remove_own(program, value, bare),
    }
    Ok(())
}

fn is_constraint(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::ShardingConstraint
}

/// Makes the users of `value` use a constraint of it, in the same order.
fn add_constraint(program: &mut Program, value: ValueId, sharding: ShardingId) {
    let users: Vec<UseId> = program.uses(value).collect();
    let loc = match program.def(value) {
        ValueDef::Result(op) => program.loc(op),
        ValueDef::Arg(block) => program.loc(program.block_parent_op(block)),
    };
    let at = InsertPoint { place: program.place_after_value(value), loc };
    let op = program.build_unary(OpKind::ShardingConstraint, value, sharding, at);
    move_uses(program, &users, program.result(op, 0));
}

fn remove_constraint(program: &mut Program, op: OpId) {
    let (input, result) = (program.operand(op, 0), program.result(op, 0));
    let users: Vec<UseId> = program.uses(result).collect();
    move_uses(program, &users, input);
    program.erase_op(op);
    restore_text_order(program, input);
}

/// Makes `slots`, which are listed newest first, uses of `value`.
fn move_uses(program: &mut Program, slots: &[UseId], value: ValueId) {
    for &slot in slots.iter().rev() {
        program.set_operand(slot, value);
    }
}

/// Sorts the uses of `value`, all of which were parsed, as if its program's text were parsed: the last in the text first.
fn restore_text_order(program: &mut Program, value: ValueId) {
    let mut uses: Vec<UseId> = program.uses(value).collect();
    uses.sort_unstable_by_key(|slot| std::cmp::Reverse(slot.index()));
    program.set_use_order(value, &uses);
}

/// Removes the sharding of `value` from its op or function. An op has shardings for all of its results or for none, so if other
/// results keep theirs, `value` gets an open one.
fn remove_own(
    program: &mut Program,
    value: ValueId,
    bare: &FxHashSet<ValueId>,
) -> Result<(), Diagnostic> {
    let old = program.sharding(value);
    if old.is_none() {
        return Ok(());
    }
    if let ValueDef::Arg(block) = program.def(value) {
        if program.kind(program.block_parent_op(block)) == OpKind::Func {
            program.set_sharding(value, ShardingId::NONE);
            return Ok(());
        }
    }
    let Some(op) = program.defining_op(value).filter(|&op| !is_of_shardy(program, op)) else {
        let message = format!("the sharding of {} is part of its op", program.value_name(value));
        let hint = "only annotations can be removed; constrain the value instead";
        return Err(Diagnostic::new(Code::InvalidSharding, message).with_hint(hint));
    };
    let has_others = program
        .op_results(op)
        .into_iter()
        .any(|other| !bare.contains(&other) && program.sharding(other).is_some());
    let (mesh, ty) = (program.mesh_of(old), program.type_of(value));
    let new = if has_others { program.replicated(mesh, ty, false) } else { ShardingId::NONE };
    program.set_sharding(value, new);
    Ok(())
}

/// Whether `op` is of Shardy's dialect, where shardings are part of the op.
fn is_of_shardy(program: &Program, op: OpId) -> bool {
    program.op_name(op).starts_with("sdy.")
}
