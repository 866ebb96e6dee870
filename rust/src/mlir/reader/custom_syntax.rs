//! Ops in custom syntax, except functions, ops with regions and Shardy's ops.
//!
//! Nearly all are operands mixed with attributes, an attribute dictionary, a colon and types.
//! [`Syntax`] says how the types are parsed.

use super::parser::{After, Parser, PendingOp};
use super::types::tensor_with_element;
use crate::error::{Result, Span};
use crate::index::TypeId;
use crate::ir::{OpKind, OpTraits, Syntax, Type};
use crate::mlir::cursor::syntax;
use crate::mlir::grammar::{known_dialect, Ops};
use crate::mlir::meaning::in_own_syntax;

impl Parser<'_> {
    /// Parses an op after its name.
    pub(super) fn parse_custom(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        pending.syntax = Span::new(start as u32, start as u32);
        match pending.name.syntax {
            Syntax::Generic => return self.unknown_syntax(&pending),
            Syntax::Elements => return self.parse_constant(pending),
            Syntax::Return => return self.parse_return(pending),
            Syntax::Barrier => return self.parse_barrier(pending),
            Syntax::Custom => return self.parse_own(pending),
            _ => {}
        }
        self.parse_plain_head(&mut pending)?;
        self.parse_plain_types(&mut pending)?;
        self.finish(pending)
    }
    fn unknown_syntax(&mut self, pending: &PendingOp) -> Result<()> {
        let name = self.program.str(pending.name.id);
        let span = self.name_span(pending);
        let written = self.text_at(span);
        let dialect = name.split_once('.').map_or("", |(dialect, _)| dialect);
        let message = match known_dialect(dialect) {
            _ if dialect.is_empty() => {
                let tried = format!("{}.{written}", self.default_dialect());
                if self.default_dialect().is_empty() {
                    let what = format!("Dialect `' not found for custom op '{written}'");
                    format!("{what}  (tried '{tried}' as well)")
                } else {
                    format!("custom op '{written}' is unknown (tried '{tried}' as well)")
                }
            }
            None => format!("Dialect `{dialect}' not found for custom op '{written}'"),
            Some(Ops::All) if !pending.name.traits.has(OpTraits::KNOWN) => {
                format!("custom op '{written}' is unknown")
            }
            Some(_) => format!("the short form of {name} is not known"),
        };
        Err(syntax(span, message)
            .with_hint(format!("write it in generic form, \"{name}\"(...) : (...) -> ..."))
            .into())
    }
    /// The dialect of op names without a dialect.
    pub(super) fn default_dialect(&self) -> &'static str {
        let mut around = self.open_regions.iter().rev().map(|region| &region.pending);
        match around.find(|around| !around.is_generic).map(|around| around.name.kind) {
            Some(OpKind::Func) => "func",
            Some(OpKind::Module) | None => "builtin",
            Some(_) => "",
        }
    }
    fn parse_own(&mut self, pending: PendingOp) -> Result<()> {
        match pending.name.kind {
            OpKind::Module => self.parse_module(pending),
            OpKind::Func => self.parse_function(pending),
            OpKind::Call => self.parse_call(pending),
            OpKind::While => self.parse_while(pending),
            OpKind::Reduce => self.parse_reduce(pending),
            OpKind::Scan => self.parse_scan(pending),
            OpKind::Other => match self.program.str(pending.name.id) {
                "mhlo.scan" => self.parse_scan(pending),
                "func.call_indirect" => self.parse_call_indirect(pending),
                name if name.starts_with("mpmd.") => self.parse_mpmd(pending),
                _ => self.unknown_syntax(&pending),
            },
            OpKind::Fragment
            | OpKind::MpmdFor
            | OpKind::MpmdCall
            | OpKind::FragmentCall
            | OpKind::Transfer => self.parse_mpmd(pending),
            _ => self.parse_sdy(pending),
        }
    }
    /// Parses the op's format, the dictionary, and the colon.
    fn parse_plain_head(&mut self, pending: &mut PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        let parts = pending.name.format;
        self.parse_format(pending.name.id, parts)?;
        self.parse_optional_op_dict(pending)?;
        pending.syntax = self.cursor.span_since(start);
        self.cursor.expect(b':')
    }
    /// Reads the types after the colon.
    fn parse_plain_types(&mut self, pending: &mut PendingOp) -> Result<()> {
        let is_function = self.cursor.next_byte() == b'(';
        let count = self.num_operands(pending);
        match pending.name.syntax {
            Syntax::Arrow => return self.parse_arrow_types(pending),
            Syntax::Functional => return self.parse_function_type(pending),
            Syntax::Cast => return self.parse_cast_types(pending),
            _ if is_function => return self.parse_signature_types(pending),
            _ => {}
        }
        let ty = self.parse_type()?;
        pending.num_inputs = count;
        match pending.name.syntax {
            Syntax::Complex => {
                let real = self.real_type(ty);
                pending.num_inputs = 2;
                self.parts.types.extend([real, real]);
                self.parts.types.push(ty);
            }
            Syntax::Select => {
                if !self.cursor.eat(b',') {
                    let name = self.program.str(pending.name.id);
                    let problem = self.cursor.expected("functional type or list of two types");
                    return Err(in_own_syntax(name, problem));
                }
                let chosen = self.parse_type()?;
                pending.num_inputs = 3;
                self.parts.types.extend([ty, chosen, chosen, chosen]);
            }
            Syntax::Tuple => {
                let Type::Tuple(elements) = &self.program.types()[ty] else {
                    return Err(self.cursor.expected("a tuple type before this"));
                };
                pending.num_inputs = elements.len();
                self.parts.types.extend_from_slice(elements);
                self.parts.types.push(ty);
            }
            Syntax::Results => {
                pending.num_inputs = 0;
                self.parts.types.push(ty);
                if self.cursor.eat(b',') {
                    self.push_types()?;
                }
            }
            // Every operand and the result have this type.
            _ => self.parts.types.resize(self.parts.types.len() + count + 1, ty),
        }
        Ok(())
    }
    /// Reads `(types) -> types`.
    pub(super) fn parse_function_type(&mut self, pending: &mut PendingOp) -> Result<()> {
        if self.cursor.next_byte() == b'(' {
            return self.parse_signature_types(pending);
        }
        let start = self.cursor.pos;
        self.parse_type()?;
        let span = self.cursor.span_since(start);
        let message = format!(
            "invalid kind of type specified: expected builtin.function, but found '{}'",
            self.text_at(span)
        );
        let problem = syntax(span, message).into();
        Err(in_own_syntax(self.program.str(pending.name.id), problem))
    }
    /// Reads `type, type -> type`, as `chlo` writes it, or with parentheses on either side.
    fn parse_arrow_types(&mut self, pending: &mut PendingOp) -> Result<()> {
        if self.cursor.eat(b'(') {
            let (cursor, program) = (&mut self.cursor, &mut self.program);
            self.types.read_list(cursor, program, &mut self.parts.types)?;
        } else {
            self.push_types()?;
        }
        self.parse_result_types(pending)
    }
    /// Reads `types to types`.
    fn parse_cast_types(&mut self, pending: &mut PendingOp) -> Result<()> {
        if self.num_operands(pending) > 0 {
            self.push_types()?;
        }
        pending.num_inputs = self.num_types(pending);
        self.own_keyword(pending, "to")?;
        self.push_types()
    }
    /// The type of the parts of a complex tensor.
    fn real_type(&mut self, ty: TypeId) -> TypeId {
        let Type::RankedTensor { element, .. } = &self.program.types()[ty] else { return ty };
        let text = self.program.str(element.text).to_owned();
        let part = text.strip_prefix("complex<").and_then(|text| text.strip_suffix('>'));
        part.map_or(ty, |part| tensor_with_element(&mut self.program, ty, part.trim()))
    }

    /// Parses `{attrs} dense<...> : type`; or the generic form after a name without quotes.
    fn parse_constant(&mut self, mut pending: PendingOp) -> Result<()> {
        if self.cursor.next_byte() == b'(' {
            pending.is_generic = true;
            return self.parse_generic(pending);
        }
        self.cursor.pos = pending.syntax.start as usize;
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let holds_elements =
            !matches!(self.program.str(pending.name.id), "arith.constant" | "func.constant");
        let (end, ty) = self.parse_typed(holds_elements)?;
        pending.annotations.payload = Span::new(start as u32, end as u32);
        pending.syntax = pending.annotations.payload;
        self.parts.types.push(ty);
        self.finish(pending)
    }
    /// Reads an attribute and its type; returns the end of the attribute without the type.
    fn parse_typed(&mut self, holds_elements: bool) -> Result<(usize, TypeId)> {
        let start = self.cursor.pos;
        let mut grammar = self.grammar();
        grammar.attribute()?;
        let typed = grammar.typed;
        let text = self.cursor.since(start);
        let is_alias = text.starts_with('#') && !text.contains(['.', '<']);
        let is_elements = is_alias || text.starts_with("dense") || text.starts_with("sparse");
        if holds_elements && !is_elements {
            self.cursor.pos = start;
            return Err(self.cursor.expected("elements, as in dense<0>"));
        }
        if let Some((end, ty)) = typed {
            self.cursor.pos = ty;
            return Ok((end, self.parse_type()?));
        }
        let end = self.cursor.pos;
        if self.cursor.eat(b':') {
            return Ok((end, self.parse_type()?));
        }
        self.cursor.pos = end;
        Ok((end, self.type_of_bare(self.cursor.span_since(start))?))
    }
    /// The type of an attribute that is not followed by one: a boolean, a number, or an alias of
    /// elements.
    fn type_of_bare(&mut self, attribute: Span) -> Result<TypeId> {
        let name = self.text_at(attribute);
        let known = self.program.strings().find(name).and_then(|id| self.program.alias(id));
        let Some(body) = known else {
            let ty = match name {
                "true" | "false" => "i1",
                _ if name.contains('.') => "f64",
                _ if name.ends_with(|last: char| last.is_ascii_hexdigit()) => "i64",
                _ => return Err(self.cursor.expected("':' and a type")),
            };
            let id = self.program.intern(ty);
            return Ok(self.program.intern_type(Type::Other(id), ty));
        };
        let here = self.cursor.pos;
        self.cursor.pos = body.start as usize;
        let typed = self.parse_typed(false);
        self.cursor.pos = here;
        typed.map(|(_, ty)| ty)
    }
    /// Parses `%a, %b {attrs} : types`; the dictionary comes before the operands unless the op is
    /// of `StableHLO`.
    fn parse_return(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        let is_dict_last = pending.name.kind == OpKind::StablehloReturn;
        let has_dict_first = !is_dict_last && self.cursor.next_byte() == b'{';
        if has_dict_first {
            self.parse_op_dict(&mut pending)?;
        }
        let mut end = if has_dict_first { self.cursor.pos } else { start };
        if self.cursor.next_byte() == b'%' {
            loop {
                self.parse_operand()?;
                if !self.cursor.eat(b',') {
                    break;
                }
            }
            end = self.cursor.pos;
        }
        self.cursor.pos = end;
        pending.syntax = Span::new(start as u32, end as u32);
        if is_dict_last {
            self.parse_optional_op_dict(&mut pending)?;
            return self.parse_types_of_return(pending);
        } else if !has_dict_first {
            pending.dict = Span::new(start as u32, start as u32);
        }
        if self.parts.operands.len() > pending.base.operands {
            self.cursor.expect(b':')?;
            self.push_types()?;
            pending.num_inputs = self.num_types(&pending);
        }
        self.finish(pending)
    }
    /// Reads `: types` after the operands of `stablehlo.return`, if there are any.
    fn parse_types_of_return(&mut self, mut pending: PendingOp) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.eat(b':') {
            self.push_types()?;
        } else {
            self.cursor.pos = end;
        }
        pending.num_inputs = self.num_types(&pending);
        let (operands, types) = (self.num_operands(&pending), pending.num_inputs);
        if operands == types {
            return self.finish(pending);
        }
        let message = format!(
            "number of operands and types do not match: got {operands} operands and {types} types"
        );
        let problem = syntax(self.name_span(&pending), message).into();
        Err(in_own_syntax(self.program.str(pending.name.id), problem))
    }
    /// Parses `{attrs} %a, %b : types`, or `()`.
    fn parse_barrier(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        self.parse_optional_op_dict(&mut pending)?;
        if self.cursor.next_byte() != b'%' {
            self.cursor.expect(b'(')?;
            self.cursor.expect(b')')?;
            pending.syntax = self.cursor.span_since(start);
            return self.finish(pending);
        }
        loop {
            self.parse_operand()?;
            if !self.cursor.eat(b',') {
                break;
            }
        }
        pending.syntax = self.cursor.span_since(start);
        self.cursor.expect(b':')?;
        self.push_types()?;
        pending.num_inputs = self.num_types(&pending);
        self.parts.types.extend_from_within(pending.base.types..);
        self.finish(pending)
    }
    /// Parses `@callee(%a) {attrs} : (types) -> types`.
    fn parse_call(&mut self, mut pending: PendingOp) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if self.cursor.peek() != b'@' {
            return Err(self.cursor.expected("attribute value"));
        }
        self.cursor.symbol()?;
        let callee = self.cursor.span_since(start);
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        pending.syntax = self.cursor.span_since(pending.syntax.start as usize);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.parse_function_type(&mut pending)?;
        self.notes.note_call(&mut self.program, pending.op, callee);
        self.finish(pending)
    }
    /// Parses `%callee(%a) {attrs} : (types) -> types`.
    fn parse_call_indirect(&mut self, mut pending: PendingOp) -> Result<()> {
        self.parse_operand()?;
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        pending.syntax = self.cursor.span_since(pending.syntax.start as usize);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let callee = self.parse_type()?;
        self.parts.types.push(callee);
        self.cursor.pos = start;
        self.parse_function_type(&mut pending)?;
        self.finish(pending)
    }
    /// Parses `(%inputs) inits (%inits) dimension=0 attributes {...} {body} : (types) -> types`.
    fn parse_scan(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        self.own_keyword(&pending, "inits")?;
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        self.own_keyword(&pending, "dimension")?;
        self.cursor.expect(b'=')?;
        self.cursor.integer()?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_attributes(&mut pending)?;
        self.open_region(pending, After::Signature)
    }
}
