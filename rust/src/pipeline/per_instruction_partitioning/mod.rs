//! `sdy-per-instruction-partitioning`: partitions ops one by one. Each becomes a manual computation
//! with the per-device program for the op.
//!
//! Each op to partition is cloned into its own function. The partitioner's passes run on all of
//! these functions together, while the program's functions are taken out of the module. Then the
//! functions become the bodies of the manual computations. Operands and results that do not divide
//! evenly into shards are padded outside of the manual computation; inside, the op works on tensors
//! of its original types.
//!
//! Source: Shardy's `per_instruction_partitioning.cc`, as jaxlib 0.12 has it.

mod filter;
mod outline;
mod padding;

use crate::context::Context;
use crate::error::Result;
use crate::export::drop_sharding_and_mesh::{drop_shardings, erase_unused_meshes};
use crate::export::pad_for_divisibility;
use crate::index::OpId;
use crate::ir::{OpKind, Payload, Place, Program, SymbolTable};
use crate::partition::canonicalize::{self, Config, Enabled};
use crate::partition::channels::{channel, set_channel};
use crate::partition::{
    insert_explicit_reshards, optimize_collectives, reshard_to_collectives,
    resolve_permutation_factors,
};
use crate::spmd::{self, GlobalToLocalOptions};
use filter::{selected, Filter};
use outline::{Outlined, Outlining};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Runs the pass on the module.
pub(super) fn run(
    program: &mut Program,
    context: &mut Context<'_>,
    filter: &str,
    options: resolve_permutation_factors::Options,
) -> Result<()> {
    let ops = selected(program, &Filter::parse(filter))?;
    if ops.is_empty() {
        return Ok(());
    }
    let old: Vec<OpId> = program.block_ops(program.module_block()).collect();
    let mut outlining = Outlining { symbols: SymbolTable::new(program), number: 0 };
    // Functions are grouped by number of devices, and by whether the op is a collective already.
    let mut groups: BTreeMap<(i64, bool), Vec<Outlined>> = BTreeMap::new();
    for op in ops {
        let is_collective = program.kind(op).is_collective();
        let (outlined, num_devices) = outlining.outline(program, op)?;
        groups.entry((num_devices, is_collective)).or_default().push(outlined);
    }
    unlink_functions(program);
    let mut callees = Vec::new();
    for (&(_, is_collective), outlined) in &groups {
        partition(program, context, outlined, options, !is_collective)?;
        callees
            .extend(outlined.iter().flat_map(|one| one.callees.iter().map(|&op| (one.number, op))));
    }
    for &op in &old {
        if program.kind(op) == OpKind::Func {
            program.insert_op(op, Place::End(program.module_block()));
        }
    }
    callees.sort_unstable();
    for (_, op) in callees {
        program.insert_op(op, Place::End(program.module_block()));
    }
    let known: FxHashSet<OpId> = old.into_iter().collect();
    let ops = program.block_ops(program.module_block());
    let made: Vec<OpId> = ops.filter(|op| !known.contains(op)).collect();
    if made.iter().any(|&op| program.kind(op) == OpKind::Mesh) {
        erase_unused_meshes(program, &made);
    }
    Ok(())
}

/// Takes all functions out of the module.
fn unlink_functions(program: &mut Program) {
    for func in program.functions_in_order() {
        program.unlink_op(program.func_op(func));
    }
}

/// Partitions the functions of `outlined` and makes them the bodies of their manual computations.
/// The module has no functions before and after.
fn partition(
    program: &mut Program,
    context: &mut Context<'_>,
    outlined: &[Outlined],
    options: resolve_permutation_factors::Options,
    inserts_reshards: bool,
) -> Result<()> {
    let end = Place::End(program.module_block());
    for one in outlined {
        program.insert_op(program.func_op(one.func), end);
        one.callees.iter().for_each(|&op| program.insert_op(op, end));
    }
    run_partitioner(program, context, options, inserts_reshards)?;
    unlink_functions(program);
    let last_channel = outlined.iter().map(|one| one.last_channel).max().unwrap_or(0);
    for one in outlined {
        let mut functions = vec![program.func_op(one.func)];
        functions.extend_from_slice(&one.callees);
        let ops: Vec<OpId> = functions.into_iter().flat_map(|op| program.pre_order(op)).collect();
        renumber_channels(program, &ops, one.last_channel, last_channel);
        drop_shardings(program, &ops);
        become_body(program, one);
    }
    Ok(())
}

/// Runs the partitioner's passes; some functions may need reshards.
fn run_partitioner(
    program: &mut Program,
    context: &mut Context<'_>,
    options: resolve_permutation_factors::Options,
    inserts_reshards: bool,
) -> Result<()> {
    let functions: Vec<OpId> =
        program.functions_in_order().into_iter().map(|func| program.func_op(func)).collect();
    resolve_permutation_factors::run(program, context, options)?;
    if inserts_reshards {
        insert_explicit_reshards::run(program, context, &functions, true, false)?;
    }
    for &func in &functions {
        reshard_to_collectives::run(program, context, func, false)?;
        optimize_collectives::run(program, context, func)?;
    }
    let enabled = Enabled { collective: true, ..Enabled::default() };
    let config = Config {
        top_down: false,
        max_iterations: Some(Config::MAX_ITERATIONS),
        max_rewrites: None,
        erases_dead: true,
    };
    canonicalize::run(program, context, enabled, config)?;
    pad_for_divisibility::run_on_module(program);
    let device_counts = options.device_counts;
    let options = GlobalToLocalOptions {
        names_groups: true,
        device_counts,
        ..GlobalToLocalOptions::default()
    };
    spmd::convert_global_to_local(program, context, options)
}

/// Renumbers the new channels of `ops` from `own + 1` on, where `own` is the largest channel of the
/// original op. `last` is the largest channel before the passes, after which the new channels were
/// numbered.
fn renumber_channels(program: &mut Program, ops: &[OpId], own: i64, last: i64) {
    let mut new: Vec<(i64, OpId)> =
        ops.iter().map(|&op| (channel(program, op), op)).filter(|&(n, _)| n > last).collect();
    new.sort_unstable();
    let (mut number, mut before) = (own, last);
    for (old, op) in new {
        number += i64::from(old != before);
        before = old;
        set_channel(program, op, number);
    }
}

/// Makes the function the body of the manual computation.
fn become_body(program: &mut Program, one: &Outlined) {
    let (op, body) = (program.func_op(one.func), program.func_body(one.func));
    if let Some(last) = program.last_op(body).get() {
        program.recast_op(last, OpKind::SdyReturn);
    }
    program.recast_op(one.manual, OpKind::ManualComputation);
    program.set_payload(one.manual, Payload::ManualComputation(one.axes.clone()));
    program.add_regions(one.manual, 1);
    program.take_blocks(program.region(op, 0), program.region(one.manual, 0));
    program.drop_func_body(one.func);
    for (index, &sharding) in one.in_shardings.iter().enumerate() {
        program.set_sharding(program.block_arg(body, index), sharding);
    }
}
