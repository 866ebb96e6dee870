//! Parses ops of `mpmd`, Shardy's dialect for pipelines, in custom syntax.

use super::mesh_tensor::respaced;
use super::parser::{After, Parser, PendingOp};
use crate::attribute::Form;
use crate::error::{Result, Span};
use crate::index::StrId;
use crate::ir::{OpKind, Payload, Type};
use crate::mlir::attributes::AttrValue;
use crate::mlir::cursor::syntax;
use crate::mlir::meaning::{in_own_syntax, symbol_name, Target};

/// The shardings that the header of a fragment may have, in this order.
const SHARDINGS: [&str; 2] = ["in_shardings", "out_shardings"];

impl Parser<'_> {
    /// Parses an op of the `mpmd` dialect after its name.
    pub(super) fn parse_mpmd(&mut self, pending: PendingOp) -> Result<()> {
        match self.program.str(pending.name.id) {
            "mpmd.fragment" => self.parse_fragment(pending),
            "mpmd.fragment_call" => self.parse_fragment_call(pending),
            "mpmd.named_computation" => self.parse_mpmd_computation(pending),
            "mpmd.for" => self.parse_mpmd_for(pending),
            "mpmd.call" => self.parse_mpmd_call(pending),
            "mpmd.named_tensor" => self.parse_named_tensor(pending),
            _ => self.parse_transfer(pending),
        }
    }
    /// Parses `{attrs} %a : (type) -> type`, for a broadcast `{attrs} %a : type`, for a reduction
    /// `<add> {attrs} %a, %b : (type, type) -> type`.
    fn parse_transfer(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        let name = self.program.str(pending.name.id);
        let (is_reduction, is_broadcast) = (name == "mpmd.reduce", name == "mpmd.broadcast");
        if is_reduction {
            let read = self.grammar().reduction();
            self.own(&pending, read)?;
        }
        self.parse_optional_op_dict(&mut pending)?;
        if !is_reduction || self.cursor.next_byte() == b'%' {
            self.parse_operand()?;
            while is_reduction && self.cursor.eat(b',') {
                self.parse_operand()?;
            }
        }
        pending.syntax = self.cursor.span_since(start);
        self.cursor.expect(b':')?;
        if is_broadcast {
            return self.parse_one_tensor(pending);
        }
        self.parse_function_type(&mut pending)?;
        self.finish(pending)
    }
    /// Reads the type of the operand and the result, a tensor.
    fn parse_one_tensor(&mut self, mut pending: PendingOp) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let ty = self.parse_type()?;
        let is_tensor =
            matches!(self.program.types()[ty], Type::RankedTensor { .. } | Type::UnrankedTensor(_));
        if !is_tensor {
            let problem = syntax(self.cursor.span_since(start), "invalid kind of type specified");
            return self.own(&pending, Err(problem.into()));
        }
        pending.num_inputs = 1;
        self.parts.types.extend([ty, ty]);
        self.finish(pending)
    }
    /// Parses `%a name="name" {attrs} : type`.
    fn parse_named_tensor(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.parse_operand()?;
        self.own_keyword(&pending, "name")?;
        self.cursor.expect(b'=')?;
        // The type of the string is not written: a colon ends the custom syntax.
        let read = match self.cursor.next_byte() {
            b'"' => self.cursor.string().map(|_| ()),
            _ => self.grammar().string_attribute(),
        };
        self.own(&pending, read)?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.parse_one_tensor(pending)
    }
    /// Parses `@callee(%a, %b) {attrs} : (types) -> types`.
    fn parse_mpmd_call(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.parse_callee(&pending)?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.parse_function_type(&mut pending)?;
        self.finish(pending)
    }
    /// Parses `<mesh="m1", origin=["f"]> @callee(%a) {attrs} : (types) -> types`.
    fn parse_fragment_call(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.cursor.expect(b'<')?;
        self.parse_mesh_and_origin(&pending)?;
        self.cursor.expect(b'>')?;
        self.parse_callee(&pending)?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        self.parse_signature_types(&mut pending)?;
        self.finish(pending)
    }
    /// Reads `@callee(%a, %b)`.
    fn parse_callee(&mut self, pending: &PendingOp) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if self.cursor.peek() != b'@' {
            return Err(self.cursor.expected("attribute value"));
        }
        self.cursor.symbol()?;
        let callee = self.cursor.span_since(start);
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        self.note_mpmd_call(pending, callee);
        Ok(())
    }
    /// Parses `<"name"(1)> (%a) {attrs} (%x: type) {...} : (types) -> types`.
    fn parse_mpmd_computation(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.cursor.expect(b'<')?;
        let read = self.grammar().short_origin();
        let read = self.of_origin(read);
        self.own(&pending, read)?;
        self.cursor.expect(b'>')?;
        self.parse_computation(&mut pending, start)?;
        self.open_region(pending, After::FunctionType)
    }
    /// Parses `(%a) {attrs} (%x: type, %index: type) {...} : types`.
    fn parse_mpmd_for(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.parse_computation(&mut pending, start)?;
        self.open_region(pending, After::Types)
    }
    /// Parses `<mesh="m1", origin=["f"], stage=1, in_shardings=[...], out_shardings=[...]> (%a) {attrs} (%x: type) {...} :
    /// (types) -> types`.
    fn parse_fragment(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = pending.syntax.start as usize;
        self.cursor.expect(b'<')?;
        self.cursor.skip_space();
        let header = self.cursor.pos;
        let mesh = self.parse_mesh_and_origin(&pending)?;
        let mut header = self.cursor.span_since(header);
        // A trailing comma is allowed.
        let mut is_open = self.eat_comma();
        if is_open && self.cursor.eat_keyword("stage") {
            self.cursor.expect(b'=')?;
            self.cursor.skip_space();
            let at = self.cursor.pos;
            let read = self.grammar().attribute();
            self.own(&pending, read)?;
            let stage = self.cursor.span_since(at);
            let text = self.program.resolved_alias(self.text_at(stage)).trim();
            if AttrValue::parse(text).as_int().is_none() {
                let problem = syntax(stage, "invalid kind of attribute specified");
                return self.own(&pending, Err(problem.into()));
            }
            header.end = self.cursor.pos as u32;
            is_open = self.eat_comma();
        }
        let mut given = [false; 2];
        for (name, is_given) in SHARDINGS.into_iter().zip(&mut given) {
            if !is_open || !self.cursor.eat_keyword(name) {
                continue;
            }
            self.cursor.expect(b'=')?;
            let list = self.parse_stripped(&pending, Some(Form::Shardings))?;
            *is_given = true;
            if name == SHARDINGS[0] {
                self.notes.note_sharding(Target::RegionArgs(pending.op), list);
            } else {
                pending.annotations.sharding = Some(list);
            }
            is_open = self.eat_comma();
        }
        self.cursor.expect(b'>')?;
        let header = respaced(self.text_at(header));
        self.note_fragment(&pending, mesh, &header, given);
        self.parse_computation(&mut pending, start)?;
        self.open_region(pending, After::FunctionType)
    }
    /// Reads `mesh="m1", origin=["f"(1), "g"]`; returns the name of the mesh.
    fn parse_mesh_and_origin(&mut self, pending: &PendingOp) -> Result<StrId> {
        self.own_keyword(pending, "mesh")?;
        self.cursor.expect(b'=')?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let read = self.grammar().string_attribute();
        self.own(pending, read)?;
        let mesh = self.cursor.span_since(start);
        self.cursor.expect(b',')?;
        self.own_keyword(pending, "origin")?;
        self.cursor.expect(b'=')?;
        self.parse_origins(pending)?;
        Ok(self.name_in(mesh))
    }
    /// Reads `["f"(1), "g"]`.
    fn parse_origins(&mut self, pending: &PendingOp) -> Result<()> {
        self.cursor.expect(b'[')?;
        if self.cursor.eat(b']') {
            return Ok(());
        }
        loop {
            let read = self.grammar().short_origin();
            let read = self.of_origin(read);
            self.own(pending, read)?;
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b']');
            }
        }
    }
    /// `read`, the result of reading an origin, with MLIR's additional message in errors.
    fn of_origin(&self, read: Result<()>) -> Result<()> {
        read.map_err(|mut error| {
            error.diagnostics.push(syntax(self.cursor.here(), "could not parse user origin."));
            error
        })
    }
    /// Reads `(%a) {attrs} (%x: type)`, the text before the region of an op that starts at `start`.
    fn parse_computation(&mut self, pending: &mut PendingOp, start: usize) -> Result<()> {
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        self.parse_optional_op_dict(pending)?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_body_args()
    }
    /// `read`, the result of reading a part of the custom syntax of `pending`'s op, with errors
    /// worded for it.
    fn own(&self, pending: &PendingOp, read: Result<()>) -> Result<()> {
        read.map_err(|error| in_own_syntax(self.program.str(pending.name.id), error))
    }
    /// The string attribute at `span`, without its quotes and its type.
    fn name_in(&mut self, span: Span) -> StrId {
        let text = self.program.resolved_alias(self.text_at(span)).trim();
        let name = text.strip_prefix('"').and_then(|text| text.rsplit_once('"'));
        let name = name.map_or("", |(name, _)| name).to_owned();
        self.program.intern(&name)
    }
    /// Records that `pending`'s op calls the function at `span`.
    fn note_mpmd_call(&mut self, pending: &PendingOp, span: Span) {
        let callee = self.program.intern(symbol_name(self.text_at(span)));
        self.program.attach_payload(pending.op, Payload::Call(callee));
    }
    fn note_fragment(&mut self, pending: &PendingOp, mesh: StrId, header: &str, has: [bool; 2]) {
        let header = self.program.intern(header);
        let [has_in_shardings, has_out_shardings] = has;
        let payload = Payload::Fragment {
            mesh,
            header,
            has_in_shardings,
            has_out_shardings,
            has_foreign_shardings: false,
        };
        self.program.attach_payload(pending.op, payload);
    }

    /// Moves the attributes of an op of the dialect in generic form that are fields in the
    /// program's tables.
    pub(super) fn take_mpmd(&mut self, pending: &mut PendingOp) {
        match pending.name.kind {
            OpKind::Fragment => {
                let inputs = self.take_attr(pending, SHARDINGS[0]);
                let outputs = self.take_attr(pending, SHARDINGS[1]);
                let given = [inputs.is_some(), outputs.is_some()];
                if let Some(list) = inputs {
                    self.notes.note_sharding(Target::RegionArgs(pending.op), list);
                }
                pending.annotations.sharding = outputs;
                let mesh = self.attr_of(pending, "mesh_name");
                let mesh = self.name_in(mesh.unwrap_or_default());
                let header = self.generic_header(pending);
                self.note_fragment(pending, mesh, &header, given);
            }
            OpKind::MpmdCall | OpKind::FragmentCall => {
                let Some(callee) = self.attr_of(pending, "callee") else { return };
                if self.text_at(callee).starts_with('@') {
                    self.note_mpmd_call(pending, callee);
                }
            }
            _ => {}
        }
    }
    /// The value of attribute `name` of `pending`'s op.
    fn attr_of(&self, pending: &PendingOp, name: &str) -> Option<Span> {
        let mut attrs = self.parts.attrs[pending.base.attrs..].iter();
        attrs.find(|attr| self.program.str(attr.name) == name).map(|attr| attr.value)
    }
    /// The text that the custom syntax of a fragment, which is in generic form, would have before
    /// its shardings.
    fn generic_header(&self, pending: &PendingOp) -> String {
        let text = |name: &str| {
            let text = self.attr_of(pending, name).map_or("", |span| self.text_at(span));
            respaced(self.program.resolved_alias(text))
        };
        let mut header = format!("mesh={}, origin=", text("mesh_name"));
        let origins = text("origin");
        let mut rest = &*origins;
        while let Some((before, after)) = rest.split_once("#mpmd.user_origin<") {
            let (origin, after) = after.split_once('>').unwrap_or((after, ""));
            header.push_str(before);
            header.push_str(origin);
            rest = after;
        }
        header.push_str(rest);
        let stage = text("stage_id");
        if !stage.is_empty() {
            header.push_str(", stage=");
            header.push_str(stage.split(':').next().unwrap_or_default());
        }
        header
    }
}
