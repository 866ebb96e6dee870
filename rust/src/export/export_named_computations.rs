//! `sdy-export-named-computations`: turns every named computation into a call of a new private
//! function at the end of the module.
//!
//! The function has the name of the computation, with a suffix if that is taken, and the name is
//! also in its attribute `sdy.original_func_name`. Inner computations are exported before outer
//! ones. The shardings of data-flow edges become those of the function's arguments and the call's
//! results.

use super::sink_data_flow_edges::sink_shardings;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, FuncId, IdRange, OpId, StrId, TypeId, ValueId};
use crate::ir::{Attr, InsertPoint, OpKind, Payload, Place, Program, SymbolTable, ORIGINAL_NAME};
use rustc_hash::FxHashMap;

const EXECUTION_THREAD: &str = "execution_thread";

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let computations = program.ops_in_post_order(&[OpKind::NamedComputation]);
    if computations.is_empty() {
        return Ok(());
    }
    let mut symbols = SymbolTable::new(program);
    let mut calls = Vec::with_capacity(computations.len());
    let mut first_of_name = FirstOfName::default();
    for op in computations {
        let body = program.op_regions(op).next().map(|region| program.region_entry(region));
        let Some(body) = body.and_then(BlockId::get) else { continue };
        sink_shardings(program, op, program.block_args(body));
        sink_shardings(program, op, program.op_results(op));
        let func = create_function(program, op, body, &mut first_of_name);
        remove_edges(program, program.block_args(body));
        let callee = symbols.insert(program, func);
        make_call(program, op, callee);
        calls.push(op);
    }
    for call in calls {
        remove_edges(program, program.op_results(call));
    }
    Ok(())
}

/// Replaces the data-flow edges on `values` by their inputs.
fn remove_edges(program: &mut Program, values: IdRange<ValueId>) {
    for value in values {
        if let Some(edge) = program.data_flow_edge(value) {
            program.replace_all_uses(program.result(edge, 0), value);
            program.erase_op(edge);
        }
    }
}

/// For each name, the first function made of a computation without an execution thread; further
/// ones get its attributes.
type FirstOfName = FxHashMap<StrId, OpId>;

/// Moves the body of `op` to a new function at the end of the module.
fn create_function(
    program: &mut Program,
    op: OpId,
    body: BlockId,
    first_of_name: &mut FirstOfName,
) -> FuncId {
    let name = computation_name(program, op);
    let args: Vec<TypeId> = program.block_args(body).map(|arg| program.type_of(arg)).collect();
    let results: Vec<TypeId> =
        program.op_results(op).map(|result| program.type_of(result)).collect();
    replace_terminator(program, body);
    let at = InsertPoint { place: Place::End(program.module_block()), loc: program.loc(op) };
    let func = program.create_function(name, &args, &results, at);
    program.make_private(func);
    program.take_body(func, program.region(op, 0));
    let func_op = program.func_op(func);
    let thread = program.attr(op, EXECUTION_THREAD).map(str::to_owned);
    if let Some(&first) = first_of_name.get(&name).filter(|_| thread.is_none()) {
        program.copy_attrs(first, func_op);
    } else {
        let text = format!("\"{}\"", program.str(name));
        program.set_attr(func_op, ORIGINAL_NAME, &text);
    }
    match thread {
        Some(thread) => program.set_attr(func_op, EXECUTION_THREAD, &thread),
        None => {
            first_of_name.entry(name).or_insert(func_op);
        }
    }
    func
}

/// The name of named computation `op`.
fn computation_name(program: &Program, op: OpId) -> StrId {
    match program.payload(op) {
        Some(Payload::NamedComputation { name, .. }) => *name,
        _ => StrId::NONE,
    }
}

/// Replaces the `sdy.return` at the end of `body` by a `func.return`.
fn replace_terminator(program: &mut Program, body: BlockId) {
    if let Some(last) = program.last_op(body).get() {
        program.recast_op(last, OpKind::FuncReturn);
    }
}

/// Turns `op`, whose body was moved away, into a call of `callee`. If the attributes have other
/// shardings for its results, these are replaced.
fn make_call(program: &mut Program, op: OpId, callee: StrId) {
    let has_shardings = program.op_results(op).any(|result| program.sharding(result).is_some());
    let is_kept = |attr: &&Attr| match program.str(attr.name) {
        EXECUTION_THREAD => false,
        "sdy.sharding" => !has_shardings,
        _ => true,
    };
    let kept: Vec<Attr> = program.op_attrs(op).iter().filter(is_kept).copied().collect();
    program.recast_op(op, OpKind::Call);
    program.drop_regions(op);
    program.set_payload(op, Payload::Call(callee));
    if !program.op_attrs(op).is_empty() {
        program.replace_attrs(op, &kept);
    }
}
