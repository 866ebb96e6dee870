//! Building a program op by op.
//!
//! [`NewOp`] has the parts of an op, [`InsertPoint`] its place and location;
//! [`Program::build`] makes it. A region gets blocks by [`Program::add_block`], into which ops are built
//! in turn; [`Program::create_function`] makes a function. Types come from [`Program::tensor_type`] and its
//! like, attributes are texts as MLIR prints them ([`int_attr`], [`int_array`]).
//!
//! ```
//! use shardcore::ir::{InsertPoint, NewOp, Place, Program};
//!
//! let mut program = Program::new();
//! let vector = program.tensor_type_of(&[4, 8], "f32");
//! let scalar = program.tensor_type_of(&[], "f32");
//! let sums = program.tensor_type_of(&[4], "f32");
//! let main = program.intern("main");
//! let end = InsertPoint::at(Place::End(program.module_block()));
//! let main = program.create_function(main, &[vector, scalar], &[sums], end);
//! let body = program.add_body(main);
//! let at = InsertPoint::at(Place::End(body));
//! let [x, zero] = [0, 1].map(|index| program.block_arg(body, index));
//!
//! let reduce = NewOp::new("stablehlo.reduce", &[x, zero], &[sums])
//!     .attr("dimensions", shardcore::ir::int_array(&[1]))
//!     .regions(1);
//! let reduce = program.build(reduce, at);
//! let reducer = program.add_block(program.region(reduce, 0), &[scalar, scalar]);
//! let inside = InsertPoint::at(Place::End(reducer));
//! let [a, b] = [0, 1].map(|index| program.block_arg(reducer, index));
//! let sum = program.build_value(NewOp::new("stablehlo.add", &[a, b], &[scalar]), inside);
//! program.build(NewOp::new("stablehlo.return", &[sum], &[]), inside);
//! program.build(NewOp::new("func.return", &[program.result(reduce, 0)], &[]), at);
//!
//! let text = shardcore::mlir::print(&program);
//! let again = shardcore::mlir::parse(text.as_str().into()).unwrap();
//! assert_eq!(again.num_ops(), program.num_ops());
//! assert!(text.contains("dimensions = array<i64: 1>"), "{text}");
//! ```

use super::{Attr, OpFlags, OpKind, Payload, Place, Port, Program, Span, ValueDef, NO_NAME};
use crate::index::{BlockId, FuncId, MeshId, OpId, RegionId, ShardingId, StrId, TypeId, ValueId};
use crate::mesh::Mesh;
use std::borrow::Cow;

/// Where a new op goes, and what location it has (MLIR's `ImplicitLocOpBuilder`).
#[derive(Clone, Copy, Debug)]
pub struct InsertPoint {
    /// Where it goes.
    pub place: Place,
    /// The text within its `loc(...)`; empty for none.
    pub loc: Span,
}

impl InsertPoint {
    /// At `place`, without a location.
    pub const fn at(place: Place) -> Self {
        Self { place, loc: Span::EMPTY }
    }
    /// This point with another location.
    #[must_use]
    pub const fn with_loc(self, loc: Span) -> Self {
        Self { loc, ..self }
    }
}

/// The parts of a new op, as in MLIR's `OperationState`.
#[derive(Clone, Debug)]
pub struct NewOp<'a> {
    name: Name<'a>,
    operands: Vec<ValueId>,
    results: Vec<TypeId>,
    sharding: ShardingId,
    attrs: Vec<(&'a str, Cow<'a, str>)>,
    payload: Option<Payload>,
    num_regions: usize,
}

/// How the name of a new op is given.
#[derive(Clone, Copy, Debug)]
enum Name<'a> {
    /// By its kind, which is not `Other`.
    Kind(OpKind),
    /// In full.
    Text(&'a str),
}

impl<'a> NewOp<'a> {
    /// An op called `name` in full, with these operands and types of results.
    pub fn new(name: &'a str, operands: &[ValueId], results: &[TypeId]) -> Self {
        Self::named(Name::Text(name), operands, results)
    }
    /// An op of `kind`, which is not `Other`.
    pub fn of_kind(kind: OpKind, operands: &[ValueId], results: &[TypeId]) -> Self {
        Self::named(Name::Kind(kind), operands, results)
    }
    fn named(name: Name<'a>, operands: &[ValueId], results: &[TypeId]) -> Self {
        let (operands, results) = (operands.to_vec(), results.to_vec());
        let (sharding, attrs) = (ShardingId::NONE, Vec::new());
        Self { name, operands, results, sharding, attrs, payload: None, num_regions: 0 }
    }
    /// Gives every result this sharding.
    #[must_use]
    pub fn sharding(mut self, sharding: ShardingId) -> Self {
        self.sharding = sharding;
        self
    }
    /// Adds attribute `name` with `value`, a text as MLIR prints it (empty for a unit).
    #[must_use]
    pub fn attr(mut self, name: &'a str, value: impl Into<Cow<'a, str>>) -> Self {
        self.attrs.push((name, value.into()));
        self
    }
    /// Adds structured attributes.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = Some(payload);
        self
    }
    /// Gives it `count` regions, which have no blocks yet.
    #[must_use]
    pub fn regions(mut self, count: usize) -> Self {
        self.num_regions = count;
        self
    }
}

impl Program {
    /// A module with nothing in it.
    pub fn new() -> Self {
        let mut program = Self::default();
        // There are no names in the text that fresh names could clash with.
        program.printing.fresh_prefix = String::new().into();
        let name = program.kind_name(OpKind::Module);
        let module = program.push_op(name, OpKind::Module);
        let region = program.push_region(module, Span::EMPTY);
        program.add_block(region, &[]);
        program.end_of_text(module);
        program
    }
    /// Adds an op of `kind`, which is not `Other`; the printer writes it from its fields.
    fn push_made_op(&mut self, kind: OpKind) -> OpId {
        let name = self.kind_name(kind);
        let op = self.push_op(name, kind);
        self.printing.flags[op] = OpFlags::SYNTHESISED;
        op
    }
    /// Makes an op in no block yet, without a location.
    pub fn create_op(&mut self, new: NewOp<'_>) -> OpId {
        let kind = match new.name {
            Name::Kind(kind) => kind,
            Name::Text(name) => OpKind::from_name(name),
        };
        let op = match new.name {
            Name::Text(name) if kind == OpKind::Other => {
                let name = self.strings.intern(name);
                let op = self.push_op(name, kind);
                self.printing.flags[op] = OpFlags::SYNTHESISED;
                op
            }
            _ => self.push_made_op(kind),
        };
        self.push_operands(op, &new.operands);
        for ty in new.results {
            let value = self.push_result(op, ty, NO_NAME);
            self.value_shardings[value] = new.sharding;
        }
        if let Some(payload) = new.payload {
            self.attach_payload(op, payload);
        }
        if !new.attrs.is_empty() {
            let mut list = Vec::with_capacity(new.attrs.len());
            for (name, value) in &new.attrs {
                let name = self.strings.intern(name);
                list.push(Attr { name, value: self.text.add_once(value) });
            }
            self.replace_attrs(op, &list);
        }
        self.add_regions(op, new.num_regions);
        op
    }
    /// Makes an op at `at`.
    pub fn build(&mut self, new: NewOp<'_>, at: InsertPoint) -> OpId {
        let op = self.create_op(new);
        self.printing.ops[op].loc = at.loc;
        self.insert_op(op, at.place);
        op
    }
    /// Makes an op with at least one result at `at` and returns its first result.
    pub fn build_value(&mut self, new: NewOp<'_>, at: InsertPoint) -> ValueId {
        let op = self.build(new, at);
        self.result(op, 0)
    }
    /// Makes an op of `kind` with the operand `input` and a result of the same type with
    /// `sharding`: a reshard, a collective, a constraint, a data-flow edge.
    pub fn build_unary(
        &mut self,
        kind: OpKind,
        input: ValueId,
        sharding: ShardingId,
        at: InsertPoint,
    ) -> OpId {
        let op = self.push_made_op(kind);
        self.push_operand(op, input, NO_NAME);
        let result = self.push_result(op, self.type_of(input), NO_NAME);
        self.value_shardings[result] = sharding;
        self.printing.ops[op].loc = at.loc;
        self.insert_op(op, at.place);
        op
    }
    /// Adds `count` empty regions to `op`, which must be the op that the last region was added to.
    pub fn add_regions(&mut self, op: OpId, count: usize) {
        for _ in 0..count {
            self.push_region(op, Span::EMPTY);
        }
    }
    /// Appends a block with arguments of these types to `region`.
    pub fn add_block(&mut self, region: RegionId, args: &[TypeId]) -> BlockId {
        let block = self.push_block(Span::EMPTY);
        self.append_block(region, block);
        for &ty in args {
            self.push_block_arg(block, ty, NO_NAME);
        }
        block
    }
    /// Makes a public function without a body (a declaration).
    /// [`SymbolTable::insert`](super::SymbolTable::insert) makes its name unique.
    pub fn create_function(
        &mut self,
        name: StrId,
        args: &[TypeId],
        results: &[TypeId],
        at: InsertPoint,
    ) -> FuncId {
        let op = self.push_made_op(OpKind::Func);
        self.printing.ops[op].loc = at.loc;
        self.insert_op(op, at.place);
        let func = self.push_function(op, name);
        self.attach_payload(op, Payload::Function(func));
        for &ty in args {
            self.push_func_arg(func, Port::of_type(ty), Span::EMPTY);
        }
        for &ty in results {
            self.push_func_result(func, Port::of_type(ty));
        }
        func
    }
    /// Makes `func` private.
    pub fn make_private(&mut self, func: FuncId) {
        self.functions[func].is_private = true;
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// Adds a body to `func`, a declaration: a block with the function's arguments.
    pub fn add_body(&mut self, func: FuncId) -> BlockId {
        let region = self.push_region(self.functions[func].op, Span::EMPTY);
        let types: Vec<TypeId> = self.func_args(func).iter().map(|arg| arg.ty).collect();
        let body = self.add_block(region, &types);
        self.functions[func].body = body;
        body
    }
    /// Makes `func`, whose blocks are gone, a declaration.
    pub fn drop_func_body(&mut self, func: FuncId) {
        self.functions[func].body = BlockId::NONE;
    }
    /// Gives `func`, a declaration, the blocks of `from` as its body; the first one has its arguments.
    pub fn take_body(&mut self, func: FuncId, from: RegionId) {
        let region = self.push_region(self.functions[func].op, Span::EMPTY);
        self.take_blocks(from, region);
        self.functions[func].body = self.region_entry(region);
    }
}

/// Creates meshes, and copies names.
impl Program {
    /// Makes the `sdy.mesh` called `symbol`, which has to be a new symbol.
    pub fn create_mesh(&mut self, symbol: StrId, mesh: Mesh, at: InsertPoint) -> (MeshId, OpId) {
        let id = self.add_mesh(symbol, mesh);
        let op = NewOp::of_kind(OpKind::Mesh, &[], &[]).payload(Payload::Mesh(id));
        (id, self.build(op, at))
    }
    /// Gives `to`, which replaces `from`, the SSA name that `from` has in the text.
    pub fn copy_name(&mut self, from: ValueId, to: ValueId) {
        self.printing.value_names[to] = self.printing.value_names[from];
    }
}

/// Insertion points.
impl Program {
    /// Right before `op`, with its location.
    pub fn before(&self, op: OpId) -> InsertPoint {
        InsertPoint { place: Place::Before(op), loc: self.loc(op) }
    }
    /// Right after `op`, with its location: ops put there one by one stay in that order.
    pub fn after(&self, op: OpId) -> InsertPoint {
        InsertPoint { place: self.place_after(op), loc: self.loc(op) }
    }
    /// The place right after `op`: ops put there one by one stay in that order.
    pub fn place_after(&self, op: OpId) -> Place {
        self.next_op(op).get().map_or(Place::End(self.parent_block(op)), Place::Before)
    }
    /// The place right after `value` is defined.
    pub fn place_after_value(&self, value: ValueId) -> Place {
        match self.def(value) {
            ValueDef::Result(op) => self.place_after(op),
            ValueDef::Arg(block) => {
                self.first_op(block).get().map_or(Place::End(block), Place::Before)
            }
        }
    }
}
