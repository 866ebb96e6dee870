//! Parses Shardy's ops in custom syntax.

use super::parser::{After, Parser, PendingOp};
use super::parts::PendingArg;
use crate::attribute::{self, Form};
use crate::error::{Error, Result, Span};
use crate::ir::OpKind;
use crate::mlir::cursor::syntax;
use crate::mlir::escapes::unescaped;
use crate::mlir::meaning::{in_own_syntax, Target};

impl Parser<'_> {
    /// Parses an op of the `sdy` dialect after its name.
    pub(super) fn parse_sdy(&mut self, pending: PendingOp) -> Result<()> {
        match pending.name.kind {
            OpKind::Mesh => self.parse_mesh(pending),
            OpKind::ManualComputation => self.parse_manual_computation(pending),
            OpKind::NamedComputation => self.parse_named_computation(pending),
            _ => self.parse_tensor_op(pending),
        }
    }
    /// Parses `@name = <["x"=2]> {attrs}`.
    fn parse_mesh(&mut self, mut pending: PendingOp) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let op_name = self.program.str(pending.name.id);
        self.cursor.symbol().map_err(|error| in_own_syntax(op_name, error))?;
        let name = self.cursor.span_since(start);
        self.cursor.expect(b'=')?;
        let mesh = self.parse_stripped(&pending, Some(Form::Mesh))?;
        self.parse_optional_op_dict(&mut pending)?;
        self.notes.note_mesh(&mut self.program, pending.op, name, mesh)?;
        self.finish(pending)
    }
    /// Steps over `keyword` of the op's custom syntax.
    pub(super) fn own_keyword(&mut self, pending: &PendingOp, keyword: &str) -> Result<()> {
        let name = self.program.str(pending.name.id);
        self.cursor.expect_keyword(keyword).map_err(|error| in_own_syntax(name, error))
    }
    /// Parses an attribute whose `#dialect.name` may be omitted.
    pub(super) fn parse_stripped(
        &mut self,
        pending: &PendingOp,
        form: Option<Form>,
    ) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if let Some(open) = form.map(Form::open) {
            if ![open, b'#'].contains(&self.cursor.peek()) {
                return Err(self.cursor.expected(&format!("'{}'", open as char)));
            }
        }
        let read = match self.cursor.peek() {
            b'<' | b'[' | b'{' => self.cursor.skip_balanced(),
            b'#' => self.grammar().attribute(),
            b'-' | b'0'..=b'9' => self.cursor.integer().map(|_| ()),
            _ if !self.cursor.name().is_empty() => Ok(()),
            _ => Err(self.cursor.expected("attribute value")),
        };
        if let Err(error) = read {
            // The attribute's own parser has a more precise error.
            let text = &self.cursor.text()[start..];
            let shardy = self.program.shardy();
            let found =
                form.and_then(|form| attribute::syntax_error(form, text, start as u32, shardy));
            let name = self.program.str(pending.name.id);
            return Err(found.map_or(error, |error| in_own_syntax(name, error)));
        }
        Ok(self.cursor.span_since(start))
    }
    /// Parses ops of one tensor: `axes %x name=attr {attrs} : type`, with those parts that the op
    /// has.
    fn parse_tensor_op(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        let kind = pending.name.kind;
        if let Some(form) = form_of_axes(kind) {
            self.parse_reduction(&mut pending)?;
            pending.annotations.payload = self.parse_stripped(&pending, Some(form))?;
        }
        self.parse_operand()?;
        match kind {
            OpKind::ShardingConstraint | OpKind::Reshard => {
                pending.annotations.sharding =
                    Some(self.parse_stripped(&pending, Some(Form::Sharding))?);
            }
            OpKind::DataFlowEdge => {
                let end = self.cursor.pos;
                if self.cursor.eat_keyword("sharding") {
                    self.cursor.expect(b'=')?;
                    pending.annotations.sharding =
                        Some(self.parse_stripped(&pending, Some(Form::Sharding))?);
                } else {
                    self.cursor.pos = end;
                }
            }
            OpKind::ShardingGroup => {
                self.own_keyword(&pending, "group_id")?;
                self.cursor.expect(b'=')?;
                pending.annotations.payload = self.parse_stripped(&pending, None)?;
            }
            OpKind::PropagationBarrier => {
                self.own_keyword(&pending, "allowed_direction")?;
                self.cursor.expect(b'=')?;
                if !matches!(self.cursor.next_byte(), b'"' | b'a'..=b'z' | b'A'..=b'Z' | b'_') {
                    let what = "string or keyword containing one of the following enum values for \
                                attribute 'allowed_direction' [NONE, FORWARD, BACKWARD, BOTH]";
                    let error = self.cursor.expected(what);
                    return Err(in_own_syntax(self.program.str(pending.name.id), error));
                }
                pending.annotations.payload = if self.cursor.peek() == b'"' {
                    self.parse_quoted_direction(&pending)?
                } else {
                    self.parse_stripped(&pending, None)?
                };
            }
            OpKind::FuncDataFlowEdge => {}
            _ => {
                self.own_keyword(&pending, "out_sharding")?;
                self.cursor.expect(b'=')?;
                pending.annotations.sharding =
                    Some(self.parse_stripped(&pending, Some(Form::Sharding))?);
            }
        }
        pending.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut pending)?;
        self.cursor.expect(b':')?;
        let ty = self.parse_type()?;
        pending.num_inputs = 1;
        self.parts.types.push(ty);
        if kind != OpKind::ShardingGroup {
            self.parts.types.push(ty);
        }
        self.finish(pending)
    }
    /// Parses a direction in quotes; returns the span between the quotes.
    fn parse_quoted_direction(&mut self, pending: &PendingOp) -> Result<Span> {
        let start = self.cursor.pos;
        let word = unescaped(self.cursor.string()?);
        let quoted = self.cursor.span_since(start);
        if matches!(&*word, "NONE" | "FORWARD" | "BACKWARD" | "BOTH") {
            return Ok(Span::new(quoted.start + 1, quoted.end - 1));
        }
        Err(self.no_case(pending, "allowed_direction", &word, quoted))
    }
    /// The error that `word` is not a case of the enumeration of attribute `name`.
    pub(super) fn no_case(&self, pending: &PendingOp, name: &str, word: &str, at: Span) -> Error {
        let message = format!("invalid {name} attribute specification: \"{word}\"");
        in_own_syntax(self.program.str(pending.name.id), syntax(at, message).into())
    }
    /// Parses `(%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%x: type) {`.
    fn parse_manual_computation(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        self.own_keyword(&pending, "in_shardings")?;
        self.cursor.expect(b'=')?;
        let inputs = self.parse_stripped(&pending, Some(Form::Shardings))?;
        self.notes.note_sharding(Target::RegionArgs(pending.op), inputs);
        self.own_keyword(&pending, "out_shardings")?;
        self.cursor.expect(b'=')?;
        pending.annotations.sharding = Some(self.parse_stripped(&pending, Some(Form::Shardings))?);
        self.own_keyword(&pending, "manual_axes")?;
        self.cursor.expect(b'=')?;
        pending.annotations.payload = self.parse_stripped(&pending, Some(Form::ManualAxes))?;
        pending.syntax = self.cursor.span_since(start);
        self.parse_body_args()?;
        self.open_region(pending, After::Dictionary)
    }
    /// Parses `<"name">(%a) in_shardings=[...] out_shardings=[...] (%x: type) {`.
    fn parse_named_computation(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'<')?;
        self.cursor.skip_space();
        let at = self.cursor.pos;
        if self.cursor.peek() != b'"' {
            return Err(self.cursor.expected("the name in quotes"));
        }
        self.cursor.string()?;
        let name = self.cursor.span_since(at);
        self.cursor.expect(b'>')?;
        self.cursor.expect(b'(')?;
        self.parse_operands()?;
        let mut inputs = None;
        if self.cursor.eat_keyword("in_shardings") {
            self.cursor.expect(b'=')?;
            inputs = Some(self.parse_stripped(&pending, Some(Form::Shardings))?);
        }
        if self.cursor.eat_keyword("out_shardings") {
            self.cursor.expect(b'=')?;
            pending.annotations.sharding =
                Some(self.parse_stripped(&pending, Some(Form::Shardings))?);
        }
        pending.syntax = self.cursor.span_since(start);
        let has_outputs = pending.annotations.sharding.is_some();
        let (notes, program) = (&mut self.notes, &mut self.program);
        notes.note_named_computation(program, pending.op, name, inputs, has_outputs);
        self.parse_body_args()?;
        self.open_region(pending, After::Dictionary)
    }
    /// Reads `(%x: type {attrs} loc(...), ...)`.
    pub(super) fn parse_body_args(&mut self) -> Result<()> {
        self.cursor.expect_for(b'(', "in argument list")?;
        if self.cursor.eat(b')') {
            return Ok(());
        }
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let name = self.parse_ssa_name()?;
            self.cursor.expect(b':')?;
            let ty = self.parse_type()?;
            if self.cursor.next_byte() == b'{' {
                self.cursor.skip_balanced()?;
            }
            self.skip_argument_location()?;
            self.parts.args.push(PendingArg { name, offset, ty });
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b')');
            }
        }
    }
}

/// The form of the axes before the operand of an op of one tensor; `None` if it has none there.
const fn form_of_axes(kind: OpKind) -> Option<Form> {
    match kind {
        OpKind::ShardingConstraint
        | OpKind::Reshard
        | OpKind::DataFlowEdge
        | OpKind::FuncDataFlowEdge
        | OpKind::ShardingGroup
        | OpKind::PropagationBarrier
        | OpKind::CollectivePermute => None,
        OpKind::AllToAll => Some(Form::AllToAll),
        OpKind::AllReduce | OpKind::ReplicatedToUnreduced => Some(Form::Axes),
        _ => Some(Form::AxesPerDim),
    }
}
