//! What a `func.func` has beyond an op.

use super::op::{Attr, AttrRange};
use super::Program;
use super::Span;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{BlockId, FuncId, OpId, ShardingId, StrId, TypeId};

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its `func.func` op.
    pub op: OpId,
    /// Its symbol, without `@`.
    pub name: StrId,
    /// Whether it is `private`. Other visibilities are attribute `sym_visibility` of its op.
    pub is_private: bool,
    /// Its body, `NONE` for a declaration. The block's arguments are the function's arguments.
    pub body: BlockId,
    /// Argument types; for a function with a body the same as its block's.
    pub arg_types: Vec<TypeId>,
    /// Shardings of the arguments of a declaration (with a body they are on the block arguments).
    pub declared_arg_shardings: Vec<ShardingId>,
    /// For each argument its other attributes.
    pub arg_attrs: Vec<AttrRange>,
    /// For each argument its dictionary in the text, or where one would be inserted.
    pub arg_dicts: Vec<Span>,
    /// Result types.
    pub result_types: Vec<TypeId>,
    /// For each result its sharding.
    pub result_shardings: Vec<ShardingId>,
    /// For each result its other attributes.
    pub result_attrs: Vec<AttrRange>,
    /// The text of the result list after `->`, parentheses included; empty if there is none (then
    /// the empty span at the place where `-> ...` would be inserted).
    pub results_span: Span,
    /// Text of the name `@main` in the header.
    pub name_span: Span,
}

impl Program {
    /// Sets attribute `name` of argument `index` of `func` to `value`, a text as MLIR prints it.
    pub fn set_arg_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let range = self.functions[func].arg_attrs[index];
        self.functions[func].arg_attrs[index] = self.with_attr(range, name, value);
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// The same for result `index`.
    pub fn set_result_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let range = self.functions[func].result_attrs[index];
        self.functions[func].result_attrs[index] = self.with_attr(range, name, value);
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// The dictionary at `range` with attribute `name` set to `value`.
    fn with_attr(&mut self, range: AttrRange, name: &str, value: &str) -> AttrRange {
        let name = self.strings.intern(name);
        let attr = Attr { name, value: self.text.add(value) };
        let mut list = self.attr_list(range).to_vec();
        match list.iter_mut().find(|old| old.name == name) {
            Some(old) => *old = attr,
            None => list.push(attr),
        }
        self.add_attrs(&list)
    }
    /// The function that the program starts with: the only one, or else the one called `main`.
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
    /// has one over a mesh of more than one device by its id.
    pub fn func_arg_shardings(&mut self, func: FuncId) -> Vec<ShardingId> {
        let function = &self.functions[func];
        let shardings = match function.body.get() {
            Some(body) => self.block_args(body).map(|arg| self.sharding(arg)).collect(),
            None => function.declared_arg_shardings.clone(),
        };
        let types = function.arg_types.clone();
        self.with_open_shardings(shardings, &types)
    }
    /// The shardings of the results of `func`, likewise.
    pub fn func_result_shardings(&mut self, func: FuncId) -> Vec<ShardingId> {
        let function = &self.functions[func];
        let (shardings, types) = (function.result_shardings.clone(), function.result_types.clone());
        self.with_open_shardings(shardings, &types)
    }
    /// `shardings` of values of `types`, with fully open ones in the gaps; empty if none is over a
    /// mesh of more than one device by its id.
    pub fn with_open_shardings(
        &mut self,
        mut shardings: Vec<ShardingId>,
        types: &[TypeId],
    ) -> Vec<ShardingId> {
        let is_over_devices =
            |id: &ShardingId| id.is_some() && !self.mesh(self.mesh_of(*id)).is_maximal();
        let Some(first) = shardings.iter().copied().find(is_over_devices) else {
            return Vec::new();
        };
        let mesh = self.mesh_of(first);
        for (sharding, &ty) in shardings.iter_mut().zip(types) {
            if sharding.is_none() {
                *sharding = self.replicated(mesh, ty, false);
            }
        }
        shardings
    }
}
