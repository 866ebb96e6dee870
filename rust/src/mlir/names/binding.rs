//! Binding SSA names to values.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, Id, OpId, TypeId, ValueId};
use crate::ir::{OpFlags, OpKind, OpTraits};
use crate::mlir::names::scopes::{Forward, Lookup};
use crate::mlir::reader::parser::{Parser, PendingOperand};
use crate::suggest;

impl<'a> Parser<'a> {
    /// Makes `name` stand for `count` values from `first` on, which have been made, also where it was
    /// used before.
    #[inline]
    pub(in crate::mlir) fn define(
        &mut self,
        name: &'a str,
        first: ValueId,
        count: u32,
    ) -> Result<()> {
        if let Err(old) = self.scopes.define(name, first) {
            let message = format!("redefinition of SSA value '%{name}'");
            return Err(Diagnostic::new(Code::RedefinedValue, message)
                .at(self.definition_span(name, first))
                .with_related(self.definition_span(name, old.first), "first defined here")
                .into());
        }
        if self.scopes.has_forward() {
            for forward in self.scopes.take_forward(name) {
                self.bind_forward(name, forward, first, count)?;
            }
        }
        Ok(())
    }
    /// Moves the uses of a placeholder to the value that it stood for.
    fn bind_forward(
        &mut self,
        name: &str,
        forward: Forward,
        first: ValueId,
        count: u32,
    ) -> Result<()> {
        if forward.number >= count {
            return Err(too_few(name, count, forward.number, forward.span));
        }
        let value: ValueId = Id::from_index(first.index() + forward.number as usize);
        let (is, used) =
            (self.program.values[value].ty, self.program.values[forward.placeholder].ty);
        if is != used {
            return Err(self.type_mismatch(name, forward.span, is, used));
        }
        self.forward_uses.extend(self.program.uses(forward.placeholder));
        self.program.bind_placeholder(forward.placeholder, value);
        Ok(())
    }
    /// The value that `operand` of `op` names, which the op says has type `ty`.
    #[inline]
    pub(in crate::mlir) fn resolve_operand(
        &mut self,
        op: OpId,
        operand: PendingOperand<'a>,
        ty: TypeId,
    ) -> Result<ValueId> {
        let PendingOperand { name, number, span } = operand;
        match self.scopes.look_up(name) {
            Lookup::Defined(found) => {
                let Some(value) = self.named_with(found.first, number) else {
                    return Err(too_few(name, self.num_named(found.first), number, span));
                };
                let is = self.program.values[value].ty;
                if is != ty {
                    return Err(self.type_mismatch(name, span, is, ty));
                }
                Ok(value)
            }
            Lookup::Hidden(found) => {
                let op = self.program.op_name(op);
                let message = format!("'{op}' op using value defined outside the region");
                let hint = "the regions of functions and of manual and named computations see no \
                            values from outside: pass it as an operand";
                Err(Diagnostic::new(Code::UndefinedValue, message)
                    .at(span)
                    .with_hint(hint)
                    .with_related(self.definition_span(name, found.first), "defined here")
                    .into())
            }
            Lookup::Undefined => self.resolve_forward(operand, ty),
        }
    }
    /// The value that is `number` places behind `first`, if both have their name together: values that
    /// do stand in a row.
    #[inline]
    fn named_with(&self, first: ValueId, number: u32) -> Option<ValueId> {
        let (values, names) = (&self.program.values, &self.program.value_names);
        let value = ValueId::from_index(first.index() + number as usize);
        let has_name = names.as_slice().get(value.index()) == Some(&names[first]);
        (has_name && values[first].def() == values[value].def()).then_some(value)
    }
    /// How many values have their name together with `first`.
    #[cold]
    fn num_named(&self, first: ValueId) -> u32 {
        let mut count = 1;
        while self.named_with(first, count).is_some() {
            count += 1;
        }
        count
    }
    /// Where `name` stands in the definition of `value`.
    fn definition_span(&self, name: &str, value: ValueId) -> Span {
        let offset = self.program.value_names[value];
        Span::new(offset, offset + 1 + name.len() as u32)
    }
    fn resolve_forward(&mut self, operand: PendingOperand<'a>, ty: TypeId) -> Result<ValueId> {
        let PendingOperand { name, number, span } = operand;
        if let Some(known) = self.scopes.find_forward(name, number) {
            let is = self.program.values[known.placeholder].ty;
            if is != ty {
                return Err(self.type_mismatch(name, span, is, ty));
            }
            return Ok(known.placeholder);
        }
        if self.placeholder_op.is_none() {
            let id = self.program.strings.intern("builtin.unrealized_conversion_cast");
            self.placeholder_op = self.program.new_op_row(id, OpKind::UnrealizedConversionCast);
            self.program.op_flags[self.placeholder_op].set(OpFlags::ERASED);
        }
        let placeholder = self.program.new_placeholder(self.placeholder_op, ty);
        let isolation = self.scopes.isolation();
        self.scopes.add_forward(name, Forward { number, placeholder, span, isolation });
        Ok(placeholder)
    }
    fn type_mismatch(&self, name: &str, span: Span, is: TypeId, used: TypeId) -> Error {
        let text = |ty| self.program.text.get(self.program.types.text(ty));
        let message = format!(
            "use of value '%{name}' expects different type than prior uses: '{}' vs '{}'",
            text(used),
            text(is)
        );
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, message).at(span);
        if let Lookup::Defined(found) = self.scopes.look_up(name) {
            let place = self.definition_span(name, found.first);
            diagnostic = diagnostic.with_related(place, "defined here");
        }
        diagnostic.into()
    }
    /// Fails if names that were used in at least `isolation` isolated regions have no definition.
    pub(in crate::mlir) fn report_undefined(&mut self, isolation: u32) -> Result<()> {
        if !self.scopes.has_forward() {
            return Ok(());
        }
        let pending = self.scopes.pending();
        let undefined: Vec<_> =
            pending.into_iter().filter(|(_, use_)| use_.isolation >= isolation).collect();
        let values = if undefined.is_empty() { Vec::new() } else { self.scopes.visible() };
        let mut diagnostics = Vec::new();
        for (name, forward) in undefined.into_iter().take(100) {
            let message = format!("use of undeclared SSA value name: %{name}");
            let mut diagnostic = Diagnostic::new(Code::UndefinedValue, message).at(forward.span);
            if diagnostics.len() < 10 {
                let visible = values.iter().take(10_000).map(|&value| {
                    let offset = self.program.value_names[value];
                    crate::mlir::names::text::ssa_name_at(self.cursor.text(), offset)
                        .trim_start_matches('%')
                });
                diagnostic.hint = suggest::hint(name, visible, |name| format!("%{name}"));
            }
            diagnostics.push(diagnostic);
        }
        Error::check(diagnostics)
    }
    /// Uses that came before their definition have to be in another block of the same region, or in
    /// a region without order.
    pub(in crate::mlir) fn check_dominance(&self) -> Result<()> {
        for &slot in &self.forward_uses {
            let operand = &self.program.operands[slot];
            let value = operand.value;
            let Some(definition) = self.program.defining_op(value) else { continue };
            let block = self.program.ops[definition].parent;
            let region =
                |block: BlockId| block.get().map(|block| self.program.blocks[block].region);
            let mut user = operand.owner;
            let mut is_hidden = false;
            while self.program.ops[user].parent.is_some()
                && region(self.program.ops[user].parent) != region(block)
            {
                let Some(parent) = self.program.parent_op(user) else { break };
                let traits = self.op_traits(parent);
                is_hidden |= traits.has(OpTraits::ISOLATED);
                user = parent;
            }
            let in_order = block.is_some()
                && self.program.ops[user].parent == block
                && self.has_order(self.program.block_parent_op(block));
            if is_hidden || in_order {
                let place = self.program.operand_texts[slot];
                let name = crate::mlir::names::text::ssa_name_at(self.cursor.text(), place);
                let message = format!("{name} is used before it is defined");
                let span = Span::new(place, place + name.len() as u32);
                let defined = self.program.value_names[value];
                return Err(Diagnostic::new(Code::UndefinedValue, message)
                    .at(span)
                    .with_related(Span::new(defined, defined + 1), "defined here")
                    .into());
            }
        }
        Ok(())
    }
    pub(in crate::mlir) fn op_traits(&self, op: OpId) -> OpTraits {
        crate::ir::OpInfo::by_name(self.program.op_name(op))
            .map_or(OpTraits::NONE, |info| info.traits)
    }
    /// Whether the ops in the regions of `op` run one after the other.
    fn has_order(&self, op: OpId) -> bool {
        self.program.kind(op) != OpKind::Module
            && crate::ir::OpInfo::by_name(self.program.op_name(op)).is_some()
    }
}

fn too_few(name: &str, count: u32, number: u32, span: Span) -> Error {
    let message = format!("%{name} names {count} values, so there is no %{name}#{number}");
    Diagnostic::new(Code::UndefinedValue, message).at(span).into()
}
