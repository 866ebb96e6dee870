//! `func.func`, in custom syntax and in generic form.

use super::parser::{After, Parser, PendingOp};
use super::parts::PendingArg;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, FuncId, StrId, TypeId};
use crate::ir::{AttrRange, Port};
use crate::mlir::cursor::syntax;
use crate::mlir::meaning::in_own_syntax;
use crate::mlir::meaning::{symbol_name, Target};

impl Parser<'_> {
    /// Parses `public @name(args) -> (results) attributes {...} {`, or a declaration.
    pub(super) fn parse_function(&mut self, mut pending: PendingOp) -> Result<()> {
        let id = self.program.push_function(pending.op, StrId::NONE);
        pending.function = id;
        if self.cursor.eat_keyword("private") {
            self.program.note_private(id);
        } else {
            for visibility in ["public", "nested"] {
                if self.cursor.eat_keyword(visibility) {
                    self.keep_visibility(visibility);
                }
            }
        }
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.cursor.symbol().map_err(|error| in_own_syntax("func.func", error))?;
        let name = self.cursor.span_since(start);
        self.name_function(&pending, name)?;
        let has_arg_attrs = self.parse_function_args(id)?;
        let end = self.cursor.pos as u32;
        self.program.set_results_text(id, Span::new(end, end));
        let has_result_attrs = if self.cursor.eat_str("->") {
            self.parse_function_results(id)?
        } else {
            self.cursor.pos = end as usize;
            false
        };
        pending.syntax = self.cursor.span_since(pending.syntax.start as usize);
        self.parse_function_attributes(&mut pending, [has_arg_attrs, has_result_attrs])?;
        let end = self.cursor.pos;
        if self.cursor.next_byte() == b'{' && self.cursor.byte(self.cursor.pos + 1) != b'-' {
            self.check_named_args(&pending)?;
            return self.open_region(pending, After::Nothing);
        }
        self.parts.args.clear();
        self.cursor.pos = end;
        self.finish(pending)
    }
    /// Reads `attributes {...}` if it is next. It may not have attributes that are written
    /// elsewhere in the function; `has_attrs` is whether arguments, and whether results, have
    /// attributes.
    fn parse_function_attributes(
        &mut self,
        pending: &mut PendingOp,
        has_attrs: [bool; 2],
    ) -> Result<()> {
        let mut look = self.cursor.clone();
        look.skip_space();
        let place = look.here();
        let base = self.parts.attrs.len();
        self.parse_optional_attributes(pending)?;
        let given = &self.parts.attrs[base..];
        let is_given = |name: &&str| given.iter().any(|attr| self.program.str(attr.name) == *name);
        if let Some(name) =
            ["sym_visibility", "sym_name", "function_type"].into_iter().find(is_given)
        {
            let message = format!(
                "'{name}' is an inferred attribute and should not be specified in the explicit attribute dictionary"
            );
            return Err(in_own_syntax("func.func", syntax(place, message).into()));
        }
        let lists = ["arg_attrs", "res_attrs"].into_iter().zip(has_attrs);
        let mut twice = lists.filter(|(name, has_attrs)| *has_attrs && is_given(name));
        match twice.next() {
            None => Ok(()),
            Some((name, _)) => {
                let message =
                    format!("attribute '{name}' occurs more than once in the attribute list");
                let problem = syntax(self.name_span(pending), message);
                Err(in_own_syntax("func.func", problem.into()))
            }
        }
    }
    /// Stores a visibility other than private as an attribute.
    fn keep_visibility(&mut self, visibility: &str) {
        let name = self.program.intern("sym_visibility");
        let value = self.program.add_text(&format!("\"{visibility}\""));
        self.parts.attrs.push(crate::ir::Attr { name, value });
    }
    fn name_function(&mut self, pending: &PendingOp, name: Span) -> Result<()> {
        let symbol = self.notes.define_symbol(&mut self.program, pending.op, name)?;
        self.program.name_function(pending.function, symbol, name);
        Ok(())
    }
    /// Reads `(%a: type {attrs} loc(...), ...)`, or without names in a declaration. Returns whether
    /// any argument has attributes.
    fn parse_function_args(&mut self, id: FuncId) -> Result<bool> {
        self.cursor.expect(b'(')?;
        let mut has_attrs = false;
        if self.cursor.eat(b')') {
            return Ok(has_attrs);
        }
        let are_named = self.cursor.next_byte() == b'%';
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let mut name = "";
            let is_named = self.cursor.peek() == b'%';
            if is_named != are_named {
                let says = if is_named {
                    "expected type instead of SSA identifier"
                } else {
                    "expected SSA identifier"
                };
                let problem = syntax(self.cursor.here(), says);
                return Err(in_own_syntax("func.func", problem.into()));
            }
            if is_named {
                name = self.parse_ssa_name()?;
                self.cursor.expect(b':')?;
            }
            let ty = self.parse_type()?;
            let (span, attrs, sharding) = self.parse_value_attrs()?;
            has_attrs |= attrs.len > 0 || sharding.is_some();
            let port = Port { attrs, ..Port::of_type(ty) };
            self.add_function_arg(id, port, span, sharding);
            self.skip_argument_location()?;
            self.parts.args.push(PendingArg { name, offset, ty });
            if !self.cursor.eat(b',') {
                self.cursor.expect(b')')?;
                return Ok(has_attrs);
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
        let base = self.parts.attrs.len();
        let dict = self.parse_dict()?;
        Ok((dict.span, self.flush_attrs(base), dict.sharding))
    }
    /// Reads `type` or `(type {attrs}, ...)`. Returns whether any result has attributes.
    fn parse_function_results(&mut self, id: FuncId) -> Result<bool> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let mut has_attrs = false;
        if !self.cursor.eat(b'(') {
            let ty = self.parse_type()?;
            self.add_function_result(id, ty, AttrRange::default(), None);
        } else if !self.cursor.eat(b')') {
            loop {
                let ty = self.parse_type()?;
                let (_, attrs, sharding) = self.parse_value_attrs()?;
                has_attrs |= attrs.len > 0 || sharding.is_some();
                self.add_function_result(id, ty, attrs, sharding);
                if !self.cursor.eat(b',') {
                    self.cursor.expect(b')')?;
                    break;
                }
            }
        }
        self.program.set_results_text(id, self.cursor.span_since(start));
        Ok(has_attrs)
    }
    fn add_function_arg(&mut self, id: FuncId, port: Port, dict: Span, sharding: Option<Span>) {
        if let Some(sharding) = sharding {
            let index = self.program.func_args(id).len() as u32;
            self.notes.note_sharding(Target::Arg(id, index), sharding);
        }
        self.program.push_func_arg(id, port, dict);
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
            self.notes.note_sharding(Target::FuncResult(id, index), sharding);
        }
        self.program.push_func_result(id, Port { attrs, ..Port::of_type(ty) });
    }
    /// Checks that the arguments of a function with a body have names.
    fn check_named_args(&mut self, pending: &PendingOp) -> Result<()> {
        let Some(arg) = self.parts.args.iter().find(|arg| arg.name.is_empty()) else {
            return Ok(());
        };
        let span = Span::new(arg.offset, arg.offset + 1);
        let name = self.text_at(self.program.printing().function(pending.function).name);
        let message = format!("{name} has a body, so its arguments need names");
        Err(Diagnostic::new(Code::Syntax, message).at(span).with_hint("%arg0: type").into())
    }

    /// Moves the attributes of a function in generic form to its fields.
    pub(super) fn take_function(&mut self, pending: &mut PendingOp) -> Result<()> {
        let id = self.program.push_function(pending.op, StrId::NONE);
        pending.function = id;
        let Some(name) = self.take_attr(pending, "sym_name") else {
            return Err(self.invalid_function(pending, "requires attribute 'sym_name'"));
        };
        self.require_start(pending, ("sym_name", name), '"', "string attribute")?;
        self.name_function(pending, name)?;
        let Some(ty) = self.take_attr(pending, "function_type") else {
            return Err(self.invalid_function(pending, "requires attribute 'function_type'"));
        };
        if let Some(visibility) = self.take_attr(pending, "sym_visibility") {
            if symbol_name(self.text_at(visibility)) == "private" {
                self.program.note_private(id);
            } else {
                let name = self.program.intern("sym_visibility");
                self.parts.attrs.push(crate::ir::Attr { name, value: visibility });
            }
        }
        let here = self.cursor.pos;
        self.cursor.pos = ty.start as usize;
        let (mut args, mut results) = (Vec::new(), Vec::new());
        self.cursor.expect(b'(')?;
        self.types.read_list(&mut self.cursor, &mut self.program, &mut args)?;
        self.cursor.expect_arrow()?;
        self.types.read_results(&mut self.cursor, &mut self.program, &mut results)?;
        let arg_attrs = self.take_attr(pending, "arg_attrs");
        let result_attrs = self.take_attr(pending, "res_attrs");
        let arg_attrs = self.parse_attr_list(arg_attrs, args.len())?;
        let result_attrs = self.parse_attr_list(result_attrs, results.len())?;
        self.cursor.pos = here;
        for (ty, (attrs, sharding)) in args.into_iter().zip(arg_attrs) {
            let port = Port { attrs, ..Port::of_type(ty) };
            self.add_function_arg(id, port, Span::EMPTY, sharding);
        }
        for (ty, (attrs, sharding)) in results.into_iter().zip(result_attrs) {
            self.add_function_result(id, ty, attrs, sharding);
        }
        Ok(())
    }
    fn invalid_function(&self, pending: &PendingOp, message: &str) -> crate::Error {
        let message = format!("'func.func' op {message}");
        Diagnostic::new(Code::InvalidOp, message).at(self.name_span(pending)).into()
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
                    let base = self.parts.attrs.len();
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
    /// Completes a function after its regions.
    pub(super) fn finish_function(&mut self, pending: &PendingOp) -> Result<()> {
        let id = pending.function;
        let regions = self.program.op_regions(pending.op).next();
        let body = regions.map_or(BlockId::NONE, |region| self.program.region_entry(region));
        self.program.set_func_body(id, body);
        if body.is_none() {
            return Ok(());
        }
        let (program, op) = (&self.program, self.program.str(pending.name.id));
        let block_types = program.block_args(body).map(|arg| program.type_of(arg));
        let types = program.func_args(id).iter().map(|arg| arg.ty);
        let count = types.len();
        let message = if program.num_block_args(body) == count {
            let mut pairs = block_types.zip(types).enumerate();
            let Some((at, (given, needed))) = pairs.find(|(_, (given, needed))| given != needed)
            else {
                return Ok(());
            };
            let (given, needed) = (program.type_text(given), program.type_text(needed));
            format!(
                "'{op}' op type of entry block argument #{at}('{given}') must match the type of the \
                 corresponding argument in function signature('{needed}')"
            )
        } else {
            format!("'{op}' op entry block must have {count} arguments to match function signature")
        };
        let span = self.name_span(pending);
        Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into())
    }
}
