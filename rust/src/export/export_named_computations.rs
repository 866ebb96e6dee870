//! `sdy-export-named-computations`: turns every named computation into a private function at the end
//! of the module and a call of it.
//!
//! The function gets the name of the computation, with a number if that is taken, and remembers it in
//! `sdy.original_func_name`. Inner computations come before outer ones. The shardings of data-flow edges
//! become those of the function's arguments and the call's results.

use super::sink_data_flow_edges::{edge_shardings, set_owner_shardings};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, FuncId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{Attr, AttrRange, Function, OpKind, Payload, Place, Program, Span, SymbolTable};
use rustc_hash::FxHashMap;

const ORIGINAL_NAME: &str = "sdy.original_func_name";
const EXECUTION_THREAD: &str = "execution_thread";

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let computations = program.ops_in_post_order(&[OpKind::NamedComputation]);
    if computations.is_empty() {
        return Ok(());
    }
    let mut symbols = SymbolTable::new(program);
    let mut calls = Vec::with_capacity(computations.len());
    let mut attrs = AttrsByName::default();
    for op in computations {
        let body = program.op_regions(op).next().map(|region| program.region_entry(region));
        let Some(body) = body.and_then(BlockId::get) else { continue };
        let args: Vec<ValueId> = program.block_args(body).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        for owners in [&args, &results] {
            let shardings = edge_shardings(program, owners);
            set_owner_shardings(program, op, owners, &shardings);
        }
        let func = create_function(program, op, body, &mut attrs);
        remove_edges(program, &args);
        let callee = symbols.insert(program, func);
        calls.push(replace_by_call(program, op, callee));
    }
    for call in calls {
        let results: Vec<ValueId> = program.op_results(call).collect();
        remove_edges(program, &results);
    }
    Ok(())
}

/// Replaces the data-flow edges on `values` by their inputs.
fn remove_edges(program: &mut Program, values: &[ValueId]) {
    for &value in values {
        if let Some(edge) = program.data_flow_edge(value) {
            program.replace_all_uses(program.result(edge, 0), value);
            program.erase_op(edge);
        }
    }
}

/// The attributes of functions that were computations of the same name.
type AttrsByName = FxHashMap<StrId, AttrRange>;

/// Makes a function of the body of `op`, which loses it, at the end of the module.
fn create_function(
    program: &mut Program,
    op: OpId,
    body: BlockId,
    attrs: &mut AttrsByName,
) -> FuncId {
    let name = computation_name(program, op);
    let func_op = program.create_op("func.func", &[], &[]);
    program.ops[func_op].loc = program.ops[op].loc;
    program.add_regions(func_op, 1);
    let (from, to) = (program.ops[op].first_region, program.ops[func_op].first_region);
    program.take_blocks(from, to);
    replace_terminator(program, body);
    let arg_types: Vec<TypeId> =
        program.block_args(body).map(|arg| program.values[arg].ty).collect();
    let result_types: Vec<TypeId> =
        program.op_results(op).map(|result| program.values[result].ty).collect();
    let (num_args, num_results) = (arg_types.len(), result_types.len());
    let func = program.functions.push(Function {
        op: func_op,
        name,
        is_private: true,
        body,
        arg_types,
        declared_arg_shardings: vec![ShardingId::NONE; num_args],
        arg_attrs: vec![AttrRange::default(); num_args],
        arg_dicts: vec![Span::EMPTY; num_args],
        result_types,
        result_shardings: vec![ShardingId::NONE; num_results],
        result_attrs: vec![AttrRange::default(); num_results],
        results_span: Span::EMPTY,
        name_span: Span::EMPTY,
    });
    program.set_payload(func_op, Payload::Function(func));
    program.ops[func_op].attrs = *attrs.entry(name).or_insert_with(|| {
        let value = program.text.add(&format!("\"{}\"", program.strings.get(name)));
        let name = program.strings.intern(ORIGINAL_NAME);
        program.add_attrs(&[Attr { name, value }])
    });
    if let Some(thread) = program.attr(op, EXECUTION_THREAD).map(str::to_owned) {
        program.set_attr(func_op, EXECUTION_THREAD, &thread);
    }
    program.insert_op(func_op, Place::End(program.module_block()));
    func
}

/// The name of named computation `op`.
fn computation_name(program: &Program, op: OpId) -> StrId {
    match program.payload(op) {
        Some(Payload::NamedComputation { name, .. }) => *name,
        _ => StrId::NONE,
    }
}

/// Makes a `func.return` of the `sdy.return` at the end of `body`.
fn replace_terminator(program: &mut Program, body: BlockId) {
    let Some(old) = program.blocks[body].last_op.get() else { return };
    let values: Vec<ValueId> = program.op_operands(old).iter().map(|slot| slot.value).collect();
    let new = program.create_op("func.return", &values, &[]);
    program.ops[new].loc = program.ops[old].loc;
    program.insert_op(new, Place::End(body));
    program.erase_op(old);
}

/// Replaces `op`, whose body is gone, by a call of `callee`.
fn replace_by_call(program: &mut Program, op: OpId, callee: StrId) -> OpId {
    let values: Vec<ValueId> = program.op_operands(op).iter().map(|slot| slot.value).collect();
    let types: Vec<TypeId> =
        program.op_results(op).map(|result| program.values[result].ty).collect();
    let call = program.create_op("func.call", &values, &types);
    program.ops[call].loc = program.ops[op].loc;
    program.set_payload(call, Payload::Call(callee));
    let is_kept = |attr: &&Attr| program.strings.get(attr.name) != EXECUTION_THREAD;
    let kept: Vec<Attr> = program.op_attrs(op).iter().filter(is_kept).copied().collect();
    if !kept.is_empty() {
        program.replace_attrs(call, &kept);
    }
    program.insert_op(call, Place::Before(op));
    for index in 0..types.len() {
        let (old, new) = (program.result(op, index), program.result(call, index));
        program.set_sharding(new, program.sharding(old));
        program.replace_all_uses(old, new);
    }
    program.erase_op(op);
    call
}
