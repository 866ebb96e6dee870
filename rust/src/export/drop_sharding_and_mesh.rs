//! `sdy-drop-sharding-and-mesh`: removes `sdy.sharding` attributes and meshes.
//!
//! Shardings that are properties of an op of the `sdy` dialect, such as a reshard's, are kept; an
//! `sdy.sharding` attribute of such an op is removed. Since [`Change::UsedMeshesKept`], meshes that
//! these shardings or any attribute refer to are kept too.

use crate::context::Context;
use crate::error::Result;
use crate::index::{MeshId, OpId, ShardingId};
use crate::ir::{symbols_in, OpKind, Payload, Program};
use crate::shardy::Change;
use rustc_hash::FxHashSet;

/// Runs the pass on the module.
pub fn run(
    program: &mut Program,
    _context: &mut Context,
    keep_module_sharding_metadata: bool,
) -> Result<()> {
    if program.shardy().has(Change::ModuleShardingsDropped) && !keep_module_sharding_metadata {
        for name in ["sdy.parameters_shardings", "sdy.output_shardings"] {
            program.remove_attr(program.module_op(), name);
        }
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    drop_shardings(program, &ops);
    let used = if program.shardy().has(Change::UsedMeshesKept) {
        used_meshes(program, &ops)
    } else {
        FxHashSet::default()
    };
    erase_meshes(program, &ops, &used);
    Ok(())
}

/// Erases the meshes among `ops` that nothing in the module refers to.
pub fn erase_unused_meshes(program: &mut Program, ops: &[OpId]) {
    let all: Vec<OpId> = program.pre_order(program.module_op()).collect();
    let used = used_meshes(program, &all);
    erase_meshes(program, ops, &used);
}

/// Erases the meshes among `ops` that are not `used`.
fn erase_meshes(program: &mut Program, ops: &[OpId], used: &FxHashSet<MeshId>) {
    for &op in ops {
        let is_unused = match program.payload(op) {
            Some(Payload::Mesh(mesh)) => !used.contains(mesh),
            _ => false,
        };
        if is_unused {
            program.erase_op(op);
        }
    }
}

/// Removes the attributes `sdy.sharding` of `ops`, and of the arguments and results of functions among them.
pub fn drop_shardings(program: &mut Program, ops: &[OpId]) {
    for &op in ops {
        match program.kind(op) {
            OpKind::Func => drop_function_shardings(program, op),
            kind if kind.has_own_sharding() => {
                program.remove_attr(op, "sdy.sharding");
            }
            _ => {
                for result in program.op_results(op) {
                    program.set_sharding(result, ShardingId::NONE);
                }
                if program.remove_no_result_shardings(op) {
                    program.mark_attrs_changed(op);
                }
            }
        }
    }
}

/// The meshes that shardings and attributes of `ops` refer to.
fn used_meshes(program: &Program, ops: &[OpId]) -> FxHashSet<MeshId> {
    let mut used = FxHashSet::default();
    for &op in ops {
        let args = program
            .op_regions(op)
            .filter_map(|region| program.region_entry(region).get())
            .flat_map(|block| program.block_args(block));
        let shardings = program.op_results(op).chain(args).map(|value| program.sharding(value));
        used.extend(shardings.filter_map(|sharding| program.mesh_of(sharding).get()));
        let func = program.function_of(op).get();
        let ports =
            func.map(|func| program.func_args(func).iter().chain(program.func_results(func)));
        let of_ports = ports.into_iter().flatten().flat_map(|port| program.attr_list(port.attrs));
        for attr in program.op_attrs(op).iter().chain(of_ports) {
            let names = symbols_in(program.text().get(attr.value));
            let ids = names.filter_map(|name| program.mesh_by_symbol(program.find_name(name)?));
            used.extend(ids);
        }
    }
    used
}

/// Removes the shardings of the arguments and results of the `func.func` op `op`.
fn drop_function_shardings(program: &mut Program, op: OpId) {
    let Some(func) = program.function_of(op).get() else { return };
    if let Some(body) = program.func_body(func).get() {
        for arg in program.block_args(body) {
            program.set_sharding(arg, ShardingId::NONE);
        }
    }
    for index in 0..program.func_args(func).len() {
        program.set_declared_arg_sharding(func, index, ShardingId::NONE);
    }
    for index in 0..program.func_results(func).len() {
        program.set_func_result_sharding(func, index, ShardingId::NONE);
    }
    program.mark_attrs_changed(op);
}
