//! Converts GSPMD's manual bodies, the ops between custom calls `@SPMDFullToShardShape` and
//! `@SPMDShardToFullShape`, to `sdy.manual_computation`s.
//!
//! ```text
//! %1 = @Sharding(%0); %2 = @SPMDFullToShardShape(%1)         sdy.manual_computation(%0) (%a) {
//! %3 = body of %2                                      ==>     %3 = body of %a
//! %4 = @Sharding(%3); %5 = @SPMDShardToFullShape(%4)           sdy.return %3 }
//! ```
//!
//! [`hlo_bodies`](super::hlo_bodies) finds them. JAX emits a body as one call; then the body of the
//! callee is used.

use super::hlo_bodies::{bodies, is_constant, Body, Boundaries};
use super::import_func_calls::return_by_sdy;
use super::{mistake, CallGraph};
use crate::error::{Code, Result};
use crate::index::{BlockId, FuncId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Payload, Place, Program, SymbolTable, ValueMap};
use rustc_hash::{FxHashMap, FxHashSet};

/// Replaces all manual bodies between `boundaries`.
pub fn make_manual_computations(program: &mut Program, boundaries: &Boundaries) -> Result<()> {
    if boundaries.is_empty() {
        return Ok(());
    }
    let symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    graph.check_acyclic(program)?;
    let mut inlined = FxHashSet::default();
    // Callees first, and inner blocks before outer ones, so that no body is moved twice.
    for &func in &graph.post_order {
        let ops: Vec<OpId> = program.pre_order(program.func_op(func)).collect();
        for &op in ops.iter().rev() {
            let regions: Vec<_> = program.op_regions(op).collect();
            let blocks = regions
                .into_iter()
                .flat_map(|region| program.region_blocks(region).collect::<Vec<BlockId>>());
            for block in blocks.collect::<Vec<_>>() {
                for body in bodies(program, block, boundaries)? {
                    inlined.extend(body.replace(program, boundaries, &symbols)?.get());
                }
            }
        }
    }
    drop_functions(program, &inlined);
    drop_outer_axes(program);
    Ok(())
}

impl Body {
    /// Replaces the body by a manual computation. Returns the function whose body was taken.
    fn replace(
        &self,
        program: &mut Program,
        boundaries: &Boundaries,
        symbols: &SymbolTable,
    ) -> Result<FuncId> {
        let Some(&end) = self.ends.first() else { return self.drop_unused(program) };
        let mut operands = Vec::new();
        let mut shardings = Vec::new();
        for &start in &self.starts {
            let (value, sharding) = input(program, start)?;
            operands.push(value);
            shardings.push(sharding);
        }
        let results: Vec<ValueId> = self.ends.iter().map(|&end| program.result(end, 0)).collect();
        let types: Vec<TypeId> = results.iter().map(|&result| program.type_of(result)).collect();
        let axes = self.starts.iter().find_map(|start| boundaries.get(start));
        let axes = axes.map_or_else(|| all_axes(program, boundaries, end), |b| b.axes.clone());
        let computation = NewOp::of_kind(OpKind::ManualComputation, &operands, &types)
            .payload(Payload::ManualComputation(axes))
            .regions(1);
        let computation = program.build(computation, program.before(end));
        if let [only] = results[..] {
            program.copy_name(only, program.result(computation, 0));
        }
        let returned: Vec<ValueId> = self.ends.iter().map(|&end| output(program, end)).collect();
        let called = self.called(program, symbols);
        if let Some((call, func)) = called {
            take_function(program, computation, call, func, &returned);
        } else {
            self.take_ops(program, computation, &returned);
        }
        let body = program.region_entry(program.region(computation, 0));
        let args: Vec<ValueId> = program.block_args(body).collect();
        for (arg, sharding) in args.into_iter().zip(shardings) {
            program.set_sharding(arg, sharding);
        }
        for (index, &end) in self.ends.iter().enumerate() {
            let (old, new) = (program.result(end, 0), program.result(computation, index));
            program.set_sharding(new, boundaries[&end].sharding);
            program.replace_all_uses(old, new);
        }
        self.erase(program);
        Ok(called.map_or(FuncId::NONE, |(_, func)| func))
    }
    /// The call that is the whole body, and its callee.
    fn called(&self, program: &Program, symbols: &SymbolTable) -> Option<(OpId, FuncId)> {
        let is_work = |op: &&OpId| program.kind(**op) != OpKind::ShardingConstraint;
        let work: Vec<OpId> = self.ops.iter().filter(is_work).copied().collect();
        let &[call] = &work[..] else { return None };
        let Some(&Payload::Call(name)) = program.payload(call) else { return None };
        let func = symbols.function(name)?;
        let is_whole =
            program.num_operands(call) == self.starts.len()
                && self.starts.iter().enumerate().all(|(index, &start)| {
                    program.operand(call, index) == program.result(start, 0)
                });
        (is_whole && program.func_body(func).is_some()).then_some((call, func))
    }
    /// Moves the ops of the body into `computation`.
    fn take_ops(&self, program: &mut Program, computation: OpId, returned: &[ValueId]) {
        let shards: Vec<ValueId> = self.starts.iter().map(|&op| program.result(op, 0)).collect();
        let types: Vec<TypeId> = shards.iter().map(|&shard| program.type_of(shard)).collect();
        let block = program.add_block(program.region(computation, 0), &types);
        for &op in &self.ops {
            program.move_op(op, Place::End(block));
        }
        let at = InsertPoint::at(Place::End(block));
        program.build(NewOp::of_kind(OpKind::SdyReturn, returned, &[]), at);
        let args: Vec<ValueId> = program.block_args(block).collect();
        for (shard, arg) in shards.into_iter().zip(args) {
            program.replace_all_uses(shard, arg);
        }
        repeat_constants(program, computation, block);
    }
    /// Erases its remaining ops in the block, and constraints around it that have no other uses.
    fn erase(&self, program: &mut Program) {
        let Some(&end) = self.ends.first() else { return };
        let block = program.parent_block(end);
        let around: Vec<OpId> = self
            .starts
            .iter()
            .chain(&self.ends)
            .filter_map(|&call| program.defining_op(program.operand(call, 0)))
            .filter(|&op| program.kind(op) == OpKind::ShardingConstraint)
            .collect();
        for &op in &self.ends {
            program.erase_op(op);
        }
        for &op in self.ops.iter().rev() {
            if program.parent_block(op) == block {
                program.erase_op(op);
            }
        }
        for &op in &self.starts {
            program.erase_op(op);
        }
        for op in around {
            let is_there = program.parent_block(op).is_some();
            if is_there && program.uses(program.result(op, 0)).next().is_none() {
                program.erase_op(op);
            }
        }
    }
    /// Erases a body without results.
    fn drop_unused(&self, program: &mut Program) -> Result<FuncId> {
        if let Some(&op) = self.ops.first() {
            let message = "these shards never become whole values";
            return Err(mistake(program, op, Code::InvalidSharding, message).into());
        }
        for &start in &self.starts {
            program.erase_op(start);
        }
        Ok(FuncId::NONE)
    }
}

/// The global value that is sliced into shards at `start`, and its sharding.
fn input(program: &Program, start: OpId) -> Result<(ValueId, ShardingId)> {
    let value = program.operand(start, 0);
    let maker = program.defining_op(value);
    if let Some(op) = maker.filter(|&op| program.kind(op) == OpKind::ShardingConstraint) {
        return Ok((program.operand(op, 0), program.sharding(value)));
    }
    let message = "the operand of @SPMDFullToShardShape is no result of @Sharding";
    Err(mistake(program, start, Code::InvalidSharding, message).into())
}

/// Fills `computation` with a copy of the body of `func`, which `call` calls.
fn take_function(
    program: &mut Program,
    computation: OpId,
    call: OpId,
    func: FuncId,
    returned: &[ValueId],
) {
    let to = program.region(computation, 0);
    if let Some(from) = program.op_regions(program.func_op(func)).next() {
        program.clone_region(from, to, &mut ValueMap::default());
    }
    return_by_sdy(program, to);
    let places: Vec<usize> = returned
        .iter()
        .filter(|&&value| program.defining_op(value) == Some(call))
        .map(|&value| program.value_index(value))
        .collect();
    if let Some(last) = program.region_terminator(computation, 0) {
        let values: Vec<ValueId> =
            places.into_iter().map(|place| program.operand(last, place)).collect();
        program.set_operands(last, &values);
    }
}

/// The shard that `end` converts to the global value, before the `@Sharding` in between.
fn output(program: &Program, end: OpId) -> ValueId {
    let value = program.operand(end, 0);
    match program.defining_op(value) {
        Some(op) if program.kind(op) == OpKind::ShardingConstraint => program.operand(op, 0),
        _ => value,
    }
}

/// The manual axes of a body without inputs: all axes of its result's mesh.
fn all_axes(program: &mut Program, boundaries: &Boundaries, end: OpId) -> Vec<StrId> {
    let mesh = program.mesh_of(boundaries[&end].sharding);
    let names: Vec<_> = match mesh.get() {
        Some(mesh) => program.mesh(mesh).axes.iter().map(|axis| axis.name.clone()).collect(),
        None => Vec::new(),
    };
    names.into_iter().map(|name| program.intern(&name)).collect()
}

/// Clones constants that `block`, the body of `computation`, uses from outside into it.
fn repeat_constants(program: &mut Program, computation: OpId, block: BlockId) {
    let outer = program.parent_block(computation);
    let mut copies: FxHashMap<OpId, OpId> = FxHashMap::default();
    let inside: Vec<OpId> = program.pre_order(computation).skip(1).collect();
    for op in inside {
        for slot in program.op_uses(op).collect::<Vec<_>>() {
            let value = program.used_value(slot);
            let Some(maker) = program.defining_op(value) else { continue };
            if program.parent_block(maker) != outer || !is_constant(program, maker) {
                continue;
            }
            let copy = *copies.entry(maker).or_insert_with(|| {
                let copy = program.clone_op(maker, &mut ValueMap::default(), false);
                program.insert_op(copy, Place::Start(block));
                copy
            });
            let index = program.value_index(value);
            program.set_operand(slot, program.result(copy, index));
        }
    }
}

/// Erases functions that were only called from manual bodies.
fn drop_functions(program: &mut Program, functions: &FxHashSet<FuncId>) {
    let calls = program.ops_in_pre_order(&[OpKind::Call]);
    let called: FxHashSet<StrId> = calls
        .into_iter()
        .filter_map(|call| match program.payload(call) {
            Some(&Payload::Call(name)) => Some(name),
            _ => None,
        })
        .collect();
    for func in program.functions_in_order() {
        let is_called = called.contains(&program.func_name(func));
        if functions.contains(&func) && program.is_private(func) && !is_called {
            program.erase_op(program.func_op(func));
        }
    }
}

/// Removes manual axes that are already manual in an outer manual computation: GSPMD lists these
/// too, `sdy` does not.
fn drop_outer_axes(program: &mut Program) {
    for op in program.ops_in_pre_order(&[OpKind::ManualComputation]) {
        let around = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
        let outer: Vec<StrId> = around
            .filter_map(|op| match program.payload(op) {
                Some(Payload::ManualComputation(axes)) => Some(axes.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        let Some(Payload::ManualComputation(axes)) = program.payload(op) else { continue };
        let axes: Vec<StrId> = axes.iter().copied().filter(|axis| !outer.contains(axis)).collect();
        program.set_payload(op, Payload::ManualComputation(axes));
    }
}
