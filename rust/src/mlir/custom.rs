//! Ops in their dialect's own syntax, but for functions, regions and Shardy's.
//!
//! Nearly all are operands mixed with attributes in some notation, an attribute dictionary, a colon
//! and types. [`Syntax`] says how the types are to be read.

use super::cursor::syntax;
use super::parser::{After, Building, Parser};
use crate::error::{Result, Span};
use crate::index::TypeId;
use crate::ir::{OpKind, Syntax, Type};

impl Parser<'_> {
    /// Parses an op from behind its name on.
    pub(super) fn parse_custom(&mut self, mut building: Building) -> Result<()> {
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
    /// Reads operands, attributes in any notation, and the dictionary, up to and with the colon.
    fn parse_plain_head(&mut self, building: &mut Building) -> Result<()> {
        let start = self.cursor.pos;
        let mut end = start;
        let mut has_dict = false;
        // Whether a value stands to the left of here: then an `=` belongs to the next op.
        let mut after_value = false;
        let mut after_equals = false;
        loop {
            let byte = self.cursor.next_byte();
            match byte {
                b'%' => self.parse_operand()?,
                b'{' if !after_equals => {
                    self.parse_op_dict(building)?;
                    has_dict = true;
                }
                b'[' | b'<' | b'{' => self.cursor.skip_balanced()?,
                b'"' => {
                    self.cursor.string()?;
                }
                b'@' => super::attrs::skip_attribute(&mut self.cursor)?,
                b':' => break,
                b'=' if after_value => {
                    self.cursor.pos = end;
                    return Err(self.cursor.expected("':' and types"));
                }
                b'-' if self.cursor.byte(self.cursor.pos + 1) == b'>' => self.cursor.pos += 2,
                b'}' | b'^' => return Err(self.cursor.expected("':' and types")),
                0 if self.cursor.at_end() => return Err(self.cursor.expected("':' and types")),
                _ if self.cursor.at_name() => {
                    self.cursor.name();
                }
                _ => self.cursor.pos += 1,
            }
            after_value = byte == b'%';
            after_equals = byte == b'=';
            end = self.cursor.pos;
        }
        building.syntax = Span::new(start as u32, end as u32);
        if !has_dict {
            building.dict = Span::new(end as u32, end as u32);
        }
        self.cursor.pos += 1;
        Ok(())
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
        self.skip_attribute()?;
        building.payload = self.cursor.span_since(start);
        let end = self.cursor.pos;
        let ty = if self.cursor.eat(b':') {
            self.parse_type()?
        } else {
            self.cursor.pos = end;
            self.type_of_bare(building.payload)?
        };
        self.check_elements(building.payload, ty)?;
        building.syntax = Span::new(start as u32, end as u32);
        self.types.push(ty);
        self.finish(building)
    }
    /// Elements, written out at `span`, have a type with a static shape.
    fn check_elements(&self, span: Span, ty: TypeId) -> Result<()> {
        let is_dynamic = match &self.program.types[ty] {
            Type::RankedTensor { shape, .. } => shape.contains(&None),
            ty => matches!(ty, Type::UnrankedTensor(_)),
        };
        if !is_dynamic || !self.text_at(span).starts_with("dense") {
            return Ok(());
        }
        Err(syntax(span, "elements literal type must have static shape").into())
    }
    /// The type of an attribute without one: a boolean, or an alias of elements.
    fn type_of_bare(&mut self, alias: Span) -> Result<TypeId> {
        let name = self.text_at(alias);
        if matches!(name, "true" | "false") {
            let bit = self.program.strings.intern("i1");
            return Ok(self.program.intern_type(Type::Other(bit), "i1"));
        }
        let known = self.program.strings.find(name).and_then(|id| self.program.aliases.get(&id));
        let Some(&body) = known else { return Err(self.cursor.expected("':' and a type")) };
        let here = self.cursor.pos;
        self.cursor.pos = body.start as usize;
        self.skip_attribute()?;
        self.cursor.expect(b':')?;
        let ty = self.parse_type();
        self.cursor.pos = here;
        ty
    }
    /// Parses `%a, %b {attrs} : types`, the dictionary before or after the operands.
    fn parse_return(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        let has_dict_first = self.cursor.next_byte() == b'{';
        if has_dict_first {
            self.parse_op_dict(&mut building)?;
        }
        let mut end = if has_dict_first { self.cursor.pos } else { start };
        // A value may be the first result of the next op: then `=` or another name follows it.
        if self.cursor.next_byte() == b'%' && !self.at_results() {
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
    /// Whether result names and `=` are next.
    fn at_results(&self) -> bool {
        let mut look = self.cursor.clone();
        loop {
            if look.next_byte() != b'%' {
                return false;
            }
            look.pos += 1;
            look.ssa_name();
            match look.next_byte() {
                b'=' => return true,
                b',' => look.pos += 1,
                _ => return false,
            }
        }
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
