//! Finds the `mhlo.sharding` strings of a module, shardings in GSPMD's notation.

use super::mistake;
use crate::error::{Code, Error, Result};
use crate::index::{FuncId, OpId, TypeId};
use crate::ir::{Attr, OpKind, Program, Span, Type};
use crate::mlir::op_attribute;
use crate::mlir::AttrValue;

/// The attribute's name.
pub const HLO_SHARDING: &str = "mhlo.sharding";

/// The kind of place that has an annotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    /// An argument of a function.
    Argument(FuncId, usize),
    /// A result of a function.
    Result(FuncId, usize),
    /// The results of an op.
    Op(OpId),
    /// A custom call `@Sharding`, or a copy: a constraint on its operand.
    Constraint(OpId),
    /// A custom call `@SPMDFullToShardShape`: a manual body starts.
    ToShards(OpId),
    /// A custom call `@SPMDShardToFullShape`: a manual body ends.
    ToFull(OpId),
}

/// One annotation.
#[derive(Clone, PartialEq, Debug)]
pub struct Annotation {
    /// The op, argument or result that has the annotation.
    pub site: Site,
    /// The sharding in GSPMD's notation.
    pub text: String,
    /// Its span in the text of the program, quotes included.
    pub span: Span,
    /// The global ranks of the values that it applies to; `None` for a value that is not a ranked
    /// tensor.
    pub ranks: Vec<Option<usize>>,
    /// The `backend_config` of a custom call, which may list unspecified dims.
    pub config: String,
}

/// All annotations in program order.
pub fn annotations(program: &Program) -> Result<Vec<Annotation>> {
    let mut found = Vec::new();
    for func in program.functions_in_order() {
        for (index, arg) in program.func_args(func).iter().enumerate() {
            let site = Site::Argument(func, index);
            found.extend(read(program, program.attr_list(arg.attrs), site, vec![arg.ty])?);
        }
        for (index, result) in program.func_results(func).iter().enumerate() {
            let site = Site::Result(func, index);
            found.extend(read(program, program.attr_list(result.attrs), site, vec![result.ty])?);
        }
        for op in program.pre_order(program.func_op(func)) {
            let site = site_of(program, op);
            let value = match site {
                Site::ToShards(_) => program.operands(op).next(),
                _ => None,
            };
            let types = match value {
                Some(value) => vec![program.type_of(value)],
                None => program.op_results(op).map(|value| program.type_of(value)).collect(),
            };
            found.extend(read(program, program.op_attrs(op), site, types)?);
        }
    }
    Ok(found)
}

/// The annotation among `attrs`, if there is one.
fn read(
    program: &Program,
    attrs: &[Attr],
    site: Site,
    types: Vec<TypeId>,
) -> Result<Option<Annotation>> {
    let is_sharding = |attr: &&Attr| program.str(attr.name) == HLO_SHARDING;
    let Some(attr) = attrs.iter().find(is_sharding) else { return Ok(None) };
    let AttrValue::Str(text) = AttrValue::parse(program.text().get(attr.value)) else {
        let op = match site {
            Site::Argument(func, _) | Site::Result(func, _) => program.func_op(func),
            Site::Op(op) | Site::Constraint(op) | Site::ToShards(op) | Site::ToFull(op) => op,
        };
        let diagnostic = mistake(program, op, Code::Syntax, "mhlo.sharding is not a string");
        return Err(Error::from(diagnostic.at(attr.value)));
    };
    let config = match site {
        Site::Constraint(op) | Site::ToShards(op) | Site::ToFull(op) => {
            op_attribute(program, op, "backend_config")
        }
        _ => None,
    };
    let rank = |ty: TypeId| match &program.types()[ty] {
        Type::RankedTensor { shape, .. } => Some(shape.len()),
        _ => None,
    };
    Ok(Some(Annotation {
        site,
        text: text.into_owned(),
        span: attr.value,
        ranks: types.into_iter().map(rank).collect(),
        config: config.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default(),
    }))
}

fn site_of(program: &Program, op: OpId) -> Site {
    // Shardy exports constraints as copies.
    if program.op_name(op) == "mhlo.copy" {
        return Site::Constraint(op);
    }
    if program.kind(op) != OpKind::CustomCall
        || (program.num_operands(op), program.num_results(op)) != (1, 1)
    {
        return Site::Op(op);
    }
    let target = op_attribute(program, op, "call_target_name");
    match target.as_ref().and_then(AttrValue::as_str) {
        Some("Sharding") => Site::Constraint(op),
        Some("SPMDFullToShardShape") => Site::ToShards(op),
        Some("SPMDShardToFullShape") => Site::ToFull(op),
        _ => Site::Op(op),
    }
}
