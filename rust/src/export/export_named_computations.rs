//! `sdy-export-named-computations`: turns every named computation into a private function at the end
//! of the module and a call of it.
//!
//! The function gets the name of the computation, with a number if that is taken, and remembers it in
//! `sdy.original_func_name`. Inner computations come before outer ones. The shardings of data-flow edges
//! become those of the function's arguments and the call's results.

use super::sink_data_flow_edges::sink_shardings;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, FuncId, IdRange, OpId, StrId, ValueId};
use crate::ir::{
    Attr, AttrRange, Function, OpKind, Payload, Place, Port, PortRange, Program, Span, SymbolTable,
    ORIGINAL_NAME,
};
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
    let mut attrs = AttrsByName::default();
    for op in computations {
        let body = program.op_regions(op).next().map(|region| program.region_entry(region));
        let Some(body) = body.and_then(BlockId::get) else { continue };
        sink_shardings(program, op, program.block_args(body));
        sink_shardings(program, op, program.op_results(op));
        let func = create_function(program, op, body, &mut attrs);
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
    let func_op = program.create_op_of(OpKind::Func, &[], &[]);
    program.op_texts[func_op].loc = program.op_texts[op].loc;
    program.add_regions(func_op, 1);
    let (from, to) = (program.ops[op].first_region, program.ops[func_op].first_region);
    program.take_blocks(from, to);
    replace_terminator(program, body);
    let func = program.functions.push(Function {
        op: func_op,
        name,
        is_private: true,
        body,
        args: PortRange::default(),
        results: PortRange::default(),
        results_span: Span::EMPTY,
        name_span: Span::EMPTY,
    });
    for arg in program.block_args(body) {
        program.add_func_arg(func, Port::of_type(program.values[arg].ty));
    }
    for result in program.op_results(op) {
        program.add_func_result(func, Port::of_type(program.values[result].ty));
    }
    program.set_payload(func_op, Payload::Function(func));
    program.op_texts[func_op].attrs = *attrs.entry(name).or_insert_with(|| {
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
    if let Some(last) = program.blocks[body].last_op.get() {
        program.recast_op(last, OpKind::FuncReturn);
    }
}

/// Makes a call of `callee` of `op`, whose body is gone.
fn make_call(program: &mut Program, op: OpId, callee: StrId) {
    let is_kept = |attr: &&Attr| program.strings.get(attr.name) != EXECUTION_THREAD;
    let kept: Vec<Attr> = program.op_attrs(op).iter().filter(is_kept).copied().collect();
    program.recast_op(op, OpKind::Call);
    program.ops[op].num_regions = 0;
    program.set_payload(op, Payload::Call(callee));
    if !kept.is_empty() {
        program.replace_attrs(op, &kept);
    }
}
