//! Ops with regions in custom syntax, and the text after a region.

use super::op_names::OpName;
use super::parser::{After, Parser, PendingOp};
use super::parts::PendingArg;
use crate::error::{Result, Span};
use crate::index::{StrId, TypeId};
use crate::ir::{OpKind, Place, Type, NO_NAME};
use crate::mlir::cursor::syntax;
use crate::mlir::meaning::{in_own_syntax, plural};

/// The ops that a reduction can name in `applies`: commutative ops of two operands.
const APPLICABLE: [&str; 7] = [
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.or",
    "stablehlo.xor",
];

impl Parser<'_> {
    /// Parses `module @name attributes {...} {`.
    pub(super) fn parse_module(&mut self, mut pending: PendingOp) -> Result<()> {
        if self.cursor.next_byte() == b'@' {
            let start = self.cursor.pos;
            self.cursor.symbol()?;
            let name = self.cursor.span_since(start);
            self.notes.define_symbol(&mut self.program, pending.op, name)?;
        } else {
            self.cursor.pos = pending.syntax.start as usize;
        }
        let base = self.parts.attrs.len();
        self.parse_optional_attributes(&mut pending)?;
        for attr in &self.parts.attrs[base..] {
            let name = self.program.str(attr.name);
            if matches!(name, "sym_name" | "sym_visibility") {
                self.require_start(&pending, (name, attr.value), '"', "string attribute")
                    .map_err(|error| in_own_syntax("builtin.module", error))?;
            }
        }
        self.notes.enter_module(pending.op);
        self.open_region(pending, After::Nothing)
    }
    /// Parses `(%arg = %init, ...) : types attributes {...} cond {`.
    pub(super) fn parse_while(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.cursor.expect(b'(')?;
        while !self.cursor.eat(b')') {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let name = self.parse_ssa_name()?;
            self.cursor.expect(b'=')?;
            self.parse_operand()?;
            self.parts.args.push(PendingArg { name, offset, ty: TypeId::NONE });
            // MLIR accepts a trailing comma.
            if self.cursor.next_byte() != b')' {
                self.cursor.expect(b',')?;
            }
        }
        pending.syntax = self.cursor.span_since(start);
        if !self.parts.args.is_empty() {
            self.cursor.expect(b':')?;
            self.push_types()?;
            pending.num_inputs = self.num_types(&pending);
            self.parts.types.extend_from_within(pending.base.types..);
        }
        self.parse_optional_attributes(&mut pending)?;
        self.own_keyword(&pending, "cond")?;
        self.set_while_arg_types(&pending)?;
        self.open_region(pending, After::Do)
    }
    fn set_while_arg_types(&mut self, pending: &PendingOp) -> Result<()> {
        if pending.num_inputs != self.parts.args.len() {
            let span = self.name_span(pending);
            let message = format!(
                "the op has {} but {} types",
                plural(self.parts.args.len(), "operand"),
                pending.num_inputs
            );
            return Err(crate::error::Diagnostic::new(crate::Code::TypeMismatch, message)
                .at(span)
                .into());
        }
        for (arg, &ty) in self.parts.args.iter_mut().zip(&self.parts.types[pending.base.types..]) {
            arg.ty = ty;
        }
        Ok(())
    }
    /// Opens the body of a `stablehlo.while`, whose arguments have the names of its condition's.
    fn open_while_body(&mut self, pending: PendingOp) -> Result<()> {
        self.own_keyword(&pending, "do")?;
        let condition = self.region_block(&pending, 0);
        if condition.is_some() && pending.num_inputs > 0 {
            for value in self.program.block_args(condition) {
                let offset = self.program.printing().value_name(value);
                let ty = self.program.type_of(value);
                let mut look = self.cursor.clone();
                look.pos = offset as usize + 1;
                self.parts.args.push(PendingArg { name: look.ssa_name(), offset, ty });
            }
        }
        self.open_region(pending, After::Nothing)
    }
    /// Parses `(%a init: %b), ... applies op across dimensions = [...] {attrs} : type`, or with
    /// `reducer(%x: type, %y: type) {` at the end.
    pub(super) fn parse_reduce(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        let mut inits = Vec::new();
        // MLIR accepts optional commas here.
        loop {
            self.cursor.eat(b',');
            if !self.cursor.eat(b'(') {
                break;
            }
            self.parse_operand()?;
            self.cursor.expect_keyword("init")?;
            self.cursor.expect(b':')?;
            self.parse_operand()?;
            inits.extend(self.parts.operands.pop());
            self.cursor.expect(b')')?;
        }
        self.parts.operands.append(&mut inits);
        let inner = if self.cursor.eat_keyword("applies") {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            let name = self.cursor.name();
            if !APPLICABLE.contains(&name) {
                self.cursor.pos = start;
                return Err(self.cursor.expected(&format!("one of {}", APPLICABLE.join(", "))));
            }
            Some(name)
        } else {
            None
        };
        self.own_keyword(&pending, "across")?;
        self.own_keyword(&pending, "dimensions")?;
        self.cursor.expect(b'=')?;
        self.grammar().ints()?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.parse_function_type(&mut pending)?;
        let Some(inner) = inner else { return self.parse_reducer(pending) };
        let inner = self.op_names.get(&mut self.program, inner);
        self.imply_reducer(&pending, inner)?;
        self.finish(pending)
    }
    /// Reads `reducer(%x: type, %y: type) (...) {`; the block arguments are the elements, then the
    /// accumulators.
    fn parse_reducer(&mut self, pending: PendingOp) -> Result<()> {
        self.skip_location()?;
        self.cursor.expect_keyword("reducer")?;
        let mut accumulators = Vec::new();
        while self.cursor.eat(b'(') {
            self.parse_reducer_arg()?;
            self.cursor.expect(b',')?;
            self.parse_reducer_arg()?;
            accumulators.extend(self.parts.args.pop());
            self.cursor.expect(b')')?;
        }
        self.parts.args.append(&mut accumulators);
        self.open_region(pending, After::Nothing)
    }
    fn parse_reducer_arg(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let offset = self.cursor.pos as u32;
        let name = self.parse_ssa_name()?;
        self.cursor.expect(b':')?;
        let ty = self.parse_type()?;
        self.skip_argument_location()?;
        self.parts.args.push(PendingArg { name, offset, ty });
        Ok(())
    }
    /// Makes the region that `applies` implies: the inner op on two scalars, and a return.
    fn imply_reducer(&mut self, pending: &PendingOp, inner: OpName) -> Result<()> {
        let Some(&first) = self.parts.types.get(pending.base.types) else {
            let span = self.name_span(pending);
            return Err(syntax(span, "'applies' needs an operand").into());
        };
        let scalar = self.scalar_of(first);
        self.add_reducer((inner.id, inner.kind), scalar);
        Ok(())
    }
    /// Pushes a region with op `inner` on two values of type `scalar`, and a return.
    pub(super) fn add_reducer(&mut self, inner: (StrId, OpKind), scalar: TypeId) {
        let block = self.program.push_block(Span::EMPTY);
        let args = [scalar; 2].map(|ty| self.program.push_block_arg(block, ty, NO_NAME));
        let op = self.program.push_op(inner.0, inner.1);
        for arg in args {
            self.program.push_operand(op, arg, NO_NAME);
        }
        let result = self.program.push_result(op, scalar, NO_NAME);
        self.program.insert_op(op, Place::End(block));
        let name = self.op_names.get(&mut self.program, "stablehlo.return");
        let end = self.program.push_op(name.id, name.kind);
        self.program.push_operand(end, result, NO_NAME);
        self.program.insert_op(end, Place::End(block));
        self.push_implied_region(block);
    }
    /// The type of one element of a tensor, as a tensor.
    fn scalar_of(&mut self, ty: TypeId) -> TypeId {
        let (element, name) = match &self.program.types()[ty] {
            Type::RankedTensor { element, .. } => (element.clone(), element.text),
            Type::UnrankedTensor(name) => {
                let text = self.program.str(*name);
                let bits = crate::ir::element_bits(text);
                (crate::ir::ElementType { text: *name, bits }, *name)
            }
            _ => return ty,
        };
        let text = format!("tensor<{}>", self.program.str(name));
        let scalar = Type::RankedTensor { shape: Vec::new(), element, encoding: None };
        self.program.intern_type(scalar, &text)
    }

    /// Parses the text after a region of the op of `pending`.
    pub(super) fn after_region(&mut self, mut pending: PendingOp, after: After) -> Result<()> {
        match after {
            After::Generic if self.cursor.eat(b',') => self.open_region(pending, after),
            After::Generic => {
                self.cursor.expect_for(b')', "to end region list")?;
                self.parse_generic_tail(pending)
            }
            After::Do => self.open_while_body(pending),
            After::Nothing => {
                if pending.name.kind == OpKind::Module {
                    self.notes.leave_module();
                }
                self.finish(pending)
            }
            After::Dictionary => {
                self.parse_optional_op_dict(&mut pending)?;
                self.after_region(pending, After::Signature)
            }
            After::Signature => {
                self.cursor.expect(b':')?;
                self.parse_function_type(&mut pending)?;
                self.finish(pending)
            }
            After::FunctionType => {
                self.cursor.expect(b':')?;
                self.parse_signature_types(&mut pending)?;
                self.finish(pending)
            }
            After::Types => {
                self.cursor.expect(b':')?;
                self.push_types()?;
                pending.num_inputs = self.num_types(&pending);
                self.parts.types.extend_from_within(pending.base.types..);
                self.finish(pending)
            }
        }
    }
}
