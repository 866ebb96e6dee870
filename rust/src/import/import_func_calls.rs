//! `sdy-import-func-calls`: turns every call into an `sdy.named_computation` that has the callee's
//! body, so that propagation sees one function.
//!
//! The first call of a function takes its body; further ones, which only exist if the call graph was
//! not flattened, get clones, within the same limit.

use super::edge_ops::add_data_flow_edges;
use super::flatten_call_graph::check_size;
use super::propagate_sharding_from_func_to_call::has_shardings;
use super::{callee, mistake, original_name, CallGraph};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::index::{BlockId, FuncId, OpId, RegionId, ShardingId, TypeId, ValueId};
use crate::ir::{Attr, OpKind, Payload, Place, Program, SymbolTable, ValueMap};
use rustc_hash::FxHashMap;

/// Attributes of a call that are part of it and do not go to the named computation.
const INHERENT: [&str; 4] = ["callee", "no_inline", "arg_attrs", "res_attrs"];
const EXECUTION_THREAD: &str = "execution_thread";

/// Runs the pass; with `add_edges` all named computations get data-flow edges.
pub fn run(program: &mut Program, context: &mut Context<'_>, add_edges: bool) -> Result<()> {
    if !program.has_any(&[OpKind::Call, OpKind::NamedComputation]) {
        return Ok(());
    }
    let graph = CallGraph::new(program);
    graph.check_acyclic(program)?;
    let symbols = SymbolTable::new(program);
    check_size(program, &graph, &symbols, context.limits.max_ops)?;
    let mut moved: FxHashMap<FuncId, RegionId> = FxHashMap::default();
    let mut emptied: Vec<FuncId> = Vec::new();
    for &func in &graph.post_order {
        for &call in graph.calls(func) {
            let target = callee(program, &symbols, call)?;
            let known = moved.get(&target).copied();
            let region = import_call(program, call, target, known)?;
            if known.is_none() {
                moved.insert(target, region);
                emptied.push(target);
            }
        }
    }
    for func in emptied {
        program.functions[func].body = BlockId::NONE;
        program.erase_op(program.functions[func].op);
    }
    if add_edges {
        add_edges_on_named_computations(program);
    }
    Ok(())
}

/// Replaces `call` of `func`, whose body has gone to `moved` if that is there. Returns the region of
/// the named computation.
fn import_call(
    program: &mut Program,
    call: OpId,
    func: FuncId,
    moved: Option<RegionId>,
) -> Result<RegionId> {
    let body = program.op_regions(program.functions[func].op).next();
    let Some(from) = moved.or(body.filter(|&body| program.region_entry(body).is_some())) else {
        let name = program.strings.get(program.functions[func].name);
        let message = format!("function @{name} is called but has no body");
        return Err(mistake(program, call, Code::UnknownSymbol, message).into());
    };
    let named = create_named_computation(program, call, func);
    program.insert_op(named, Place::Before(call));
    let to = program.ops[named].first_region;
    if moved.is_some() {
        program.clone_region(from, to, &mut ValueMap::default());
    } else {
        program.take_blocks(from, to);
        return_by_sdy(program, to);
    }
    set_in_shardings(program, to);
    for (old, new) in program.op_results(call).zip(program.op_results(named)) {
        program.replace_all_uses(old, new);
    }
    program.erase_op(call);
    Ok(to)
}

/// The op that replaces `call`, without its body.
fn create_named_computation(program: &mut Program, call: OpId, func: FuncId) -> OpId {
    let operands: Vec<ValueId> = program.op_operands(call).iter().map(|slot| slot.value).collect();
    let named = program.create_op("sdy.named_computation", &operands, &[]);
    let rows: Vec<(TypeId, u32)> = program
        .op_results(call)
        .map(|value| (program.values[value].ty, program.values[value].name))
        .collect();
    program.add_results(named, rows);
    for (old, new) in program.op_results(call).zip(program.op_results(named)) {
        program.set_sharding(new, program.sharding(old));
    }
    program.add_regions(named, 1);
    program.ops[named].loc = program.ops[call].loc;
    let name = original_name(program, func);
    let has_out_shardings = has_shardings(program, call);
    program.set_payload(
        named,
        Payload::NamedComputation { name, has_in_shardings: false, has_out_shardings },
    );
    let is_inherent = |attr: &Attr| INHERENT.contains(&program.strings.get(attr.name));
    let mut attrs: Vec<Attr> =
        program.op_attrs(call).iter().copied().filter(|attr| !is_inherent(attr)).collect();
    let func_attrs = program.op_attrs(program.functions[func].op);
    let is_thread = |attr: &&Attr| program.strings.get(attr.name) == EXECUTION_THREAD;
    if let Some(&thread) = func_attrs.iter().find(is_thread) {
        attrs.retain(|attr| attr.name != thread.name);
        attrs.push(thread);
    }
    program.replace_attrs(named, &attrs);
    named
}

/// Has the body of `named` either in-shardings for all arguments or none at all, as functions may
/// have some.
fn set_in_shardings(program: &mut Program, region: RegionId) {
    let block = program.region_entry(region);
    let args: Vec<ValueId> = program.block_args(block).collect();
    let shardings = args.iter().map(|&arg| program.sharding(arg)).collect();
    let types: Vec<TypeId> = args.iter().map(|&arg| program.values[arg].ty).collect();
    let mut shardings = program.with_open_shardings(shardings, &types);
    shardings.resize(args.len(), ShardingId::NONE);
    for (arg, sharding) in args.into_iter().zip(shardings) {
        program.set_sharding(arg, sharding);
    }
}

/// Replaces the terminator of each block of `region` by an `sdy.return`.
pub(super) fn return_by_sdy(program: &mut Program, region: RegionId) {
    let blocks: Vec<BlockId> = program.region_blocks(region).collect();
    for block in blocks {
        let Some(old) = program.blocks[block].last_op.get() else { continue };
        let operands: Vec<ValueId> =
            program.op_operands(old).iter().map(|slot| slot.value).collect();
        let new = program.create_op("sdy.return", &operands, &[]);
        program.ops[new].loc = program.ops[old].loc;
        program.insert_op(new, Place::End(block));
        program.erase_op(old);
    }
}

fn add_edges_on_named_computations(program: &mut Program) {
    for op in program.ops_in_post_order(&[OpKind::NamedComputation]) {
        let block = program.region_entry(program.ops[op].first_region);
        if block.is_some() {
            add_data_flow_edges(program, program.block_args(block));
        }
        add_data_flow_edges(program, program.op_results(op));
    }
}
