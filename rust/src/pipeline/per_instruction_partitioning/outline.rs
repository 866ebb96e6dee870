//! Outlines each op into a function, and replaces it by a placeholder for the manual computation.

use super::padding::{cut, pad, padded_types, padded_value, Types};
use crate::error::{Code, Diagnostic, Result};
use crate::export::pad_for_divisibility::padded_constant;
use crate::index::{FuncId, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{
    InsertPoint, NewOp, OpKind, Payload, Place, Program, SymbolTable, ValueDef, ValueMap,
};
use crate::partition::channels::last_channel;
use crate::partition::insert_explicit_reshards::sharding_or_closed;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function with a clone of an op, and the manual computation whose body it becomes.
pub(super) struct Outlined {
    /// The index of the function.
    pub(super) number: usize,
    pub(super) func: FuncId,
    /// The `func.func` ops of clones of the functions that the op calls, directly or indirectly.
    pub(super) callees: Vec<OpId>,
    /// The op that becomes the manual computation.
    pub(super) manual: OpId,
    pub(super) in_shardings: Vec<ShardingId>,
    pub(super) axes: Vec<StrId>,
    /// The largest channel of the original op.
    pub(super) last_channel: i64,
}

/// Outlines ops.
pub(super) struct Outlining {
    pub(super) symbols: SymbolTable,
    /// The index of the next function.
    pub(super) number: usize,
}

impl Outlining {
    /// Replaces `op` by a manual computation without a body, and clones `op` into a new function.
    /// Also returns the number of devices of its mesh.
    pub(super) fn outline(&mut self, program: &mut Program, op: OpId) -> Result<(Outlined, i64)> {
        let mut operands: Vec<ValueId> = program.operands(op).collect();
        operands.extend(captured_values(program, op));
        let results: Vec<ValueId> = program.op_results(op).collect();
        let values: Vec<ValueId> = program.operands(op).chain(results.iter().copied()).collect();
        let shardings: Vec<ShardingId> =
            values.iter().map(|&value| program.sharding_of(value)).collect();
        let mesh = common_mesh(program, &shardings).ok_or_else(|| {
            let name = program.op_name(op);
            let message = format!(
                "'{name}' op cannot be partitioned by itself: it is sharded over several meshes"
            );
            Diagnostic::new(Code::Unpartitionable, message).at_op(program, op)
        })?;
        let in_shardings: Vec<ShardingId> =
            operands.iter().map(|&value| sharding_or_closed(program, value, mesh)).collect();
        let out_shardings: Vec<ShardingId> =
            results.iter().map(|&value| sharding_or_closed(program, value, mesh)).collect();
        let names: Vec<Box<str>> =
            program.mesh(mesh).axes.iter().map(|axis| axis.name.clone()).collect();
        let axes: Vec<StrId> = names.iter().map(|name| program.intern(name)).collect();
        let in_types = padded_types(program, op, &operands, &in_shardings, &out_shardings);
        let out_types = padded_types(program, op, &results, &out_shardings, &in_shardings);

        let padded: Vec<ValueId> = (0..operands.len())
            .map(|index| {
                padded_value(program, op, operands[index], in_types[index], in_shardings[index])
            })
            .collect();
        let name = self.unused_name(program);
        let args = Tensors { types: &in_types, shardings: &in_shardings };
        let returned = Tensors { types: &out_types, shardings: &out_shardings };
        let func = function_of(program, op, name, &operands, args, returned);
        let types: Vec<TypeId> = out_types.iter().map(|types| types.padded).collect();
        // No pass knows this op.
        let manual = NewOp::new("shardcore.outlined", &padded, &types);
        let manual = program.build(manual, program.before(op));
        for (index, &result) in results.iter().enumerate() {
            let (new, at) = (program.result(manual, index), program.before(op));
            program.set_sharding(new, out_shardings[index]);
            let new = cut(program, new, out_types[index].own, out_shardings[index], at);
            program.replace_all_uses(result, new);
        }
        let callees = self.clone_callees(program, program.func_op(func));
        let mut ops: Vec<OpId> = program.pre_order(op).collect();
        ops.extend(callees.iter().flat_map(|&callee| program.pre_order(callee)));
        let last_channel = last_channel(program, ops.into_iter());
        program.erase_op(op);
        let number = self.number;
        let outlined = Outlined { number, func, callees, manual, in_shardings, axes, last_channel };
        Ok((outlined, program.mesh(mesh).num_devices()))
    }
    /// A name that no function has.
    fn unused_name(&mut self, program: &mut Program) -> StrId {
        loop {
            self.number += 1;
            let name = program.intern(&format!("outlined_op_{}", self.number));
            if self.symbols.function(name).is_none() {
                return name;
            }
        }
    }
    /// Clones the functions that ops inside `caller` call, directly or indirectly, and makes the
    /// calls call the clones. Returns the clones in the order of the calls.
    fn clone_callees(&mut self, program: &mut Program, caller: OpId) -> Vec<OpId> {
        self.symbols.restart_numbers();
        let mut clones: FxHashMap<StrId, StrId> = FxHashMap::default();
        let (mut made, mut map) = (Vec::new(), ValueMap::default());
        let mut callers = vec![caller];
        let mut next = 0;
        while let Some(&caller) = callers.get(next) {
            next += 1;
            let calls: Vec<OpId> = program.pre_order(caller).collect();
            for call in calls {
                let Some(&Payload::Call(callee)) = program.payload(call) else { continue };
                let Some(original) = self.symbols.function(callee) else { continue };
                let name = clones.get(&callee).copied().unwrap_or_else(|| {
                    let clone = program.clone_function(original, &mut map);
                    let op = program.func_op(clone);
                    program.insert_op(op, Place::End(program.module_block()));
                    made.push(op);
                    callers.push(op);
                    self.symbols.insert(program, clone)
                });
                clones.insert(callee, name);
                program.set_payload(call, Payload::Call(name));
                program.mark_attrs_changed(call);
            }
        }
        made
    }
}

/// The values from outside that ops inside `op` use, each once, in the order of MLIR's walk.
fn captured_values(program: &Program, op: OpId) -> Vec<ValueId> {
    let mut captured = Vec::new();
    if program.num_regions(op) == 0 {
        return captured;
    }
    let inside: FxHashSet<OpId> = program.pre_order(op).skip(1).collect();
    let mut seen = FxHashSet::default();
    for inner in program.post_order(op).filter(|&inner| inner != op) {
        for value in program.operands(inner) {
            let is_inside = match program.def(value) {
                ValueDef::Result(def) => inside.contains(&def),
                ValueDef::Arg(block) => {
                    let owner = program.block_parent_op(block);
                    owner == op || inside.contains(&owner)
                }
            };
            if !is_inside && seen.insert(value) {
                captured.push(value);
            }
        }
    }
    captured
}

/// The mesh of `shardings`: the first mesh that is not empty, or else the last one; `None` if there
/// are different meshes, or none.
fn common_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let is_empty = |mesh: MeshId| {
        let mesh = program.mesh(mesh);
        mesh.axes.is_empty() && mesh.device_ids.is_empty()
    };
    let mut common: Option<MeshId> = None;
    for mesh in shardings.iter().filter_map(|&sharding| program.mesh_of(sharding).get()) {
        match common {
            Some(known) if !is_empty(known) => {
                if !is_empty(mesh) && program.mesh(known) != program.mesh(mesh) {
                    return None;
                }
            }
            _ => common = Some(mesh),
        }
    }
    common
}

/// The types and shardings of the arguments or results of a function.
#[derive(Clone, Copy)]
struct Tensors<'a> {
    types: &'a [Types],
    shardings: &'a [ShardingId],
}

impl Tensors<'_> {
    fn padded_types(self) -> Vec<TypeId> {
        self.types.iter().map(|types| types.padded).collect()
    }
}

/// A private function called `name` with a clone of `op`, whose arguments stand for `values`: its
/// operands, and the values that ops inside it use. It takes and returns padded tensors; the clone
/// has the types of `op`, except if it is a reshard.
fn function_of(
    program: &mut Program,
    op: OpId,
    name: StrId,
    values: &[ValueId],
    args: Tensors<'_>,
    results: Tensors<'_>,
) -> FuncId {
    let end = InsertPoint { place: Place::End(program.module_block()), loc: program.loc(op) };
    let func = program.create_function(name, &args.padded_types(), &results.padded_types(), end);
    program.make_private(func);
    let body = program.add_body(func);
    let at = InsertPoint { place: Place::End(body), loc: program.loc(op) };
    if let Some(constant) = padded_constant_of(program, op, results) {
        program.move_op(constant, at.place);
        let value = program.result(constant, 0);
        program.set_func_result_sharding(func, 0, results.shardings[0]);
        program.build(NewOp::of_kind(OpKind::FuncReturn, &[value], &[]), at);
        return func;
    }
    let is_reshard = program.kind(op) == OpKind::Reshard;
    let is_padded = |types: &Types| !is_reshard && types.own != types.padded;
    let mut zeros = Vec::with_capacity(results.types.len());
    for types in results.types {
        zeros.push(is_padded(types).then(|| program.build_zero(types.own, at)));
    }
    let mut map = ValueMap::default();
    let mut inner = vec![ValueId::NONE; program.num_operands(op)];
    // As in Shardy, the values that ops inside use come first.
    for index in (inner.len()..values.len()).chain(0..inner.len()) {
        let (arg, sharding) = (program.block_arg(body, index), args.shardings[index]);
        program.set_sharding(arg, sharding);
        let own = if is_reshard { args.types[index].padded } else { args.types[index].own };
        let value = cut(program, arg, own, sharding, at);
        match inner.get_mut(index) {
            Some(operand) => *operand = value,
            None => map.insert(values[index], value),
        }
    }
    let clone = program.clone_op_at(op, &mut map, at);
    let slots: Vec<_> = program.op_uses(clone).collect();
    for (slot, value) in slots.into_iter().zip(inner) {
        program.set_operand(slot, value);
    }
    let mut returned = Vec::with_capacity(results.types.len());
    for (index, types) in results.types.iter().enumerate() {
        let (result, sharding) = (program.result(clone, index), results.shardings[index]);
        program.set_func_result_sharding(func, index, sharding);
        if is_reshard {
            program.set_type(result, types.padded);
            program.update_types(clone);
        }
        let padded =
            zeros[index].map(|zero| pad(program, result, zero, types.padded, sharding, at));
        returned.push(padded.unwrap_or(result));
    }
    program.build(NewOp::of_kind(OpKind::FuncReturn, &returned, &[]), at);
    func
}

/// A constant like `op` with more elements, if `op` is a constant whose result is padded.
fn padded_constant_of(program: &mut Program, op: OpId, results: Tensors<'_>) -> Option<OpId> {
    let is_constant = matches!(program.kind(op), OpKind::Constant | OpKind::SdyConstant);
    let types = results.types.first().filter(|types| is_constant && types.own != types.padded)?;
    let constant = padded_constant(program, op, types.padded)?;
    program.defining_op(constant)
}
