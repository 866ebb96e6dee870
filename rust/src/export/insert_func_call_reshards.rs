//! `sdy-insert-func-call-reshards`: if the shardings of a call's result and of the function's
//! result differ, gives the call the function's sharding and inserts a reshard after it. In newer
//! versions, results that are unreduced over different axes are left as they are.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ShardingId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program, SymbolTable};
use crate::sharding::TensorSharding;
use crate::shardy::Change;

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let calls = program.ops_in_pre_order(&[OpKind::Call]);
    if calls.is_empty() {
        return Ok(());
    }
    let symbols = SymbolTable::new(program);
    for call in calls {
        let func = match program.payload(call) {
            Some(Payload::Call(name)) => symbols.function(*name),
            _ => None,
        };
        let Some(func) = func else { continue };
        let mut wanted = program.func_result_shardings(func);
        if wanted.is_empty() {
            wanted = replicated_like_call(program, call);
        }
        reshard_results(program, call, &wanted);
    }
    Ok(())
}

/// A closed sharding without axes for each result of `call`; empty if it has no shardings.
fn replicated_like_call(program: &mut Program, call: OpId) -> Vec<ShardingId> {
    let results = program.op_results(call);
    let shardings: Vec<ShardingId> = results.map(|result| program.sharding(result)).collect();
    let replicate = |id: ShardingId| {
        let like = program.shardings().get(id)?;
        let closed = TensorSharding::fully_replicated(like.mesh, like.dims.len(), true);
        Some(program.intern_sharding(closed))
    };
    shardings.into_iter().filter_map(replicate).collect()
}

/// Sets the shardings of the results of `call` to `wanted`, and reshards them to their old
/// shardings for their users.
fn reshard_results(program: &mut Program, call: OpId, wanted: &[ShardingId]) {
    for (result, &inside) in program.op_results(call).zip(wanted) {
        let outside = program.sharding(result);
        let replicated = |program: &mut Program| {
            let like = &program.shardings()[inside];
            let closed = TensorSharding::fully_replicated(like.mesh, like.dims.len(), true);
            program.intern_sharding(closed)
        };
        if program.shardy().has(Change::UnreducedCallResults)
            && !are_unreduced_alike(program, inside, outside)
        {
            if outside.is_none() {
                let closed = replicated(program);
                program.set_sharding(result, closed);
            }
            continue;
        }
        let is_equivalent = program.shardings()[inside]
            .is_equivalent(program.shardings().get(outside), program.shardy());
        if !is_equivalent {
            let outside = outside.get().unwrap_or_else(|| replicated(program));
            let at = InsertPoint { place: Place::After(call), loc: program.loc(call) };
            let reshard = program.build_unary(OpKind::Reshard, result, outside, at);
            let new = program.result(reshard, 0);
            program.replace_all_uses_except(result, new, reshard);
        }
        program.set_sharding(result, inside);
    }
}

/// Whether two shardings have unreduced axes of the same names.
fn are_unreduced_alike(program: &Program, first: ShardingId, second: ShardingId) -> bool {
    let axes = |id: ShardingId| {
        program.shardings().get(id).into_iter().flat_map(|sharding| {
            let mesh = program.mesh(sharding.mesh);
            sharding.unreduced.iter().map(|axis| (mesh.axis_name(axis.axis), axis.sub))
        })
    };
    axes(first).eq(axes(second))
}
