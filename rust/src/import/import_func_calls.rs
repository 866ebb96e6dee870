//! `sdy-import-func-calls`: turns every call into an `sdy.named_computation` with the callee's
//! body, so that propagation works on one function.
//!
//! The first call of a function takes its body. Further calls, which exist only if the call graph
//! was not flattened, get clones, within the limit of `max_ops`. Different named computations of
//! the input that have the same name are renamed, unlike in the reference
//! ([`distinct_computations`]).

use super::edge_ops::add_data_flow_edges;
use super::flatten_call_graph::check_size;
use super::propagate_sharding_from_func_to_call::has_shardings;
use super::{callee, distinct_computations, mistake, CallGraph};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::index::{FuncId, IdVec, OpId, RegionId, ShardingId, TypeId, ValueId};
use crate::ir::{Attr, OpKind, Payload, Program, SymbolTable, ValueMap};

/// Inherent attributes of a call, which the named computation does not get.
const INHERENT: [&str; 4] = ["callee", "no_inline", "arg_attrs", "res_attrs"];
const EXECUTION_THREAD: &str = "execution_thread";

/// Runs the pass; if `add_edges`, all named computations get data-flow edges.
pub fn run(program: &mut Program, context: &mut Context<'_>, add_edges: bool) -> Result<()> {
    if !program.has_any(&[OpKind::Call, OpKind::NamedComputation]) {
        return Ok(());
    }
    distinct_computations::run(program);
    let symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    graph.check_acyclic(program)?;
    check_size(program, &graph, &symbols, context.limits.max_ops)?;
    // The region to which the body of each function was moved.
    let mut moved: IdVec<FuncId, RegionId> = IdVec::filled(RegionId::NONE, program.num_func_ids());
    let mut emptied: Vec<FuncId> = Vec::new();
    for &func in &graph.post_order {
        for &call in graph.calls(func) {
            let target = callee(program, &symbols, call)?;
            let known = moved[target];
            let region = import_call(program, call, target, known)?;
            if known.is_none() {
                moved[target] = region;
                emptied.push(target);
            }
        }
    }
    for func in emptied {
        program.drop_func_body(func);
        program.erase_op(program.func_op(func));
    }
    if add_edges {
        add_edges_on_named_computations(program);
    }
    Ok(())
}

/// Turns `call` of `func`, whose body was moved to `moved` if that is not `NONE`, into a named
/// computation. Returns its region.
fn import_call(
    program: &mut Program,
    call: OpId,
    func: FuncId,
    moved: RegionId,
) -> Result<RegionId> {
    let body = program.op_regions(program.func_op(func)).next();
    let body = body.filter(|&body| program.region_entry(body).is_some());
    let Some(from) = moved.get().or(body) else {
        let name = program.str(program.func_name(func));
        let message = format!("function @{name} is called but has no body");
        return Err(mistake(program, call, Code::UnknownSymbol, message).into());
    };
    make_named_computation(program, call, func);
    let to = program.region(call, 0);
    if moved.is_some() {
        program.clone_region(from, to, &mut ValueMap::default());
    } else {
        program.take_blocks(from, to);
        return_by_sdy(program, to);
    }
    set_in_shardings(program, to);
    Ok(to)
}

/// Turns `call` of `func` into a named computation without a body.
fn make_named_computation(program: &mut Program, call: OpId, func: FuncId) {
    let name = program.original_name(func);
    let has_out_shardings = has_shardings(program, call);
    let is_inherent = |attr: &Attr| INHERENT.contains(&program.str(attr.name));
    let mut attrs: Vec<Attr> =
        program.op_attrs(call).iter().copied().filter(|attr| !is_inherent(attr)).collect();
    let func_attrs = program.op_attrs(program.func_op(func));
    let is_thread = |attr: &&Attr| program.str(attr.name) == EXECUTION_THREAD;
    if let Some(&thread) = func_attrs.iter().find(is_thread) {
        attrs.retain(|attr| attr.name != thread.name);
        attrs.push(thread);
    }
    program.recast_op(call, OpKind::NamedComputation);
    program.add_regions(call, 1);
    program.set_payload(
        call,
        Payload::NamedComputation { name, has_in_shardings: false, has_out_shardings },
    );
    if !attrs.is_empty() {
        program.replace_attrs(call, &attrs);
    }
}

/// Gives all arguments of a named computation in-shardings if one of them has a sharding: a named
/// computation has shardings for all arguments or for none, unlike a function.
fn set_in_shardings(program: &mut Program, region: RegionId) {
    let block = program.region_entry(region);
    if program.block_args(block).all(|arg| program.sharding(arg).is_none()) {
        return;
    }
    let args = program.block_args(block);
    let shardings = args.clone().map(|arg| program.sharding(arg)).collect();
    let type_of = |program: &Program, index| {
        program.block_args(block).nth(index).map_or(TypeId::NONE, |arg| program.type_of(arg))
    };
    let mut shardings = program.with_open_shardings(shardings, type_of);
    shardings.resize(args.len(), ShardingId::NONE);
    for (arg, sharding) in args.zip(shardings) {
        program.set_sharding(arg, sharding);
    }
}

/// Makes the terminator of each block of `region` an `sdy.return`.
pub(super) fn return_by_sdy(program: &mut Program, region: RegionId) {
    let mut next = program.region_entry(region);
    while let Some(block) = next.get() {
        if let Some(last) = program.last_op(block).get() {
            program.recast_op(last, OpKind::SdyReturn);
        }
        next = program.next_block(block);
    }
}

/// Adds data-flow edges to the named computations that passes made; those of the input have got
/// theirs from `sdy-add-data-flow-edges`.
fn add_edges_on_named_computations(program: &mut Program) {
    for op in program.ops_in_post_order(&[OpKind::NamedComputation]) {
        let block = program.region_entry(program.region(op, 0));
        if block.is_some() {
            add_missing_edges(program, program.block_args(block).collect());
        }
        add_missing_edges(program, program.op_results(op).collect());
    }
}

fn add_missing_edges(program: &mut Program, mut owners: Vec<ValueId>) {
    let is_edge = |user| program.kind(user) == OpKind::DataFlowEdge;
    owners.retain(|&owner| !program.users(owner).any(is_edge));
    add_data_flow_edges(program, owners.into_iter());
}
