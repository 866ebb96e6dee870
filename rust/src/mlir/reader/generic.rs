//! Parses the generic form, `"dialect.op"(%a)[^bb]<{props}>({regions}) {attrs} : (types) -> types`,
//! and moves attributes that are fields of an op in the program's tables.

use super::parser::{After, Parser, PendingOp};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::ir::{OpKind, OpTraits};
use crate::mlir::meaning::{axes_attribute, wrong_visibility, Target};

impl Parser<'_> {
    /// Parses an op from its operands on; the name has been read.
    pub(super) fn parse_generic(&mut self, mut pending: PendingOp) -> Result<()> {
        let start = self.cursor.pos as u32;
        self.cursor.expect_for(b'(', "to start operand list")?;
        self.parse_operands()?;
        if self.cursor.next_byte() == b'[' {
            self.parse_successors(pending.op)?;
        }
        if self.cursor.eat(b'<') {
            self.parse_properties(&mut pending)?;
        }
        pending.syntax = self.cursor.span_since(start as usize);
        if self.cursor.eat(b'(') {
            return self.open_region(pending, After::Generic);
        }
        self.parse_generic_tail(pending)
    }
    /// Parses `{...}>`, the properties of an op. MLIR ignores properties that a known op does not
    /// have, and all whose name has a dialect, unless the op has no properties at all.
    fn parse_properties(&mut self, pending: &mut PendingOp) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let base = self.parts.attrs.len();
        let is_known = pending.name.traits.has(OpTraits::KNOWN);
        let is_dict = self.cursor.peek() == b'{';
        if is_dict {
            let dict = self.parse_dict()?;
            if is_known {
                self.drop_foreign(pending.name.kind, base);
            } else {
                self.place_dict(pending, &dict);
            }
        } else {
            self.parse_value()?;
        }
        let span = self.cursor.span_since(start);
        let is_terminator = pending.name.traits.has(OpTraits::TERMINATOR);
        if is_known && (self.parts.attrs.len() == base || is_terminator || !is_dict) {
            self.notes.note_properties(pending.op, span);
        }
        self.cursor.expect_for(b'>', "to close properties")
    }
    /// Drops the attributes above `base` that ops of this kind do not have as properties.
    fn drop_foreign(&mut self, kind: OpKind, base: usize) {
        let mut kept = base;
        for at in base..self.parts.attrs.len() {
            let attr = self.parts.attrs[at];
            let name = self.program.str(attr.name);
            let is_own = match kind {
                OpKind::Module => matches!(name, "sym_name" | "sym_visibility"),
                _ => !name.contains('.'),
            };
            if is_own {
                self.parts.attrs[kept] = attr;
                kept += 1;
            }
        }
        self.parts.attrs.truncate(kept);
    }
    /// Parses the rest of the generic form after its regions.
    pub(super) fn parse_generic_tail(&mut self, mut pending: PendingOp) -> Result<()> {
        let end = self.cursor.pos as u32;
        if self.cursor.next_byte() == b'{' {
            let dict = self.parse_dict()?;
            pending.dict = dict.span;
            self.place_dict(&mut pending, &dict);
        } else {
            pending.dict = Span::new(end, end);
        }
        self.cursor.expect_for(b':', "followed by operation type")?;
        self.parse_signature_types(&mut pending)?;
        self.finish(pending)
    }
    /// Reads `(types) -> types` onto the stack of types.
    pub(super) fn parse_signature_types(&mut self, pending: &mut PendingOp) -> Result<()> {
        self.cursor.expect(b'(')?;
        let (cursor, program) = (&mut self.cursor, &mut self.program);
        self.types.read_list(cursor, program, &mut self.parts.types)?;
        self.parse_result_types(pending)
    }
    /// Reads `-> types` onto the stack of types, which has those of the operands.
    pub(super) fn parse_result_types(&mut self, pending: &mut PendingOp) -> Result<()> {
        pending.num_inputs = self.num_types(pending);
        if !self.cursor.eat_str("->") {
            return Err(self.cursor.expected("'->' in function type"));
        }
        let (cursor, program) = (&mut self.cursor, &mut self.program);
        self.types.read_results(cursor, program, &mut self.parts.types)
    }

    /// Takes attribute `name` of the op off the stack of attributes.
    pub(super) fn take_attr(&mut self, pending: &PendingOp, name: &str) -> Option<Span> {
        let id = self.program.strings().find(name)?;
        let at = self.parts.attrs[pending.base.attrs..].iter().position(|attr| attr.name == id)?;
        Some(self.parts.attrs.remove(pending.base.attrs + at).value)
    }
    fn require_attr(&mut self, pending: &PendingOp, name: &str) -> Result<Span> {
        self.take_attr(pending, name).ok_or_else(|| {
            let op = self.program.str(pending.name.id);
            let message = format!("'{op}' op requires attribute '{name}'");
            Diagnostic::new(Code::InvalidOp, message).at(self.name_span(pending)).into()
        })
    }
    /// Checks that the text of an attribute, given with its name, starts with `start`, as
    /// attributes of its kind do.
    pub(super) fn require_start(
        &self,
        pending: &PendingOp,
        (name, value): (&str, Span),
        start: char,
        kind: &str,
    ) -> Result<()> {
        if self.program.resolved_alias(self.text_at(value)).starts_with(start) {
            return Ok(());
        }
        let op = self.program.str(pending.name.id);
        let message = format!("'{op}' op attribute '{name}' failed to satisfy constraint: {kind}");
        Err(Diagnostic::new(Code::InvalidOp, message).at(self.name_span(pending)).into())
    }
    /// Checks that the region of a module has a block, which it does not if it has neither ops nor
    /// a label.
    fn require_block(&self, pending: &PendingOp) -> Result<()> {
        let region = self.program.op_regions(pending.op).next();
        let blocks = region.map(|region| self.program.region_blocks(region));
        let mut blocks = blocks.into_iter().flatten();
        let first = blocks.next();
        if blocks.next().is_some()
            || first.is_none_or(|block| self.program.first_op(block).is_some())
        {
            return Ok(());
        }
        let message = "region #0 ('bodyRegion') failed to verify constraint: region with 1 blocks";
        Err(self.wrong(pending, message))
    }
    /// Checks that the visibility of a symbol, if there is one, is valid.
    fn check_visibility(&self, pending: &PendingOp) -> Result<()> {
        let mut attrs = self.parts.attrs[pending.base.attrs..].iter();
        let given = attrs.find(|attr| self.program.str(attr.name) == "sym_visibility");
        let text = given.map(|attr| self.program.resolved_alias(self.text_at(attr.value)));
        // Other kinds of attributes are rejected later.
        let text = text.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
        match text.and_then(wrong_visibility) {
            None => Ok(()),
            Some(message) => Err(self.wrong(pending, &message)),
        }
    }
    /// An error in an op with MLIR's message, without the name of the op.
    fn wrong(&self, pending: &PendingOp, message: &str) -> Error {
        let message = format!("'{}' op {message}", self.program.str(pending.name.id));
        Diagnostic::new(Code::InvalidOp, message).at(self.name_span(pending)).into()
    }
    /// Moves the attributes of an op in generic form that are fields in the program's tables.
    pub(super) fn take_inherent(&mut self, pending: &mut PendingOp) -> Result<()> {
        match pending.name.kind {
            OpKind::Module => {
                self.require_block(pending)?;
                if let Some(name) = self.take_attr(pending, "sym_name") {
                    self.require_start(pending, ("sym_name", name), '"', "string attribute")?;
                    self.notes.define_symbol(&mut self.program, pending.op, name)?;
                    self.check_visibility(pending)?;
                }
            }
            OpKind::Func => return self.take_function(pending),
            OpKind::Call => {
                let callee = self.require_attr(pending, "callee")?;
                let kind = "flat symbol reference attribute";
                self.require_start(pending, ("callee", callee), '@', kind)?;
                self.notes.note_call(&mut self.program, pending.op, callee);
            }
            OpKind::Mesh => {
                let name = self.require_attr(pending, "sym_name")?;
                let mesh = self.require_attr(pending, "mesh")?;
                self.notes.note_mesh(&mut self.program, pending.op, name, mesh)?;
            }
            OpKind::ShardingConstraint | OpKind::Reshard => {
                pending.annotations.sharding = Some(self.require_attr(pending, "sharding")?);
            }
            OpKind::DataFlowEdge => {
                pending.annotations.sharding = self.take_attr(pending, "sharding");
            }
            OpKind::ShardingGroup => {
                pending.annotations.payload = self.require_attr(pending, "group_id")?;
            }
            OpKind::PropagationBarrier => {
                pending.annotations.payload = self.require_attr(pending, "allowed_direction")?;
            }
            OpKind::ManualComputation => {
                let inputs = self.require_attr(pending, "in_shardings")?;
                let outputs = self.require_attr(pending, "out_shardings")?;
                let axes = self.require_attr(pending, "manual_axes")?;
                self.notes.note_sharding(Target::RegionArgs(pending.op), inputs);
                pending.annotations.sharding = Some(outputs);
                pending.annotations.payload = axes;
            }
            OpKind::NamedComputation => {
                let inputs = self.take_attr(pending, "in_shardings");
                pending.annotations.sharding = self.take_attr(pending, "out_shardings");
                let name = self.require_attr(pending, "name")?;
                let has_outputs = pending.annotations.sharding.is_some();
                let (notes, program) = (&mut self.notes, &mut self.program);
                notes.note_named_computation(program, pending.op, name, inputs, has_outputs);
            }
            OpKind::Fragment | OpKind::MpmdCall | OpKind::FragmentCall => {
                self.take_mpmd(pending);
            }
            _ => {
                if let Some(axes) = axes_attribute(pending.name.kind) {
                    pending.annotations.sharding =
                        Some(self.require_attr(pending, "out_sharding")?);
                    if !axes.is_empty() {
                        pending.annotations.payload = self.require_attr(pending, axes)?;
                    }
                    self.take_reduction(pending)?;
                }
            }
        }
        Ok(())
    }
}
