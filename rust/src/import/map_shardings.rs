//! Replacing every sharding of a program.

use crate::index::{Id, ShardingId, ValueId};
use crate::ir::{OpFlags, OpKind, Program};

/// Replaces each sharding by what `replace` makes of it. `replace` is called once for each different
/// sharding, in the order in which they first appear: ops in pre-order, arguments before results.
pub fn map_shardings(
    program: &mut Program,
    mut replace: impl FnMut(&mut Program, ShardingId) -> ShardingId,
) {
    let mut map = ShardingMap { known: vec![None; program.shardings.len()] };
    let ops: Vec<_> = program.pre_order(program.module).collect();
    for op in ops {
        if program.kind(op) == OpKind::Func {
            let func = program.function_of(op);
            if func.is_some() {
                map.replace_in_function(program, func, &mut replace);
            }
            continue;
        }
        let regions = program.op_regions(op).next().map(|region| program.region_entry(region));
        if let Some(block) = regions.filter(|block| block.is_some()) {
            for arg in program.block_args(block) {
                map.replace_in_value(program, arg, &mut replace);
            }
        }
        for result in program.op_results(op) {
            map.replace_in_value(program, result, &mut replace);
        }
        if program.ops[op].num_results == 0 && !program.no_result_shardings.is_empty() {
            map.replace_without_result(program, op, &mut replace);
        }
    }
}

/// What became of each sharding so far.
struct ShardingMap {
    known: Vec<Option<ShardingId>>,
}

type Replace<'a> = &'a mut dyn FnMut(&mut Program, ShardingId) -> ShardingId;

impl ShardingMap {
    fn get(&mut self, program: &mut Program, old: ShardingId, replace: Replace<'_>) -> ShardingId {
        if old.is_none() {
            return old;
        }
        if let Some(Some(new)) = self.known.get(old.index()) {
            return *new;
        }
        let new = replace(program, old);
        if let Some(slot) = self.known.get_mut(old.index()) {
            *slot = Some(new);
        }
        new
    }
    fn replace_in_value(&mut self, program: &mut Program, value: ValueId, replace: Replace<'_>) {
        let old = program.sharding(value);
        if old.is_some() {
            let new = self.get(program, old, replace);
            program.set_sharding(value, new);
        }
    }
    fn replace_in_function(
        &mut self,
        program: &mut Program,
        func: crate::index::FuncId,
        replace: Replace<'_>,
    ) {
        let body = program.functions[func].body;
        if body.is_some() {
            for arg in program.block_args(body) {
                self.replace_in_value(program, arg, replace);
            }
        }
        let mut args = std::mem::take(&mut program.functions[func].declared_arg_shardings);
        let mut results = std::mem::take(&mut program.functions[func].result_shardings);
        let mut changed = false;
        for sharding in args.iter_mut().chain(&mut results) {
            let new = self.get(program, *sharding, replace);
            changed |= new != *sharding;
            *sharding = new;
        }
        let row = &mut program.functions[func];
        (row.declared_arg_shardings, row.result_shardings) = (args, results);
        if changed {
            let op = row.op;
            program.ops[op].flags.set(OpFlags::ATTRS_CHANGED);
        }
    }
    fn replace_without_result(
        &mut self,
        program: &mut Program,
        op: crate::index::OpId,
        replace: Replace<'_>,
    ) {
        let Some(mut list) = program.no_result_shardings.remove(&op) else { return };
        let mut changed = false;
        for sharding in &mut list {
            let new = self.get(program, *sharding, replace);
            changed |= new != *sharding;
            *sharding = new;
        }
        program.no_result_shardings.insert(op, list);
        if changed {
            program.ops[op].flags.set(OpFlags::ATTRS_CHANGED);
        }
    }
}
