//! Ops in their dialect's own syntax, but for functions, regions and Shardy's.
//!
//! Nearly all are operands mixed with attributes in some notation, an attribute dictionary, a colon
//! and types. [`Syntax`] says how the types are to be read.

use crate::error::{Result, Span};
use crate::index::TypeId;
use crate::ir::{OpKind, Syntax, Type};
use crate::mlir::cursor::syntax;
use crate::mlir::reader::parser::{After, Building, Parser};

impl Parser<'_> {
    /// Parses an op from behind its name on.
    pub(in crate::mlir) fn parse_custom(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        building.syntax = Span::new(start as u32, start as u32);
        match building.name.syntax {
            Syntax::Generic => return self.unknown_syntax(&building),
            Syntax::Elements => return self.parse_constant(building),
            Syntax::Return => return self.parse_return(building),
            Syntax::Barrier => return self.parse_barrier(building),
            Syntax::Custom => return self.parse_own(building),
            _ => {}
        }
        self.parse_plain_head(&mut building)?;
        self.parse_plain_types(&mut building)?;
        self.finish(building)
    }
    fn unknown_syntax(&mut self, building: &Building) -> Result<()> {
        let name = self.program.strings.get(building.name.id);
        let message = format!("the short form of {name} is not known");
        let span = self.name_span(building);
        Err(syntax(span, message)
            .with_hint(format!("write it in generic form, \"{name}\"(...) : (...) -> ..."))
            .into())
    }
    fn parse_own(&mut self, building: Building) -> Result<()> {
        match building.name.kind {
            OpKind::Module => self.parse_module(building),
            OpKind::Func => self.parse_function(building),
            OpKind::Call => self.parse_call(building),
            OpKind::While => self.parse_while(building),
            OpKind::Reduce => self.parse_reduce(building),
            OpKind::Other => match self.program.strings.get(building.name.id) {
                "chlo.scan" => self.parse_scan(building),
                "func.call_indirect" => self.parse_call_indirect(building),
                _ => self.unknown_syntax(&building),
            },
            _ => self.parse_sdy(building),
        }
    }
    /// Reads what the op's format says, the dictionary, and the colon.
    fn parse_plain_head(&mut self, building: &mut Building) -> Result<()> {
        let start = self.cursor.pos;
        let parts = building.name.format;
        self.parse_format(parts)?;
        self.parse_optional_op_dict(building)?;
        building.syntax = self.cursor.span_since(start);
        self.cursor.expect(b':')
    }
    /// Reads the types after the colon.
    fn parse_plain_types(&mut self, building: &mut Building) -> Result<()> {
        let is_function = self.cursor.next_byte() == b'(';
        let count = self.operands.len() - building.operands;
        match building.name.syntax {
            Syntax::Arrow => return self.parse_arrow_types(building),
            Syntax::Functional => return self.parse_signature_types(building),
            Syntax::Cast => return self.parse_cast_types(building),
            _ if is_function => return self.parse_signature_types(building),
            _ => {}
        }
        let ty = self.parse_type()?;
        building.num_inputs = count;
        match building.name.syntax {
            Syntax::Complex => {
                let real = self.real_type(ty);
                building.num_inputs = 2;
                self.types.extend([real, real]);
                self.types.push(ty);
            }
            Syntax::Select => {
                self.cursor.expect(b',')?;
                let chosen = self.parse_type()?;
                building.num_inputs = 3;
                self.types.extend([ty, chosen, chosen, chosen]);
            }
            Syntax::Tuple => {
                let Type::Tuple(elements) = &self.program.types[ty] else {
                    return Err(self.cursor.expected("a tuple type before this"));
                };
                building.num_inputs = elements.len();
                self.types.extend_from_slice(elements);
                self.types.push(ty);
            }
            Syntax::Results => {
                building.num_inputs = 0;
                self.types.push(ty);
                if self.cursor.eat(b',') {
                    let mut types = std::mem::take(&mut self.types);
                    let parsed = self.parse_types(&mut types);
                    self.types = types;
                    parsed?;
                }
            }
            // Every operand and the result have this type.
            _ => self.types.resize(self.types.len() + count + 1, ty),
        }
        Ok(())
    }
    /// Reads `type, type -> type`, as `chlo` writes it, or with parentheses on either side.
    fn parse_arrow_types(&mut self, building: &mut Building) -> Result<()> {
        let mut types = std::mem::take(&mut self.types);
        let parsed = self.parse_arrow_types_to(building, &mut types);
        self.types = types;
        parsed
    }
    fn parse_arrow_types_to(
        &mut self,
        building: &mut Building,
        types: &mut Vec<TypeId>,
    ) -> Result<()> {
        if self.cursor.eat(b'(') {
            self.parse_type_list_to(b')', types)?;
        } else {
            self.parse_types(types)?;
        }
        building.num_inputs = types.len() - building.types;
        self.cursor.expect_arrow()?;
        self.parse_results(types)
    }
    /// Reads `types to types`.
    fn parse_cast_types(&mut self, building: &mut Building) -> Result<()> {
        let mut types = std::mem::take(&mut self.types);
        let has_inputs = self.operands.len() > building.operands;
        let parsed = if has_inputs { self.parse_types(&mut types) } else { Ok(()) };
        building.num_inputs = types.len() - building.types;
        let parsed = parsed.and_then(|()| self.cursor.expect_keyword("to"));
        let parsed = parsed.and_then(|()| self.parse_types(&mut types));
        self.types = types;
        parsed
    }
    /// The type of the parts of a complex tensor.
    fn real_type(&mut self, ty: TypeId) -> TypeId {
        let Type::RankedTensor { element, .. } = &self.program.types[ty] else { return ty };
        let text = self.program.strings.get(element.text).to_owned();
        let part = text.strip_prefix("complex<").and_then(|text| text.strip_suffix('>'));
        part.map_or(ty, |part| self.tensor_with_element(ty, part.trim()))
    }

    /// Parses `{attrs} dense<...> : type`; or the generic form behind a plain name.
    fn parse_constant(&mut self, mut building: Building) -> Result<()> {
        if self.cursor.next_byte() == b'(' {
            building.is_generic = true;
            return self.parse_generic(building);
        }
        self.cursor.pos = building.syntax.start as usize;
        self.parse_optional_op_dict(&mut building)?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let holds_elements = !matches!(
            self.program.strings.get(building.name.id),
            "arith.constant" | "func.constant"
        );
        let (end, ty) = self.parse_typed(holds_elements)?;
        building.payload = Span::new(start as u32, end as u32);
        building.syntax = building.payload;
        self.types.push(ty);
        self.finish(building)
    }
    /// Reads an attribute and its type; where the attribute ends without the type.
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
    /// The type of an attribute without one: a boolean, a number, or an alias of elements.
    fn type_of_bare(&mut self, attribute: Span) -> Result<TypeId> {
        let name = self.text_at(attribute);
        let known = self.program.strings.find(name).and_then(|id| self.program.aliases.get(&id));
        let Some(&body) = known else {
            let ty = match name {
                "true" | "false" => "i1",
                _ if name.contains('.') => "f64",
                _ if name.ends_with(|last: char| last.is_ascii_hexdigit()) => "i64",
                _ => return Err(self.cursor.expected("':' and a type")),
            };
            let id = self.program.strings.intern(ty);
            return Ok(self.program.intern_type(Type::Other(id), ty));
        };
        let here = self.cursor.pos;
        self.cursor.pos = body.start as usize;
        let typed = self.parse_typed(false);
        self.cursor.pos = here;
        typed.map(|(_, ty)| ty)
    }
    /// Parses `%a, %b {attrs} : types`, the dictionary before or after the operands.
    fn parse_return(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        let has_dict_first = self.cursor.next_byte() == b'{';
        if has_dict_first {
            self.parse_op_dict(&mut building)?;
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
        building.syntax = Span::new(start as u32, end as u32);
        if building.name.kind != OpKind::StablehloReturn {
            if !has_dict_first {
                building.dict = Span::new(start as u32, start as u32);
            }
        } else if !has_dict_first {
            self.parse_optional_op_dict(&mut building)?;
        }
        if self.operands.len() > building.operands {
            self.cursor.expect(b':')?;
            let mut types = std::mem::take(&mut self.types);
            let parsed = self.parse_types(&mut types);
            building.num_inputs = types.len() - building.types;
            self.types = types;
            parsed?;
        }
        self.finish(building)
    }
    /// Parses `{attrs} %a, %b : types`, or `()`.
    fn parse_barrier(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        self.parse_optional_op_dict(&mut building)?;
        if self.cursor.eat(b'(') {
            self.cursor.expect(b')')?;
            building.syntax = self.cursor.span_since(start);
            return self.finish(building);
        }
        loop {
            self.parse_operand()?;
            if !self.cursor.eat(b',') {
                break;
            }
        }
        building.syntax = self.cursor.span_since(start);
        self.cursor.expect(b':')?;
        let mut types = std::mem::take(&mut self.types);
        let parsed = self.parse_types(&mut types);
        building.num_inputs = types.len() - building.types;
        types.extend_from_within(building.types..);
        self.types = types;
        parsed?;
        self.finish(building)
    }
    /// Parses `@callee(%a) {attrs} : (types) -> types`.
    fn parse_call(&mut self, mut building: Building) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.cursor.symbol()?;
        let callee = self.cursor.span_since(start);
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        building.syntax = self.cursor.span_since(building.syntax.start as usize);
        self.parse_optional_op_dict(&mut building)?;
        self.cursor.expect(b':')?;
        self.parse_signature_types(&mut building)?;
        self.note_call(building.op, callee);
        self.finish(building)
    }
    /// Parses `%callee(%a) {attrs} : (types) -> types`.
    fn parse_call_indirect(&mut self, mut building: Building) -> Result<()> {
        self.parse_operand()?;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        building.syntax = self.cursor.span_since(building.syntax.start as usize);
        self.parse_optional_op_dict(&mut building)?;
        self.cursor.expect(b':')?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let callee = self.parse_type()?;
        self.types.push(callee);
        self.cursor.pos = start;
        self.parse_signature_types(&mut building)?;
        self.finish(building)
    }
    /// Parses `(%inputs) inits (%inits) dimension=0 attributes {...} {body} : (types) -> types`.
    fn parse_scan(&mut self, mut building: Building) -> Result<()> {
        let start = building.syntax.start as usize;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        self.cursor.expect_keyword("inits")?;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        self.cursor.expect_keyword("dimension")?;
        self.cursor.expect(b'=')?;
        self.cursor.integer()?;
        building.syntax = self.cursor.span_since(start);
        self.parse_optional_attributes(&mut building)?;
        self.open_region(building, After::Signature)
    }
}
