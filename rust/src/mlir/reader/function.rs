//! `func.func`, in its own syntax and in generic form.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, FuncId, StrId, TypeId};
use crate::ir::{AttrRange, Function, Port, PortRange};
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::{After, Building, Parser, PendingArg};

impl Parser<'_> {
    /// Parses `public @name(args) -> (results) attributes {...} {`, or a declaration.
    pub(in crate::mlir) fn parse_function(&mut self, mut building: Building) -> Result<()> {
        let id = self.new_function(&building);
        building.function = id;
        if self.cursor.eat_keyword("private") {
            self.program.functions[id].is_private = true;
        } else {
            for visibility in ["public", "nested"] {
                if self.cursor.eat_keyword(visibility) {
                    self.keep_visibility(visibility);
                }
            }
        }
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.cursor.symbol()?;
        let name = self.cursor.span_since(start);
        self.name_function(&building, name)?;
        self.parse_function_args(id)?;
        let end = self.cursor.pos as u32;
        self.program.functions[id].results_span = Span::new(end, end);
        if self.cursor.eat_str("->") {
            self.parse_function_results(id)?;
        } else {
            self.cursor.pos = end as usize;
        }
        building.syntax = self.cursor.span_since(building.syntax.start as usize);
        self.parse_optional_attributes(&mut building)?;
        let end = self.cursor.pos;
        if self.cursor.next_byte() == b'{' && self.cursor.byte(self.cursor.pos + 1) != b'-' {
            self.check_named_args(&building)?;
            return self.open_region(building, After::Nothing);
        }
        self.args.clear();
        self.cursor.pos = end;
        self.finish(building)
    }
    fn new_function(&mut self, building: &Building) -> FuncId {
        self.program.functions.push(Function {
            op: building.op,
            name: StrId::NONE,
            is_private: false,
            body: BlockId::NONE,
            args: PortRange::default(),
            results: PortRange::default(),
            results_span: Span::EMPTY,
            name_span: Span::EMPTY,
        })
    }
    /// Keeps a visibility other than private as the attribute that it is.
    fn keep_visibility(&mut self, visibility: &str) {
        let name = self.program.strings.intern("sym_visibility");
        let value = self.program.text.add(&format!("\"{visibility}\""));
        self.attrs.push(crate::ir::Attr { name, value });
    }
    fn name_function(&mut self, building: &Building, name: Span) -> Result<()> {
        self.define_symbol(building.op, name)?;
        let text = self.attr_name(name);
        let function = &mut self.program.functions[building.function];
        function.name = self.program.strings.intern(text);
        function.name_span = name;
        Ok(())
    }
    /// Reads `(%a: type {attrs} loc(...), ...)`, or without names in a declaration.
    fn parse_function_args(&mut self, id: FuncId) -> Result<()> {
        self.cursor.expect(b'(')?;
        if self.cursor.eat(b')') {
            return Ok(());
        }
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let mut name = "";
            if self.cursor.peek() == b'%' {
                name = self.parse_ssa_name()?;
                self.cursor.expect(b':')?;
            }
            let ty = self.parse_type()?;
            let (span, attrs, sharding) = self.parse_value_attrs()?;
            self.add_function_arg(id, Port { attrs, dict: span, ..Port::of_type(ty) }, sharding);
            self.skip_location()?;
            self.args.push(PendingArg { name, offset, ty });
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b')');
            }
        }
    }
    /// Reads the dictionary of an argument or result, if there is one.
    fn parse_value_attrs(&mut self) -> Result<(Span, AttrRange, Option<Span>)> {
        let end = self.cursor.pos as u32;
        if self.cursor.next_byte() != b'{' {
            self.cursor.pos = end as usize;
            return Ok((Span::new(end, end), AttrRange::default(), None));
        }
        let base = self.attrs.len();
        let dict = self.parse_dict()?;
        Ok((dict.span, self.flush_attrs(base), dict.sharding))
    }
    /// Reads `type` or `(type {attrs}, ...)`.
    fn parse_function_results(&mut self, id: FuncId) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if !self.cursor.eat(b'(') {
            let ty = self.parse_type()?;
            self.add_function_result(id, ty, AttrRange::default(), None);
        } else if !self.cursor.eat(b')') {
            loop {
                let ty = self.parse_type()?;
                let (_, attrs, sharding) = self.parse_value_attrs()?;
                self.add_function_result(id, ty, attrs, sharding);
                if !self.cursor.eat(b',') {
                    self.cursor.expect(b')')?;
                    break;
                }
            }
        }
        self.program.functions[id].results_span = self.cursor.span_since(start);
        Ok(())
    }
    fn add_function_arg(&mut self, id: FuncId, port: Port, sharding: Option<Span>) {
        if let Some(sharding) = sharding {
            let index = self.program.func_args(id).len() as u32;
            self.targets.push((Target::Arg(id, index), sharding));
        }
        self.program.add_func_arg(id, port);
    }
    fn add_function_result(
        &mut self,
        id: FuncId,
        ty: TypeId,
        attrs: AttrRange,
        sharding: Option<Span>,
    ) {
        if let Some(sharding) = sharding {
            let index = self.program.func_results(id).len() as u32;
            self.targets.push((Target::FuncResult(id, index), sharding));
        }
        self.program.add_func_result(id, Port { attrs, ..Port::of_type(ty) });
    }
    /// Arguments of a function with a body need names.
    fn check_named_args(&mut self, building: &Building) -> Result<()> {
        let Some(arg) = self.args.iter().find(|arg| arg.name.is_empty()) else { return Ok(()) };
        let span = Span::new(arg.offset, arg.offset + 1);
        let name = self.text_at(self.program.functions[building.function].name_span);
        let message = format!("{name} has a body, so its arguments need names");
        Err(Diagnostic::new(Code::Syntax, message).at(span).with_hint("%arg0: type").into())
    }

    /// Takes what the generic form of a function says as attributes.
    pub(in crate::mlir) fn take_function(&mut self, building: &mut Building) -> Result<()> {
        let id = self.new_function(building);
        building.function = id;
        let Some(name) = self.take_attr(building, "sym_name") else {
            return Err(self.invalid_function(building, "needs attribute 'sym_name'"));
        };
        self.name_function(building, name)?;
        let Some(ty) = self.take_attr(building, "function_type") else {
            return Err(self.invalid_function(building, "needs attribute 'function_type'"));
        };
        if let Some(visibility) = self.take_attr(building, "sym_visibility") {
            if self.attr_name(visibility) == "private" {
                self.program.functions[id].is_private = true;
            } else {
                let name = self.program.strings.intern("sym_visibility");
                self.attrs.push(crate::ir::Attr { name, value: visibility });
            }
        }
        let here = self.cursor.pos;
        self.cursor.pos = ty.start as usize;
        let (mut args, mut results) = (Vec::new(), Vec::new());
        self.parse_function_type(&mut args, &mut results)?;
        let arg_attrs = self.take_attr(building, "arg_attrs");
        let result_attrs = self.take_attr(building, "res_attrs");
        let arg_attrs = self.parse_attr_list(arg_attrs, args.len())?;
        let result_attrs = self.parse_attr_list(result_attrs, results.len())?;
        self.cursor.pos = here;
        for (ty, (attrs, sharding)) in args.into_iter().zip(arg_attrs) {
            self.add_function_arg(id, Port { attrs, ..Port::of_type(ty) }, sharding);
        }
        for (ty, (attrs, sharding)) in results.into_iter().zip(result_attrs) {
            self.add_function_result(id, ty, attrs, sharding);
        }
        Ok(())
    }
    fn invalid_function(&self, building: &Building, message: &str) -> crate::Error {
        let message = format!("func.func {message}");
        Diagnostic::new(Code::InvalidOp, message).at(self.name_span(building)).into()
    }
    /// Reads `[{...}, {...}]`, one dictionary for each of `count` values.
    fn parse_attr_list(
        &mut self,
        list: Option<Span>,
        count: usize,
    ) -> Result<Vec<(AttrRange, Option<Span>)>> {
        let mut dicts = Vec::new();
        if let Some(list) = list {
            self.cursor.pos = list.start as usize;
            self.cursor.expect(b'[')?;
            if !self.cursor.eat(b']') {
                loop {
                    let base = self.attrs.len();
                    let dict = self.parse_dict()?;
                    dicts.push((self.flush_attrs(base), dict.sharding));
                    if !self.cursor.eat(b',') {
                        self.cursor.expect(b']')?;
                        break;
                    }
                }
            }
            if dicts.len() != count {
                let message = format!("{} dictionaries for {count} values", dicts.len());
                return Err(Diagnostic::new(Code::InvalidOp, message).at(list).into());
            }
        }
        dicts.resize(count, (AttrRange::default(), None));
        Ok(dicts)
    }
    /// Completes a function whose regions are known.
    pub(in crate::mlir) fn finish_function(&mut self, building: &Building) -> Result<()> {
        let id = building.function;
        let regions = self.program.op_regions(building.op).next();
        let body = regions.map_or(BlockId::NONE, |region| self.program.region_entry(region));
        self.program.functions[id].body = body;
        if body.is_none() {
            return Ok(());
        }
        let block_types = self.program.block_args(body).map(|arg| self.program.values[arg].ty);
        if block_types.eq(self.program.func_args(id).iter().map(|arg| arg.ty)) {
            return Ok(());
        }
        let span = self.name_span(building);
        let message = "the arguments of the function's first block are not those of its type";
        Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into())
    }
}
