//! Imports meshes, shardings and sharding rules.

use super::frontend_attributes::{clean, find, of_op, others, Text, FRONTEND_ATTRIBUTES};
use crate::attribute::{
    parse_mesh_dictionary, parse_rule, parse_sharding, parse_sharding_per_value,
};
use crate::error::{Code, Result};
use crate::import::hlo_annotations::HLO_SHARDING;
use crate::import::mistake;
use crate::index::{FuncId, OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program};
use crate::mlir::{op_attribute, AttrValue};
use crate::sharding::TensorSharding;

/// Custom calls that keep their own sharding.
pub(in crate::import) const ANNOTATED: [&str; 5] = [
    "Sharding",
    "xla_ffi_python_cpu_callback",
    "xla_ffi_python_gpu_callback",
    "xla_python_cpu_callback",
    "xla_python_gpu_callback",
];

/// The target of the custom call with the sharding of a result of its function.
const FUNC_RESULT: &str = "xla.sdy.FuncResultSharding";

/// Imports them into the module.
pub(super) fn run(program: &mut Program) -> Result<()> {
    let module = program.module_op();
    let meshes = of_op(program, module, "meshes");
    if meshes.is_some() {
        drop_notation(program);
    }
    if let Some(meshes) = meshes {
        let meshes = meshes.parse(|text| parse_mesh_dictionary(text, 0))?;
        // Inserted at the start of the module one before the other, so that they are in order.
        for (name, mesh) in meshes.into_iter().rev() {
            let symbol = program.intern(&name);
            let is_there =
                program.meshes().named(symbol).is_some_and(|id| *program.mesh(id) == mesh);
            if is_there {
                // Replica groups may refer to it too.
                continue;
            }
            let at = InsertPoint::at(Place::Start(program.module_block()));
            program.create_mesh(symbol, mesh, at);
        }
    }
    import_tuples(program, module)?;
    for func in program.functions_in_order() {
        import_arguments(program, func)?;
        let ops: Vec<OpId> = program.pre_order(program.func_op(func)).skip(1).collect();
        for op in ops {
            import_op(program, func, op)?;
        }
    }
    clean(program, module);
    Ok(())
}

/// Removes shardings in GSPMD's notation.
fn drop_notation(program: &mut Program) {
    for func in program.functions_in_order() {
        for index in 0..program.func_args(func).len() {
            program.retain_arg_attrs(func, index, |name| name != HLO_SHARDING);
        }
        for index in 0..program.func_results(func).len() {
            program.retain_result_attrs(func, index, |name| name != HLO_SHARDING);
        }
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        program.remove_attr(op, HLO_SHARDING);
    }
}

/// Imports the shardings of the arguments and results of `main` that XLA has combined to one tuple.
fn import_tuples(program: &mut Program, module: OpId) -> Result<()> {
    let main = program
        .functions_in_order()
        .into_iter()
        .find(|&func| program.str(program.func_name(func)) == "main");
    let Some(main) = main else { return Ok(()) };
    let counts = [program.func_args(main).len(), program.func_results(main).len()];
    for (is_result, name) in ["tuple_args_shardings", "tuple_results_shardings"].iter().enumerate()
    {
        let Some(text) = of_op(program, module, name) else { continue };
        let shardings = per_value(program, &text)?;
        if shardings.len() != counts[is_result] {
            let message = format!(
                "xla.sdy.{name} has {} shardings for {} values",
                shardings.len(),
                counts[is_result]
            );
            return Err(mistake(program, module, Code::InvalidSharding, message).into());
        }
        for (index, sharding) in shardings.into_iter().enumerate() {
            if is_result == 1 {
                program.set_func_result_sharding(main, index, sharding);
            } else {
                set_argument(program, main, index, sharding);
            }
        }
    }
    Ok(())
}

fn import_arguments(program: &mut Program, func: FuncId) -> Result<()> {
    for index in 0..program.func_args(func).len() {
        let attrs = program.attr_list(program.func_args(func)[index].attrs).to_vec();
        if let Some(text) = find(program, &attrs, "sharding") {
            let sharding = one(program, &text)?;
            set_argument(program, func, index, sharding);
        }
        let left = others(program, &attrs);
        program.retain_arg_attrs(func, index, |name| name != FRONTEND_ATTRIBUTES);
        if let Some(left) = left {
            program.set_arg_attr(func, index, FRONTEND_ATTRIBUTES, &left);
        }
    }
    Ok(())
}

fn set_argument(program: &mut Program, func: FuncId, index: usize, sharding: ShardingId) {
    let arg = program.func_body(func).get().and_then(|body| program.block_args(body).nth(index));
    match arg {
        Some(arg) => {
            program.set_sharding(arg, sharding);
        }
        None => {
            program.set_declared_arg_sharding(func, index, sharding);
        }
    }
}

fn import_op(program: &mut Program, func: FuncId, op: OpId) -> Result<()> {
    let (kind, text) = (program.kind(op), of_op(program, op, "sharding"));
    if kind == OpKind::CustomCall {
        let target = op_attribute(program, op, "call_target_name");
        let target = target.as_ref().and_then(AttrValue::as_str).unwrap_or_default().to_owned();
        if target == FUNC_RESULT {
            return import_func_result(program, func, op, text.as_ref());
        }
        if ANNOTATED.contains(&&*target) {
            set_results(program, op, text.as_ref())?;
        }
    }
    // On other ops, XLA may have copied the attribute from an operand of another shape.
    let name = program.op_name(op);
    if ["stablehlo.after_all", "stablehlo.recv", "stablehlo.send"].contains(&name) {
        set_results(program, op, text.as_ref())?;
    }
    if let Some(text) = of_op(program, op, "sharding_rule") {
        let rule = text.parse(|text| parse_rule(text, 0))?;
        let rule = program.intern_rule(rule);
        program.set_op_rule(op, rule);
    }
    // These attributes of custom calls are read later.
    let is_read_later = |name: &&str| of_op(program, op, name).is_some();
    if !["sharding_group_id", "allowed_direction", "manual_axes"].iter().any(is_read_later) {
        clean(program, op);
    }
    Ok(())
}

fn set_results(program: &mut Program, op: OpId, text: Option<&Text>) -> Result<()> {
    let Some(text) = text else { return Ok(()) };
    let shardings = per_value(program, text)?;
    if program.num_results(op) == 0 {
        program.set_no_result_shardings(op, shardings);
        return Ok(());
    }
    let results: Vec<ValueId> = program.op_results(op).collect();
    for (result, sharding) in results.into_iter().zip(shardings) {
        program.set_sharding(result, sharding);
    }
    Ok(())
}

/// Moves the sharding of `call` to the results of the function that return its operand. If other
/// ops use the value, also makes it a constraint with open dims: then the function was inlined.
fn import_func_result(
    program: &mut Program,
    func: FuncId,
    call: OpId,
    text: Option<&Text>,
) -> Result<()> {
    let sharding = match text {
        Some(text) => per_value(program, text)?.first().copied().unwrap_or_default(),
        None => ShardingId::NONE,
    };
    let is_one_each = program.num_operands(call) == 1 && program.num_results(call) == 1;
    if sharding.is_none() || !is_one_each {
        let message = "@xla.sdy.FuncResultSharding has no sharding of one value";
        return Err(mistake(program, call, Code::InvalidSharding, message).into());
    }
    let (input, result) = (program.operand(call, 0), program.result(call, 0));
    // A tensor without elements was replaced by a constant, which takes the place of its operand.
    let is_unused = program.uses(result).next().is_none();
    let returned = if is_unused { input } else { result };
    let mut has_others = false;
    for slot in program.uses(returned).collect::<Vec<_>>() {
        let user = program.user(slot);
        if program.kind(user) == OpKind::FuncReturn {
            let index = program.op_uses(user).position(|own| own == slot).unwrap_or_default();
            program.set_func_result_sharding(func, index, sharding);
        } else {
            has_others |= user != call && !is_dead_reshape(program, user);
        }
    }
    let mut new = input;
    if has_others && !is_unused {
        let opened = program.shardings().get(sharding).map(opened);
        let opened = opened.map_or(sharding, |sharding| program.intern_sharding(sharding));
        let ty = program.type_of(input);
        let constraint = NewOp::of_kind(OpKind::ShardingConstraint, &[input], &[ty]);
        new = program.build_value(constraint.sharding(opened), program.before(call));
    }
    program.replace_all_uses(result, new);
    program.erase_op(call);
    Ok(())
}

/// Whether `op` is an unused reshape: HLO has an additional one for each result with a sharding,
/// which XLA erases first.
fn is_dead_reshape(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::Reshape && program.uses(program.result(op, 0)).next().is_none()
}

/// `sharding` with all dims open.
fn opened(sharding: &TensorSharding) -> TensorSharding {
    let mut sharding = sharding.clone();
    for dim in &mut sharding.dims {
        dim.is_closed = false;
    }
    sharding
}

/// The sharding in `text`.
fn one(program: &mut Program, text: &Text) -> Result<ShardingId> {
    let sharding = text.parse(|text| parse_sharding(text, 0, program))?;
    Ok(program.intern_sharding(sharding))
}

/// The shardings listed in `text`.
pub(super) fn per_value(program: &mut Program, text: &Text) -> Result<Vec<ShardingId>> {
    let shardings = text.parse(|text| parse_sharding_per_value(text, 0, program))?;
    Ok(shardings.into_iter().map(|sharding| program.intern_sharding(sharding)).collect())
}
