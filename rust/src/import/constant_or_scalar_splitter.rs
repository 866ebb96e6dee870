//! `sdy-constant-or-scalar-splitter`: clones constant sub-computations and broadcast scalars for each of
//! their uses, so that shardings do not propagate between uses that only share a constant.
//!
//! A *constant sub-computation* is a constant, an iota, or a broadcast, reshape, slice, elementwise
//! op, call or named computation whose operands are all constant sub-computations; a *scalar
//! expansion* is a broadcast of a scalar. Scalars have nothing to shard and are never copied.
//! Copies are inserted before the original, in the order of the uses, and the original is erased.
//! As a shortcut, the last use keeps the original, with its name, instead of a copy: most constants
//! have only one use.
//!
//! Before that, `stablehlo.constant` becomes `sdy.constant`, which folding never merges.

use super::{callee, CallGraph, FunctionCloner};
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, Id, OpId, StrId, ValueId};
use crate::ir::{OpKind, OpTraits, Payload, Place, Program, SymbolTable, ValueMap};
use crate::partition::conversion::fold_all;
use rustc_hash::FxHashSet;
use std::mem::take;

/// Runs the pass.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    fold_all(program, program.module_op(), |program, op| program.kind(op) == OpKind::SdyConstant);
    rename_constants(program);
    let symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    let group_users = group_users(program);
    let mut splitter = Splitter {
        roles: vec![Role::Plain; program.num_value_ids()],
        room: context.limits.max_ops.saturating_sub(program.num_op_ids()),
        program,
        symbols,
        group_users,
        is_acyclic: graph.is_acyclic(),
        map: ValueMap::default(),
        stack: Vec::new(),
        varying_functions: FxHashSet::default(),
        varying_computations: FxHashSet::default(),
    };
    for (done, &func) in graph.post_order.iter().enumerate() {
        splitter.split_function(func)?;
        context.progress("sdy-constant-or-scalar-splitter", done + 1, graph.post_order.len())?;
    }
    Ok(())
}

/// Turns every `stablehlo.constant` into an `sdy.constant`. The reference replaces the op, which
/// leaves the uses in reverse order.
fn rename_constants(program: &mut Program) {
    let constants = program.ops_of(&[OpKind::Constant]);
    program.rename_ops(&constants, "sdy.constant");
    for op in constants {
        for result in program.op_results(op) {
            program.reverse_uses(result);
        }
    }
}

/// The values in sharding groups, sorted, with the `sdy.sharding_group` ops that use them, in the
/// order of uses.
fn group_users(program: &Program) -> Vec<(ValueId, OpId)> {
    let groups = program.ops_of(&[OpKind::ShardingGroup]);
    let mut values: Vec<ValueId> = groups.iter().map(|&op| program.operand(op, 0)).collect();
    values.sort();
    values.dedup();
    let users = |value| {
        let owners = program.uses(value).map(move |slot| (value, program.user(slot)));
        owners.filter(|&(_, user)| program.kind(user) == OpKind::ShardingGroup)
    };
    values.into_iter().flat_map(users).collect()
}

/// The classes of ops in this pass.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Plain,
    Constant,
    ScalarExpansion,
}

/// An op that is being copied, operands first.
struct Entry {
    value: ValueId,
    op: OpId,
    /// The index of the next operand.
    next: usize,
    /// Whether the original is used instead of a copy.
    stays: bool,
}

struct Splitter<'a> {
    program: &'a mut Program,
    symbols: SymbolTable,
    /// For each value of the program before the pass, the role of its op.
    roles: Vec<Role>,
    /// The number of ops that may still be added.
    room: usize,
    group_users: Vec<(ValueId, OpId)>,
    /// Whether the call graph is acyclic, so that functions can be cloned with their callees.
    is_acyclic: bool,
    /// A buffer for copying one value.
    map: ValueMap,
    stack: Vec<Entry>,
    /// Names of functions and named computations that are not constant if their inputs are.
    varying_functions: FxHashSet<StrId>,
    varying_computations: FxHashSet<StrId>,
}

impl Splitter<'_> {
    /// Splits constants in `func`, first in its named computations.
    fn split_function(&mut self, func: FuncId) -> Result<()> {
        let root = self.program.func_op(func);
        let named: Vec<OpId> = if self.program.has_any(&[OpKind::NamedComputation]) {
            let ops = self.program.post_order(root);
            ops.filter(|&op| self.program.kind(op) == OpKind::NamedComputation).collect()
        } else {
            Vec::new()
        };
        let name = self.program.original_name(func);
        for op in named {
            self.split_region_of(op, name)?;
        }
        self.split_region_of(root, name)
    }

    /// Splits constants in the region of `root`, but not in named computations inside it.
    fn split_region_of(&mut self, root: OpId, function: StrId) -> Result<()> {
        let computation = self.computation_name(root);
        let mut constants = Vec::new();
        let mut expansions = Vec::new();
        let mut is_varying = false;
        let mut next = self.program.next_in_pre_order(root, root);
        while let Some(op) = next {
            // Copies are inserted before ops that the walk has visited.
            next = if self.program.kind(op) == OpKind::NamedComputation {
                self.program.next_outside(op, root)
            } else {
                self.program.next_in_pre_order(op, root)
            };
            if !is_varying && self.varies(op)? {
                is_varying = true;
                self.varying_computations.extend(computation);
                self.varying_functions.insert(function);
            }
            let (is_constant, is_any_special) = self.roles_of_operands(op);
            match self.role(op, is_constant)? {
                Role::Plain if is_any_special => self.copy_operands(op)?,
                Role::Plain => {}
                role => {
                    for result in self.program.op_results(op) {
                        self.roles[result.index()] = role;
                    }
                    let list =
                        if role == Role::Constant { &mut constants } else { &mut expansions };
                    list.push(op);
                }
            }
        }
        for op in expansions.into_iter().chain(constants.into_iter().rev()) {
            self.erase_if_unused(op);
        }
        Ok(())
    }

    fn computation_name(&self, op: OpId) -> Option<StrId> {
        match self.program.payload(op) {
            Some(&Payload::NamedComputation { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Whether the results of `op` are not constant even if its operands are.
    fn varies(&mut self, op: OpId) -> Result<bool> {
        let is_let_pass = matches!(
            self.program.kind(op),
            OpKind::Func | OpKind::ShardingGroup | OpKind::SdyConstant | OpKind::Iota
        );
        Ok(!is_let_pass
            && !self.program.has_traits(op, OpTraits::TERMINATOR)
            && !self.preserves_constants(op)?)
    }

    /// Whether all operands of `op` are constants, and whether any is a constant or a scalar expansion.
    fn roles_of_operands(&self, op: OpId) -> (bool, bool) {
        let (mut is_constant, mut is_any_special) = (true, false);
        for value in self.program.operands(op) {
            let role = self.role_of(value);
            is_constant &= role == Role::Constant;
            is_any_special |= role != Role::Plain;
        }
        (is_constant, is_any_special)
    }

    /// The role of `op`; `is_constant` is whether all its operands are constants.
    #[inline]
    fn role(&mut self, op: OpId, is_constant: bool) -> Result<Role> {
        let kind = self.program.kind(op);
        if matches!(kind, OpKind::SdyConstant | OpKind::Iota) {
            return Ok(Role::Constant);
        }
        if is_constant
            && !matches!(kind, OpKind::Func | OpKind::ShardingGroup)
            && self.preserves_constants(op)?
        {
            return Ok(Role::Constant);
        }
        let is_expansion =
            kind == OpKind::BroadcastInDim && is_scalar(self.program, self.program.operand(op, 0));
        Ok(if is_expansion { Role::ScalarExpansion } else { Role::Plain })
    }

    /// Replaces the operands of `op` that are constants or scalar expansions by copies.
    fn copy_operands(&mut self, op: OpId) -> Result<()> {
        if matches!(self.program.kind(op), OpKind::Func | OpKind::ShardingGroup) {
            return Ok(());
        }
        for slot in self.program.op_uses(op) {
            let value = self.program.used_value(slot);
            if self.role_of(value) != Role::Plain {
                match self.copy(value)? {
                    Some(copy) => self.program.set_operand(slot, copy),
                    None => self.program.make_newest_use(slot),
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn role_of(&self, value: ValueId) -> Role {
        self.roles.get(value.index()).copied().unwrap_or(Role::Plain)
    }

    /// Whether the results of `op` are constant if its operands are.
    fn preserves_constants(&mut self, op: OpId) -> Result<bool> {
        let program = &mut *self.program;
        Ok(match program.kind(op) {
            OpKind::Call => {
                let func = callee(program, &self.symbols, op)?;
                let name = program.original_name(func);
                !self.varying_functions.contains(&name)
            }
            OpKind::NamedComputation => {
                let name = self.computation_name(op);
                name.is_some_and(|name| !self.varying_computations.contains(&name))
            }
            OpKind::BroadcastInDim
            | OpKind::Reshape
            | OpKind::Slice
            | OpKind::PropagationBarrier
            | OpKind::Reshard => has_static_operands(program, op),
            OpKind::BitcastConvert => {
                let (from, to) = (program.operand(op, 0), program.result(op, 0));
                let shape = program.value_type(from).static_shape();
                shape.is_some() && shape == program.value_type(to).static_shape()
            }
            _ => {
                let elementwise_and_pure = OpTraits::ELEMENTWISE.or(OpTraits::PURE);
                program.has_traits(op, elementwise_and_pure) && has_static_operands(program, op)
            }
        })
    }

    /// Copies the ops that compute `root`, a constant or a scalar expansion, for one use of it;
    /// `None` if the use keeps the original.
    fn copy(&mut self, root: ValueId) -> Result<Option<ValueId>> {
        let Some(op) = self.copied_op(root) else { return Ok(None) };
        let is_copied = |value| self.copied_op(value).is_some();
        if self.can_stay(root, op) && !self.program.operands(op).any(is_copied) {
            self.program.op_uses(op).for_each(|slot| self.program.make_newest_use(slot));
            return Ok(None);
        }
        let (mut map, mut stack) = (take(&mut self.map), take(&mut self.stack));
        map.clear();
        self.enter(root, true, &map, &mut stack);
        while let Some(entry) = stack.last_mut() {
            let Entry { value, op, next, stays } = *entry;
            if next < self.program.num_operands(op) {
                entry.next += 1;
                self.enter(self.program.operand(op, next), stays, &map, &mut stack);
                continue;
            }
            stack.pop();
            if stays {
                self.keep_op(op, &map);
            } else if map.get(value).is_none() {
                self.copy_op(value, op, &mut map)?;
            }
        }
        let copy = map.get(root);
        (self.map, self.stack) = (map, stack);
        Ok(copy)
    }

    /// Pushes the op of `value` if it has to be copied for a user; `user_stays` is whether the user
    /// is an original.
    fn enter(&self, value: ValueId, user_stays: bool, map: &ValueMap, stack: &mut Vec<Entry>) {
        if let Some(op) = self.copied_op(value).filter(|_| map.get(value).is_none()) {
            let stays = user_stays && self.can_stay(value, op);
            stack.push(Entry { value, op, next: 0, stays });
        }
    }

    /// The op that defines `value`; `None` for arguments and scalars, which are not copied.
    fn copied_op(&self, value: ValueId) -> Option<OpId> {
        self.program.defining_op(value).filter(|_| !is_scalar(self.program, value))
    }

    /// Whether `op`, which defines `value`, can be used instead of a copy: it has one use and one
    /// result, and no region or callee.
    fn can_stay(&self, value: ValueId, op: OpId) -> bool {
        let program = &self.program;
        let is_plain = program.num_results(op) == 1
            && program.num_regions(op) == 0
            && program.kind(op) != OpKind::Call;
        is_plain && self.program.has_one_use(value)
    }

    /// Gives `op`, which is used instead of a copy, the operands and the use order that the copy
    /// would have.
    fn keep_op(&mut self, op: OpId, map: &ValueMap) {
        for slot in self.program.op_uses(op) {
            match map.get(self.program.used_value(slot)) {
                Some(copy) => self.program.set_operand(slot, copy),
                None => self.program.make_newest_use(slot),
            }
        }
    }

    /// Copies `op` right before itself, with the functions it calls, and copies the group
    /// memberships of `value`.
    fn copy_op(&mut self, value: ValueId, op: OpId, map: &mut ValueMap) -> Result<()> {
        let num_ops = self.program.num_op_ids();
        let copy = self.program.clone_op(op, map, false);
        self.program.insert_op(copy, Place::Before(op));
        if self.program.kind(copy) == OpKind::Call {
            if !self.is_acyclic {
                CallGraph::new(self.program, &self.symbols).check_acyclic(self.program)?;
            }
            let func = callee(self.program, &self.symbols, copy)?;
            let mut cloner = FunctionCloner::default();
            let name = cloner.clone_recursively(self.program, &mut self.symbols, func)?;
            self.program.set_payload(copy, Payload::Call(name));
        }
        let first = self.group_users.partition_point(|&(other, _)| other < value);
        for &(_, group) in self.group_users[first..].iter().take_while(|(other, _)| *other == value)
        {
            let group = self.program.clone_op(group, map, false);
            self.program.insert_op(group, Place::Before(op));
        }
        let added = self.program.num_op_ids() - num_ops;
        self.room = self.room.checked_sub(added).ok_or_else(|| {
            let message = "splitting constants makes the program larger than the limit";
            Diagnostic::new(Code::ProgramTooLarge, message).with_hint("raise the limit `max_ops`")
        })?;
        Ok(())
    }

    /// Erases `op` and its group memberships if these are its only users.
    fn erase_if_unused(&mut self, op: OpId) {
        let program = &mut *self.program;
        let mut users = Vec::new();
        for result in program.op_results(op) {
            for slot in program.uses(result) {
                let user = program.user(slot);
                if program.kind(user) != OpKind::ShardingGroup {
                    return;
                }
                users.push(user);
            }
        }
        for user in users {
            program.erase_op(user);
        }
        program.erase_op(op);
    }
}

fn is_scalar(program: &Program, value: ValueId) -> bool {
    program.types().is_scalar(program.type_of(value))
}

/// Whether all operands have static shapes, so that the op cannot fail at run time.
fn has_static_operands(program: &Program, op: OpId) -> bool {
    let is_static = |value: ValueId| program.types().is_static_tensor(program.type_of(value));
    program.operands(op).all(is_static)
}
