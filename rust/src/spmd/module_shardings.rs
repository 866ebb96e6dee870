//! `sdy.parameters_shardings` and `sdy.output_shardings`: the shardings of the main function as attributes of the module.

use crate::attribute::write_sharding_of;
use crate::index::{FuncId, ShardingId, TypeId, ValueId};
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// Writes the attributes, if there is a main function. Meshes are inlined; a result without sharding has that of the returned
/// value, and without any it is replicated over the first mesh of the module that has axes.
pub(super) fn write(program: &mut Program) {
    let functions = program.functions_in_order();
    let is_main = |func: &FuncId| program.str(program.func_name(*func)) == "main";
    let Some(main) = functions.into_iter().find(is_main) else { return };
    let args: Vec<(TypeId, ShardingId)> = match program.func_body(main).get() {
        Some(body) => program
            .block_args(body)
            .map(|arg| (program.type_of(arg), program.sharding(arg)))
            .collect(),
        None => program.func_args(main).iter().map(|arg| (arg.ty, arg.sharding)).collect(),
    };
    let returned: Vec<ValueId> = match program.func_body(main).get() {
        Some(body) => program.operands(program.last_op(body)).collect(),
        None => Vec::new(),
    };
    let mut results: Vec<(TypeId, ShardingId)> =
        program.func_results(main).iter().map(|result| (result.ty, result.sharding)).collect();
    for ((_, sharding), value) in results.iter_mut().zip(returned) {
        if sharding.is_none() {
            *sharding = program.sharding_of(value);
        }
    }
    for (name, values) in [("sdy.parameters_shardings", args), ("sdy.output_shardings", results)] {
        let text = per_value(program, &values);
        program.set_attr(program.module_op(), name, &text);
    }
}

/// `#sdy.sharding_per_value<[...]>` of values with these types and shardings.
fn per_value(program: &Program, values: &[(TypeId, ShardingId)]) -> String {
    let global = program.global_mesh();
    let none = Mesh::new(Vec::new(), Vec::new());
    let global_mesh = global.map_or(&none, |mesh| program.mesh(mesh));
    let mut text = String::from("#sdy.sharding_per_value<[");
    for (index, &(ty, sharding)) in values.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        if let Some(sharding) = program.shardings().get(sharding) {
            write_sharding_of(&mut text, sharding, program.mesh(sharding.mesh), None);
        } else {
            let rank = program.types()[ty].rank().unwrap_or(0);
            let mesh = global.unwrap_or_default();
            let replicated = TensorSharding::fully_replicated(mesh, rank, true);
            write_sharding_of(&mut text, &replicated, global_mesh, None);
        }
    }
    text.push_str("]>");
    text
}
