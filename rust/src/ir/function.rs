//! Functions: the row that a `func.func` has in addition to that of its op.

use super::op::Attr;
use super::port::{Port, PortRange};
use super::{Payload, Program, ValueDef};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{BlockId, FuncId, OpId, ShardingId, StrId, TypeId, ValueId};

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// Its `func.func` op.
    pub op: OpId,
    /// Its symbol, without `@`.
    pub name: StrId,
    /// Whether it is `private`. Other visibilities are attribute `sym_visibility` of its op.
    pub is_private: bool,
    /// Its body, `NONE` for a declaration. The block's arguments are the function's arguments.
    pub body: BlockId,
    /// Its arguments; see [`Program::func_args`].
    pub args: PortRange,
    /// Its results; see [`Program::func_results`].
    pub results: PortRange,
}

/// The attribute of a cloned function that has the name of the original.
pub const ORIGINAL_NAME: &str = "sdy.original_func_name";

impl Program {
    /// The function that `op`, a `func.func`, is.
    #[inline]
    pub fn function_of(&self, op: OpId) -> FuncId {
        match self.payload(op) {
            Some(Payload::Function(id)) => *id,
            _ => FuncId::NONE,
        }
    }
    /// The function that `value` is in; `NONE` if it is in none.
    pub fn function_of_value(&self, value: ValueId) -> FuncId {
        let inside = match self.def(value) {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.block_parent_op(block),
        };
        self.function_of(self.top_level_op(inside))
    }
    /// How many ids of functions there are, those of erased functions included.
    #[inline]
    pub fn num_function_ids(&self) -> usize {
        self.functions.len()
    }
    /// The `func.func` op of `func`.
    #[inline]
    pub fn func_op(&self, func: FuncId) -> OpId {
        self.functions[func].op
    }
    /// The symbol of `func`, without `@`.
    #[inline]
    pub fn func_name(&self, func: FuncId) -> StrId {
        self.functions[func].name
    }
    /// The block that is the body of `func`, whose arguments are the function's; `NONE` for a declaration.
    #[inline]
    pub fn func_body(&self, func: FuncId) -> BlockId {
        self.functions[func].body
    }
    /// Whether `func` is `private`; other visibilities are attribute `sym_visibility` of its op.
    pub fn is_private(&self, func: FuncId) -> bool {
        self.functions[func].is_private
    }
    /// The functions whose ops are in the module, in program order.
    pub fn functions_in_order(&self) -> Vec<FuncId> {
        self.each_function().collect()
    }
    /// As [`Program::functions_in_order`], one by one.
    pub fn each_function(&self) -> impl Iterator<Item = FuncId> + '_ {
        let ops = self.block_ops(self.module_block());
        ops.map(|op| self.function_of(op)).filter(|func| func.is_some())
    }
    /// The name of the function that `func` was cloned from, or its own.
    pub fn original_name(&mut self, func: FuncId) -> StrId {
        let row = &self.functions[func];
        let name_of = |attr: &&Attr| self.strings.get(attr.name) == ORIGINAL_NAME;
        match self.op_attrs(row.op).iter().find(name_of) {
            Some(attr) => self.strings.intern(self.text.get(attr.value).trim_matches('"')),
            None => row.name,
        }
    }
    /// The entry function of the program: the only one, or else the one called `main`.
    pub fn main_function(&self) -> Result<FuncId> {
        let functions = self.functions_in_order();
        if let [only] = functions[..] {
            return Ok(only);
        }
        let is_main = |func: &FuncId| self.strings.get(self.functions[*func].name) == "main";
        functions.into_iter().find(is_main).ok_or_else(|| {
            Diagnostic::new(Code::UnknownSymbol, "the module has no function `main`").into()
        })
    }
    /// The shardings of the arguments of `func`, fully open for those that have none; empty if none
    /// is over a mesh that has several devices or is maximal.
    pub fn func_arg_shardings(&mut self, func: FuncId) -> Vec<ShardingId> {
        let shardings = match self.functions[func].body.get() {
            Some(body) => self.block_args(body).map(|arg| self.sharding(arg)).collect(),
            None => self.func_args(func).iter().map(|arg| arg.sharding).collect(),
        };
        self.with_open_shardings(shardings, |program, index| program.func_args(func)[index].ty)
    }
    /// The shardings of the results of `func`.
    pub fn func_result_shardings(&mut self, func: FuncId) -> Vec<ShardingId> {
        let shardings = self.func_results(func).iter().map(|result| result.sharding).collect();
        self.with_open_shardings(shardings, |program, index| program.func_results(func)[index].ty)
    }
    /// `shardings` of values with the types `type_of`, where missing ones are fully open; empty if
    /// none is over a mesh that has several devices or is maximal.
    pub fn with_open_shardings(
        &mut self,
        mut shardings: Vec<ShardingId>,
        type_of: impl Fn(&Self, usize) -> TypeId,
    ) -> Vec<ShardingId> {
        let is_over_devices =
            |id: &ShardingId| id.is_some() && !self.mesh(self.mesh_of(*id)).is_maximal();
        let Some(first) = shardings.iter().copied().find(is_over_devices) else {
            return Vec::new();
        };
        let mesh = self.mesh_of(first);
        for (index, sharding) in shardings.iter_mut().enumerate() {
            if sharding.is_none() {
                *sharding = self.replicated(mesh, type_of(self, index), false);
            }
        }
        shardings
    }
    /// The reference's message if the types of `call` do not match those of `func`.
    pub fn call_mismatch(&self, call: OpId, func: FuncId) -> Option<String> {
        let text = |ty| self.text.get(self.types.text(ty));
        let (args, results) = (self.func_args(func), self.func_results(func));
        let operands = self.op_operands(call);
        if operands.len() != args.len() {
            return Some("incorrect number of operands for callee".to_owned());
        }
        for (index, (slot, arg)) in operands.iter().zip(args).enumerate() {
            let given = self.values[slot.value].ty;
            if given != arg.ty {
                return Some(format!(
                    "operand type mismatch: expected operand type '{}', but provided '{}' for \
                     operand number {index}",
                    text(arg.ty),
                    text(given)
                ));
            }
        }
        let given = self.op_results(call);
        if given.len() != results.len() {
            return Some("incorrect number of results for callee".to_owned());
        }
        let differs = |(value, result): (ValueId, &Port)| self.values[value].ty != result.ty;
        let index = given.zip(results).position(differs)?;
        Some(format!("result type mismatch at index {index}"))
    }
}
