//! The targets of shardings and rules in the text: the values or the op that they apply to.

use crate::attribute::{self, names_itself};
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, OpId, ShardingId, TypeId, ValueId};
use crate::ir::{Program, Type};
use crate::sharding::{ReductionOp, TensorSharding};

/// The values or op that a sharding or rule applies to.
#[derive(Clone, Copy, Debug)]
pub(in crate::mlir) enum Target {
    /// One sharding for each result.
    Results(OpId),
    /// One sharding, for the only result.
    Result(OpId),
    /// One sharding for each result; they are only verified.
    Unread(OpId),
    /// One sharding for each argument of the first region.
    RegionArgs(OpId),
    /// An argument of a function.
    Arg(FuncId, u32),
    /// A result of a function.
    FuncResult(FuncId, u32),
    /// A rule.
    Rule(OpId),
    /// The axes of a collective, over the mesh of its result's sharding, and its reduction.
    Axes(OpId, ReductionOp),
}

impl Target {
    /// Whether `shardings` fit: one for each value, each with a mesh and of the right rank.
    pub fn fit(self, program: &Program, shardings: &[ShardingId]) -> bool {
        let types = self.types(program);
        if types.is_empty() {
            return shardings.iter().all(|&id| program.shardings()[id].mesh.is_some());
        }
        let fits = |(&ty, &sharding): (&TypeId, &ShardingId)| {
            let sharding = &program.shardings()[sharding];
            sharding.mesh.is_some() && misfit(program, sharding, Some(ty)).is_none()
        };
        types.len() == shardings.len() && types.iter().zip(shardings).all(fits)
    }
    /// The error if `text`, in a dictionary, is not an attribute of the expected kind.
    pub fn is_other_kind(self, program: &Program, text: &str) -> Option<Diagnostic> {
        let owner = self.owner(program);
        let (name, kind) = match self {
            Target::Results(op) if program.kind(op).has_own_sharding() => return None,
            Target::Results(_) | Target::Unread(_) => {
                ("sharding_per_value", "TensorShardingPerValueAttr")
            }
            Target::Arg(..) | Target::FuncResult(..) => ("sharding", "TensorShardingAttr"),
            _ => return None,
        };
        if names_itself(text, name) {
            return None;
        }
        let subject = match self {
            Target::Results(_) | Target::Unread(_) => {
                format!("'{}' op ", program.op_name(owner))
            }
            _ => self.subject(program, 0, 1),
        };
        let message = format!("{subject}should have a sharding attribute of type {kind}");
        let hint = format!("write #sdy.{name}<...>");
        Some(Diagnostic::new(Code::InvalidSharding, message).with_hint(hint))
    }

    /// The op with the attribute.
    pub fn owner(self, program: &Program) -> OpId {
        match self {
            Target::Arg(id, _) | Target::FuncResult(id, _) => program.func_op(id),
            Target::Results(op)
            | Target::Result(op)
            | Target::Unread(op)
            | Target::RegionArgs(op)
            | Target::Rule(op)
            | Target::Axes(op, _) => op,
        }
    }
    /// The subject of error messages about the `index`-th of `count` shardings.
    pub fn subject(self, program: &Program, index: usize, count: usize) -> String {
        match self {
            Target::Arg(_, arg) => format!("'func.func' op arg {arg} - "),
            Target::FuncResult(_, result) => format!("'func.func' op result {result} - "),
            Target::RegionArgs(op) => program.sharding_subject(op, true, index, count),
            _ => program.sharding_subject(self.owner(program), false, index, count),
        }
    }
    /// The types of the values that the shardings apply to.
    pub fn types(self, program: &Program) -> Vec<TypeId> {
        match self {
            Target::Arg(id, index) => vec![program.func_args(id)[index as usize].ty],
            Target::FuncResult(id, index) => vec![program.func_results(id)[index as usize].ty],
            Target::RegionArgs(op) => {
                let operands = program.operands(op);
                operands.map(|value| program.type_of(value)).collect()
            }
            _ => {
                let results = program.op_results(self.owner(program));
                results.map(|value| program.type_of(value)).collect()
            }
        }
    }
    /// Assigns `shardings`, which fit, to its values.
    pub fn place(self, program: &mut Program, shardings: &[ShardingId]) {
        let values: Vec<ValueId> = match self {
            Target::Unread(_) => return,
            Target::Results(op) if program.num_results(op) == 0 => {
                program.set_no_result_shardings(op, shardings.to_vec());
                return;
            }
            Target::RegionArgs(op) => {
                let region = program.op_regions(op).next();
                let block = region.map(|region| program.region_entry(region));
                let block = block.filter(|block| block.is_some());
                block.map_or(Vec::new(), |block| program.block_args(block).collect())
            }
            Target::Arg(id, index) => {
                let body = program.func_body(id);
                if body.is_none() {
                    program.assign_arg_sharding(id, index as usize, shardings[0]);
                    return;
                }
                program.block_args(body).nth(index as usize).into_iter().collect()
            }
            Target::FuncResult(id, index) => {
                program.assign_result_sharding(id, index as usize, shardings[0]);
                return;
            }
            _ => program.op_results(self.owner(program)).collect(),
        };
        for (value, &sharding) in values.into_iter().zip(shardings) {
            program.assign_sharding(value, sharding);
        }
    }
}

/// The error that `sharding` does not fit a value of type `ty`, or that there is no value.
pub fn misfit(
    program: &Program,
    sharding: &TensorSharding,
    ty: Option<TypeId>,
) -> Option<Diagnostic> {
    let mesh = program.mesh(sharding.mesh.get()?);
    if mesh.is_maximal() {
        return None;
    }
    let is_plain =
        sharding.dims.is_empty() && sharding.replicated.is_empty() && sharding.unreduced.is_empty();
    let problem = |message: String| Some(Diagnostic::new(Code::InvalidSharding, message));
    let Some(whole) = ty else {
        return if is_plain { None } else { problem(attribute::not_maximal(program.shardy())) };
    };
    let text = program.type_text(whole);
    let ty = match &program.types()[whole] {
        Type::Tuple(items) => match items[..] {
            [item] => &program.types()[item],
            _ => {
                return problem(format!(
                    "ops can only have a sharding for a tuple of size 1: '{text}'"
                ));
            }
        },
        ty => ty,
    };
    let rank = match ty {
        Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => shape.len(),
        Type::UnrankedTensor(_) => {
            return problem(format!("only ranked tensors can have a sharding. type: '{text}'"));
        }
        Type::Other(other) if is_shaped(program.str(*other)) => return None,
        _ if is_plain => return None,
        _ => {
            let sharding = attribute::print_sharding(sharding, program);
            return problem(format!(
                "non-shaped tensors can only have a sharding with rank 0 and no replicated or \
                 unreduced axes. type: '{text}', sharding: #sdy.sharding{sharding}"
            ));
        }
    };
    Some(attribute::rank_problem(sharding.dims.len(), mesh, rank)?.diagnostic)
}

/// Whether the type `text` is a shaped type of unknown rank.
fn is_shaped(text: &str) -> bool {
    text.starts_with("memref<") || text.starts_with("vector<")
}
