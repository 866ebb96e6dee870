//! Binds SSA names to values, including names that are used before they are defined.

use super::scopes::{Forward, Lookup, Scopes};
use super::text::ssa_name_at;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, Id, OpId, TypeId, UseId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::suggest;

/// A use of a name in the text, `%x` or `%x#2`.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct NameUse<'a> {
    /// The name without `%`.
    pub name: &'a str,
    /// The number after `#`, 0 if there is none.
    pub number: u32,
    /// Its span.
    pub span: Span,
}

/// The names of a program that is being read, and the values they are bound to.
pub(in crate::mlir) struct Names<'a> {
    text: &'a str,
    scopes: Scopes<'a>,
    /// Uses that came before the definition and have been moved to the defined value.
    forward_uses: Vec<UseId>,
    /// The op whose results are the placeholders; `NONE` if there are none yet.
    placeholder_op: OpId,
}

impl<'a> Names<'a> {
    /// No names, in a program with this text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            scopes: Scopes::new(text),
            forward_uses: Vec::new(),
            placeholder_op: OpId::NONE,
        }
    }
    /// Reserves memory for this many names that are not numbers.
    pub fn reserve(&mut self, count: usize) {
        self.scopes.reserve(count);
    }
    /// Enters a region.
    pub fn enter(&mut self, is_isolated: bool) {
        self.scopes.enter(is_isolated);
    }
    /// Leaves the innermost region; `is_isolated` is whether its op is isolated from above. Fails
    /// if names that were used in an isolated region have no definition.
    pub fn leave(&mut self, program: &Program, is_isolated: bool) -> Result<()> {
        if is_isolated {
            self.report_undefined(program, self.scopes.isolation())?;
        }
        self.scopes.leave();
        Ok(())
    }
    /// Leaves the outermost region; fails if any name has no definition.
    pub fn leave_last(&mut self, program: &Program) -> Result<()> {
        self.report_undefined(program, 0)?;
        self.scopes.leave();
        Ok(())
    }
    /// The id of the innermost region.
    pub fn region(&self) -> u32 {
        self.scopes.current()
    }
    /// Binds `name` to `count` existing values from `first` on, and moves earlier uses of it to
    /// them.
    #[inline]
    pub fn define(
        &mut self,
        program: &mut Program,
        name: &'a str,
        first: ValueId,
        count: u32,
    ) -> Result<()> {
        if let Err(old) = self.scopes.define(name, first) {
            let message = format!("redefinition of SSA value '%{name}'");
            return Err(Diagnostic::new(Code::RedefinedValue, message)
                .at(definition_span(program, name, first))
                .with_related(definition_span(program, name, old.first), "first defined here")
                .into());
        }
        if self.scopes.has_forward() {
            for forward in self.scopes.take_forward(name) {
                self.bind_forward(program, name, forward, first, count)?;
            }
        }
        Ok(())
    }
    /// Whether `name` was used and is not defined yet.
    pub fn is_awaited(&self, name: &str) -> bool {
        self.scopes.has_forward() && self.scopes.is_forward(name)
    }
    /// Moves the uses of a placeholder to the value that is now defined.
    fn bind_forward(
        &mut self,
        program: &mut Program,
        name: &str,
        forward: Forward,
        first: ValueId,
        count: u32,
    ) -> Result<()> {
        if forward.number >= count {
            return Err(too_few(UNDECLARED, (name, count), forward.number, forward.span));
        }
        let value: ValueId = Id::from_index(first.index() + forward.number as usize);
        let (is, used) = (program.type_of(value), program.type_of(forward.placeholder));
        if is != used {
            let [is, used] = [is, used].map(|ty| program.type_text(ty));
            let message = format!(
                "definition of SSA value '%{name}#{}' has type '{is}', and was used with type '{used}'",
                forward.number
            );
            return Err(Diagnostic::new(Code::TypeMismatch, message)
                .at(definition_span(program, name, first))
                .with_related(forward.span, "previously used here")
                .into());
        }
        self.forward_uses.extend(program.uses(forward.placeholder));
        program.bind_placeholder(forward.placeholder, value);
        Ok(())
    }
    /// The value for `operand` of `op`, which has to have type `ty`.
    #[inline]
    pub fn resolve(
        &mut self,
        program: &mut Program,
        op: OpId,
        operand: NameUse<'a>,
        ty: TypeId,
    ) -> Result<ValueId> {
        let NameUse { name, number, span } = operand;
        match self.scopes.look_up(name) {
            Lookup::Defined(found) => {
                let Some(value) = program.named_with(found.first, number) else {
                    let count = num_named(program, found.first);
                    return Err(too_few(INVALID_NUMBER, (name, count), number, span));
                };
                let is = program.type_of(value);
                if is != ty {
                    return Err(self.type_mismatch(program, name, span, is, ty));
                }
                Ok(value)
            }
            Lookup::Hidden(found) => {
                let op = program.op_name(op);
                let message = format!("'{op}' op using value defined outside the region");
                let hint = "the regions of functions and of manual and named computations see no \
                            values from outside: pass it as an operand";
                Err(Diagnostic::new(Code::UndefinedValue, message)
                    .at(span)
                    .with_hint(hint)
                    .with_related(definition_span(program, name, found.first), "defined here")
                    .into())
            }
            Lookup::Undefined => self.resolve_forward(program, operand, ty),
        }
    }
    fn resolve_forward(
        &mut self,
        program: &mut Program,
        operand: NameUse<'a>,
        ty: TypeId,
    ) -> Result<ValueId> {
        let NameUse { name, number, span } = operand;
        if let Some(known) = self.scopes.find_forward(name, number) {
            let is = program.type_of(known.placeholder);
            if is != ty {
                return Err(self.type_mismatch(program, name, span, is, ty));
            }
            return Ok(known.placeholder);
        }
        if self.placeholder_op.is_none() {
            let id = program.intern("builtin.unrealized_conversion_cast");
            self.placeholder_op = program.push_op(id, OpKind::UnrealizedConversionCast);
            program.discard_op(self.placeholder_op);
        }
        let placeholder = program.new_placeholder(self.placeholder_op, ty);
        let isolation = self.scopes.isolation();
        self.scopes.add_forward(name, Forward { number, placeholder, span, isolation });
        Ok(placeholder)
    }
    fn type_mismatch(
        &self,
        program: &Program,
        name: &str,
        span: Span,
        is: TypeId,
        used: TypeId,
    ) -> Error {
        let text = |ty| program.type_text(ty);
        let message = format!(
            "use of value '%{name}' expects different type than prior uses: '{}' vs '{}'",
            text(used),
            text(is)
        );
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, message).at(span);
        if let Lookup::Defined(found) = self.scopes.look_up(name) {
            let place = definition_span(program, name, found.first);
            diagnostic = diagnostic.with_related(place, "defined here");
        }
        diagnostic.into()
    }
    /// Fails if names that were used in at least `isolation` isolated regions have no definition.
    fn report_undefined(&self, program: &Program, isolation: u32) -> Result<()> {
        if !self.scopes.has_forward() {
            return Ok(());
        }
        let pending = self.scopes.pending();
        let undefined: Vec<_> =
            pending.into_iter().filter(|(_, use_)| use_.isolation >= isolation).collect();
        let values = if undefined.is_empty() { Vec::new() } else { self.scopes.visible() };
        let mut diagnostics = Vec::new();
        for (name, forward) in undefined.into_iter().take(100) {
            let message = format!("{UNDECLARED}: %{name}");
            let mut diagnostic = Diagnostic::new(Code::UndefinedValue, message).at(forward.span);
            if diagnostics.len() < 10 {
                let visible = values.iter().take(10_000).map(|&value| {
                    let offset = program.printing().value_name(value);
                    ssa_name_at(self.text, offset).trim_start_matches('%')
                });
                diagnostic.hint = suggest::hint(name, visible, |name| format!("%{name}"));
            }
            diagnostics.push(diagnostic);
        }
        Error::check(diagnostics)
    }
    /// Checks that uses before the definition are in another block of the same region, or in a
    /// graph region.
    pub fn check_dominance(&self, program: &Program) -> Result<()> {
        let wrong = self.forward_uses.iter().filter(|&&slot| comes_too_early(program, slot));
        // MLIR reports the first error.
        let place_of = |slot: UseId| program.printing().operand_name(slot);
        let Some(&slot) = wrong.min_by_key(|&&slot| place_of(slot)) else { return Ok(()) };
        let user = program.user(slot);
        let index = program.op_uses(user).position(|own| own == slot).unwrap_or(0);
        let name = ssa_name_at(self.text, place_of(slot));
        let message = format!(
            "operand #{index} does not dominate this use: {name} is used before it is defined"
        );
        let span = Span::new(place_of(slot), place_of(slot) + name.len() as u32);
        let defined = program.printing().value_name(program.used_value(slot));
        Err(Diagnostic::new(Code::UndefinedValue, message)
            .at(span)
            .with_related(Span::new(defined, defined + 1), "defined here")
            .into())
    }
}

/// Whether `slot`, which is before the definition of its value in the text, violates dominance.
fn comes_too_early(program: &Program, slot: UseId) -> bool {
    let (block, is_arg) = match program.def(program.used_value(slot)) {
        ValueDef::Result(op) => (program.parent_block(op), false),
        ValueDef::Arg(block) => (block, true),
    };
    let region = |block: BlockId| block.get().map(|block| program.block_region(block));
    let mut user = program.user(slot);
    let mut is_hidden = false;
    while program.parent_block(user).is_some()
        && region(program.parent_block(user)) != region(block)
    {
        let Some(parent) = program.parent_op(user) else { break };
        is_hidden |= program.has_traits(parent, OpTraits::ISOLATED);
        user = parent;
    }
    let in_order = !is_arg
        && block.is_some()
        && program.parent_block(user) == block
        && has_order(program, program.block_parent_op(block));
    is_hidden || in_order
}

/// The number of values that share their name with `first`.
#[cold]
fn num_named(program: &Program, first: ValueId) -> u32 {
    let mut count = 1;
    while program.named_with(first, count).is_some() {
        count += 1;
    }
    count
}

/// The span of `name` in the definition of `value`.
fn definition_span(program: &Program, name: &str, value: ValueId) -> Span {
    let offset = program.printing().value_name(value);
    Span::new(offset, offset + 1 + name.len() as u32)
}

/// Whether the ops in the regions of `op` are ordered (are SSACFG regions).
fn has_order(program: &Program, op: OpId) -> bool {
    program.kind(op) != OpKind::Module && program.has_traits(op, OpTraits::KNOWN)
}

/// MLIR's error for a name without a definition.
const UNDECLARED: &str = "use of undeclared SSA value name";
/// MLIR's error for a number that a defined name does not have.
const INVALID_NUMBER: &str = "reference to invalid result number";

fn too_few(what: &str, (name, count): (&str, u32), number: u32, span: Span) -> Error {
    let values = if count == 1 { "value" } else { "values" };
    let message =
        format!("{what}: %{name} names {count} {values}, so there is no %{name}#{number}");
    Diagnostic::new(Code::UndefinedValue, message).at(span).into()
}
