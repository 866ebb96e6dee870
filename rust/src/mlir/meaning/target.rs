//! Where shardings and rules belong, and whether they fit there.

use crate::attribute::{self, names_itself};
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, OpId, ShardingId, TypeId, ValueId};
use crate::ir::Type;
use crate::mlir::reader::parser::Parser;
use crate::sharding::TensorSharding;

/// Where a sharding or rule in the text belongs.
#[derive(Clone, Copy, Debug)]
pub(in crate::mlir) enum Target {
    /// One sharding for each result.
    Results(OpId),
    /// One sharding, of the only result.
    Result(OpId),
    /// One sharding for each result, which nothing reads.
    Unread(OpId),
    /// One sharding for each argument of the first region.
    RegionArgs(OpId),
    /// An argument of a function.
    Arg(FuncId, u32),
    /// A result of a function.
    FuncResult(FuncId, u32),
    /// A rule.
    Rule(OpId),
    /// The axes of a collective, whose mesh is that of its result's sharding.
    Axes(OpId),
}

impl Parser<'_> {
    /// Whether `shardings` are as many as `target` has values, each with a mesh and of the right rank.
    pub(in crate::mlir) fn fit(&self, target: Target, shardings: &[ShardingId]) -> bool {
        let types = self.types(target);
        if types.is_empty() {
            return shardings.iter().all(|&id| self.program.shardings[id].mesh.is_some());
        }
        let fits = |(&ty, &sharding): (&TypeId, &ShardingId)| {
            let sharding = &self.program.shardings[sharding];
            sharding.mesh.is_some() && self.misfit(sharding, Some(ty)).is_none()
        };
        types.len() == shardings.len() && types.iter().zip(shardings).all(fits)
    }
    /// The complaint that `sharding` is not one for a value of type `ty`, or for no value.
    pub(in crate::mlir) fn misfit(
        &self,
        sharding: &TensorSharding,
        ty: Option<TypeId>,
    ) -> Option<Diagnostic> {
        let mesh = self.program.mesh(sharding.mesh.get()?);
        if mesh.is_maximal() {
            return None;
        }
        let is_plain = sharding.dims.is_empty()
            && sharding.replicated.is_empty()
            && sharding.unreduced.is_empty();
        let complain = |message: String| Some(Diagnostic::new(Code::InvalidSharding, message));
        let Some(whole) = ty else {
            let message = "a maximal sharding can only have a sharding with rank 0 and no \
                           replicated or unreduced axes.";
            return if is_plain { None } else { complain(message.to_owned()) };
        };
        let text = self.program.text.get(self.program.types.text(whole));
        let ty = match &self.program.types[whole] {
            Type::Tuple(items) => match items[..] {
                [item] => &self.program.types[item],
                _ => {
                    return complain(format!(
                        "ops can only have a sharding for a tuple of size 1: '{text}'"
                    ));
                }
            },
            ty => ty,
        };
        let rank = match ty {
            Type::RankedTensor { shape, .. } => shape.len(),
            Type::UnrankedTensor(_) => {
                return complain(format!(
                    "only ranked tensors can have a sharding. type: '{text}'"
                ));
            }
            Type::Other(other) if is_shaped(self.program.strings.get(*other)) => return None,
            _ if is_plain => return None,
            _ => {
                let sharding = attribute::print_sharding(sharding, &self.program);
                return complain(format!(
                    "non-shaped tensors can only have a sharding with rank 0 and no replicated or \
                     unreduced axes. type: '{text}', sharding: #sdy.sharding{sharding}"
                ));
            }
        };
        Some(attribute::rank_problem(sharding.dims.len(), mesh, rank)?.diagnostic)
    }
    /// The complaint that `text` is no attribute of the kind that `target` takes in a dictionary.
    pub(in crate::mlir) fn is_other_kind(&self, target: Target, text: &str) -> Option<Diagnostic> {
        let owner = self.owner(target);
        let (name, kind) = match target {
            Target::Results(op) if self.program.kind(op).has_own_sharding() => return None,
            Target::Results(_) | Target::Unread(_) => {
                ("sharding_per_value", "TensorShardingPerValueAttr")
            }
            Target::Arg(..) | Target::FuncResult(..) => ("sharding", "TensorShardingAttr"),
            _ => return None,
        };
        if names_itself(text, name) {
            return None;
        }
        let subject = match target {
            Target::Results(_) | Target::Unread(_) => {
                format!("'{}' op ", self.program.op_name(owner))
            }
            _ => self.subject(target, 0, 1),
        };
        let message = format!("{subject}should have a sharding attribute of type {kind}");
        let hint = format!("write #sdy.{name}<...>");
        Some(Diagnostic::new(Code::InvalidSharding, message).with_hint(hint))
    }

    /// The op whose attribute `target` is.
    pub(in crate::mlir) fn owner(&self, target: Target) -> OpId {
        match target {
            Target::Arg(id, _) | Target::FuncResult(id, _) => self.program.functions[id].op,
            Target::Results(op)
            | Target::Result(op)
            | Target::Unread(op)
            | Target::RegionArgs(op)
            | Target::Rule(op)
            | Target::Axes(op) => op,
        }
    }
    /// How complaints about the `index`-th of `count` shardings of `target` start.
    pub(in crate::mlir) fn subject(&self, target: Target, index: usize, count: usize) -> String {
        match target {
            Target::Arg(_, arg) => format!("'func.func' op arg {arg} - "),
            Target::FuncResult(_, result) => format!("'func.func' op result {result} - "),
            Target::RegionArgs(op) => self.program.sharding_subject(op, true, index, count),
            _ => self.program.sharding_subject(self.owner(target), false, index, count),
        }
    }
    /// The types that the shardings of `target` are for.
    pub(in crate::mlir) fn types(&self, target: Target) -> Vec<TypeId> {
        let program = &self.program;
        match target {
            Target::Arg(id, index) => vec![program.func_args(id)[index as usize].ty],
            Target::FuncResult(id, index) => vec![program.func_results(id)[index as usize].ty],
            Target::RegionArgs(op) => {
                let operands = program.op_operands(op).iter();
                operands.map(|slot| program.values[slot.value].ty).collect()
            }
            _ => {
                let results = program.op_results(self.owner(target));
                results.map(|value| program.values[value].ty).collect()
            }
        }
    }
    /// Puts `shardings`, which fit, where they belong.
    pub(in crate::mlir) fn place(&mut self, target: Target, shardings: &[ShardingId]) {
        let values: Vec<ValueId> = match target {
            Target::Unread(_) => return,
            Target::Results(op) if self.program.ops[op].num_results == 0 => {
                self.program.no_result_shardings.insert(op, shardings.to_vec());
                return;
            }
            Target::RegionArgs(op) => {
                let region = self.program.op_regions(op).next();
                let block = region.map(|region| self.program.region_entry(region));
                let block = block.filter(|block| block.is_some());
                block.map_or(Vec::new(), |block| self.program.block_args(block).collect())
            }
            Target::Arg(id, index) => {
                let body = self.program.functions[id].body;
                if body.is_none() {
                    self.program.func_args_mut(id)[index as usize].sharding = shardings[0];
                    return;
                }
                self.program.block_args(body).nth(index as usize).into_iter().collect()
            }
            Target::FuncResult(id, index) => {
                self.program.func_results_mut(id)[index as usize].sharding = shardings[0];
                return;
            }
            _ => self.program.op_results(self.owner(target)).collect(),
        };
        for (value, &sharding) in values.into_iter().zip(shardings) {
            self.program.value_shardings[value] = sharding;
        }
    }
}

/// Whether the type `text` is one of a shape that does not say its rank here.
fn is_shaped(text: &str) -> bool {
    text.starts_with("memref<") || text.starts_with("vector<")
}
