//! Preconditions of propagation: tensors have static shapes, and shardings name their meshes by
//! symbols. Import passes establish the latter.

use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{Id, OpId, ShardingId, TypeId};
use crate::ir::{OpKind, Payload, Program, Type};

/// Fails if some op has a result of a tensor type with unknown dims, or a tuple.
pub fn check_shapes(program: &Program) -> Result<()> {
    let invalid = |ty: &Type| match ty {
        Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => {
            shape.iter().any(Option::is_none)
        }
        Type::UnrankedTensor(_) | Type::Tuple(_) => true,
        Type::Other(_) => false,
    };
    let is_invalid: Vec<bool> = (0..program.types().len())
        .map(|index| invalid(&program.types()[TypeId::from_index(index)]))
        .collect();
    if !is_invalid.contains(&true) {
        return Ok(());
    }
    let mut diagnostics = Vec::new();
    for op in program.pre_order(program.module_op()) {
        let mut types = program.op_results(op).map(|result| program.type_of(result));
        let Some(ty) = types.find(|ty| is_invalid[ty.index()]) else { continue };
        let text = program.type_text(ty);
        let (message, hint) = if matches!(program.types()[ty], Type::Tuple(_)) {
            (
                format!("propagation does not support tuples, and a result has type {text}"),
                "flatten tuples into separate results before propagation",
            )
        } else {
            (
                format!("propagation needs tensors of static shape, and a result has type {text}"),
                "refine the decompositions of the program before propagation",
            )
        };
        let problem = Diagnostic::new(Code::UnsupportedType, message).at_op(program, op);
        diagnostics.push(problem.with_hint(hint));
    }
    Error::check(diagnostics)
}

/// Fails if a fragment of a pipeline has shardings that do not fit its values.
fn check_fragments(program: &Program) -> Result<()> {
    let is_foreign = |&op: &OpId| {
        matches!(program.payload(op), Some(Payload::Fragment { has_foreign_shardings: true, .. }))
    };
    let Some(op) = program.ops_of(&[OpKind::Fragment]).into_iter().find(is_foreign) else {
        return Ok(());
    };
    let message = "propagation cannot read the in_shardings or out_shardings of mpmd.fragment: they name a mesh or \
                   axes that the module does not have, or do not fit its values";
    let hint = "define the mesh of each, as in sdy.mesh @mesh = <[\"x\"=2]>, and give one sharding per value";
    Err(Diagnostic::new(Code::InvalidSharding, message).with_hint(hint).at_op(program, op).into())
}

/// Fails if some value has a sharding whose mesh is inlined, or not in the module.
pub fn check_meshes(program: &Program) -> Result<()> {
    check_fragments(program)?;
    let inlines = |id: ShardingId| {
        let sharding = program.shardings().get(id);
        sharding.is_some_and(|sharding| program.meshes()[sharding.mesh].symbol.is_none())
    };
    if !program.shardings().ids().any(inlines) {
        return Ok(());
    }
    let mistake = || {
        let message =
            "a sharding inlines its mesh, where propagation takes meshes by their symbols";
        let hint = "run sdy-lift-inlined-meshes first";
        Diagnostic::new(Code::InvalidSharding, message).with_hint(hint)
    };
    for func in program.functions_in_order() {
        let func_op = program.func_op(func);
        let values = program.values_of(func_op);
        if let Some(value) = values.into_iter().find(|&value| inlines(program.sharding(value))) {
            let op = program.defining_op(value).unwrap_or(func_op);
            return Err(mistake().at_op(program, op).into());
        }
        if program.func_results(func).iter().any(|result| inlines(result.sharding)) {
            return Err(mistake().at(program.printing().function(func).name).into());
        }
    }
    Ok(())
}
