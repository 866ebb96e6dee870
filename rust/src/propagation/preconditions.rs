//! Propagation takes tensors of known shape only.

use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{Id, TypeId};
use crate::ir::{Program, Type};

/// Fails if some op has a result of a tensor type with unknown dims, or a tuple.
pub(super) fn check_shapes(program: &Program) -> Result<()> {
    let invalid = |ty: &Type| match ty {
        Type::RankedTensor { shape, .. } => shape.iter().any(Option::is_none),
        Type::UnrankedTensor(_) | Type::Tuple(_) => true,
        Type::Other(_) => false,
    };
    let is_invalid: Vec<bool> = (0..program.types.len())
        .map(|index| invalid(&program.types[TypeId::from_index(index)]))
        .collect();
    if !is_invalid.contains(&true) {
        return Ok(());
    }
    let mut diagnostics = Vec::new();
    for op in program.pre_order(program.module) {
        let mut types = program.op_results(op).map(|result| program.values[result].ty);
        let Some(ty) = types.find(|ty| is_invalid[ty.index()]) else { continue };
        let text = program.text.get(program.types.text(ty));
        let (message, hint) = if matches!(program.types[ty], Type::Tuple(_)) {
            (
                format!("propagation does not support tuples, and a result has type {text}"),
                "flatten tuples into separate results before propagation",
            )
        } else {
            (
                format!("propagation needs tensors of static shape, and a result has type {text}"),
                "refine the shapes of the program before propagation",
            )
        };
        let problem = Diagnostic::new(Code::UnsupportedType, message).at_op(program, op);
        diagnostics.push(problem.with_hint(hint));
    }
    Error::check(diagnostics)
}
