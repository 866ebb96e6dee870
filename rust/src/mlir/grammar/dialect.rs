//! Attributes and types of dialects: aliases, `#dialect.name<...>`, `!dialect<name ...>`.
//!
//! As in MLIR, the end of the body is first found by its brackets; then the dialect parses the body
//! as far as it knows it, and ignores the rest.

use super::enumerations::{enumeration, ACCURACY_MODES};
use super::position::Grammar;
use super::registered_dialects::{registered, unknown, Has};
use super::types::{alias_name, TypeKind};
use crate::attribute::{self, Form};
use crate::error::{Code, Diagnostic, Result, Span};
use crate::mlir::cursor::syntax;

/// The name of an attribute or type of a dialect.
struct Symbol<'a> {
    dialect: &'a str,
    /// Its name within the dialect.
    name: &'a str,
    span: Span,
    /// The start of what follows the name, and the end of the attribute or type.
    rest: usize,
    end: usize,
}

impl<'a> Grammar<'_, 'a> {
    /// `#alias`, `#dialect.name<...>` or `#dialect<name ...>`, and a type.
    pub(super) fn dialect_attribute(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        let Some(symbol) = self.symbol("attribute")? else { return Ok(()) };
        match (symbol.dialect, symbol.name) {
            ("sdy", "manual_axes" | "") if symbol.end > symbol.rest => {
                attribute::parse_manual_axes(self.cursor.since(start), start as u32)?;
            }
            (dialect, name) => {
                check_name(&symbol, "attribute")?;
                self.cursor.pos = symbol.rest;
                match dialect {
                    "stablehlo" | "chlo" => self.known_attribute(name)?,
                    "mpmd" => self.mpmd_attribute(name)?,
                    _ => {}
                }
            }
        }
        self.cursor.pos = symbol.end;
        if symbol.dialect == "sdy" && self.reads_shardy {
            self.check_shardy(symbol.name, start)?;
        }
        self.optional_type()
    }
    /// Checks the attribute of Shardy called `name` from `start` to here.
    fn check_shardy(&self, name: &str, start: usize) -> Result<()> {
        let text = self.cursor.since(start);
        // As in the reference, the rest of the dialect's brackets is ignored.
        let form = Form::of_name(name).filter(|_| text.starts_with("#sdy."));
        let shardy = self.shardy();
        let find = |form| attribute::syntax_error(form, text, start as u32, shardy);
        form.and_then(find).map_or(Ok(()), Err)
    }
    /// `!alias`, `!dialect.name<...>` or `!dialect<...>`.
    pub(super) fn dialect_type(&mut self) -> Result<()> {
        let Some(symbol) = self.symbol("type")? else { return Ok(()) };
        check_name(&symbol, "type")?;
        self.cursor.pos = symbol.rest;
        match (symbol.dialect, symbol.name) {
            ("stablehlo", "future") => self.future()?,
            ("mpmd", "mesh_tensor") => self.mesh_tensor()?,
            _ => {}
        }
        self.cursor.pos = symbol.end;
        Ok(())
    }
    /// The name after `#` or `!` and its brackets; `None` if it is an alias, which has to be
    /// defined.
    fn symbol(&mut self, kind: &str) -> Result<Option<Symbol<'a>>> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let whole = alias_name(self.cursor);
        let rest = self.cursor.pos;
        if whole.is_empty() {
            let word = if kind == "type" { "type identifier" } else { "attribute name" };
            return Err(syntax(self.cursor.here(), format!("invalid {word}")).into());
        }
        let has_body = self.cursor.peek() == b'<';
        if !has_body && !whole.contains('.') {
            return self.alias(start).map(|()| None);
        }
        if has_body {
            self.cursor.skip_body()?;
        }
        let end = self.cursor.pos;
        if let Some((dialect, name)) = whole.split_once('.') {
            let span = Span::new((start + 2 + dialect.len()) as u32, rest as u32);
            return Ok(Some(Symbol { dialect, name, span, rest, end }));
        }
        // The name is inside the brackets.
        self.cursor.pos = rest + 1;
        self.cursor.skip_space();
        let at = self.cursor.pos;
        let name = self.cursor.name();
        let (span, rest) = (self.cursor.here_from(at), self.cursor.pos);
        self.cursor.pos = end;
        Ok(Some(Symbol { dialect: whole, name, span, rest, end }))
    }
    fn alias(&mut self, start: usize) -> Result<()> {
        let name = self.cursor.since(start);
        if self.is_alias(name) {
            return Ok(());
        }
        let message = format!("undefined symbol alias id '{}'", &name[1..]);
        let span = self.cursor.span_since(start);
        Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into())
    }
    /// The text after the name of an attribute of `StableHLO` or CHLO.
    fn known_attribute(&mut self, name: &str) -> Result<()> {
        if let Some(enumeration) = enumeration(name) {
            return self.enumeration(enumeration);
        }
        match name {
            "conv" => self.conv(),
            // MLIR accepts it without brackets.
            "bounds" if self.cursor.next_byte() != b'<' => Ok(()),
            "bounds" => self.list(b'<', b'>', Self::size),
            "sub_axis_info" => self.sub_axis(),
            "result_accuracy_mode" => {
                self.cursor.expect(b'<')?;
                self.case("ResultAccuracyMode", &ACCURACY_MODES)?;
                self.cursor.expect(b'>')
            }
            name => self.structure(name),
        }
    }
    /// `<types>`: tensors of known rank.
    fn future(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        loop {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            self.ty()?;
            if self.kind_since(start) != TypeKind::Tensor {
                let text = self.cursor.since(start);
                let message =
                    format!("future element type must be a ranked tensor, but got '{text}'");
                return Err(syntax(self.cursor.span_since(start), message).into());
            }
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b'>');
            }
        }
    }
    /// `[1, -2]`.
    pub fn ints(&mut self) -> Result<()> {
        self.list(b'[', b']', Self::int)
    }
    /// An integer of 64 bits.
    pub fn int(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if !matches!(self.cursor.peek(), b'-' | b'0'..=b'9') {
            return Err(self.cursor.expected("integer value"));
        }
        let is_integer = self.cursor.integer().is_ok();
        if self.cursor.peek() == b'.' {
            self.cursor.pos = start;
            return Err(self.cursor.expected("integer value"));
        }
        if is_integer {
            return Ok(());
        }
        Err(syntax(self.cursor.here_from(start), "integer value too large").into())
    }
}

/// Checks that a dialect of the reference has an attribute or type of this name.
fn check_name(symbol: &Symbol<'_>, kind: &str) -> Result<()> {
    let Some(dialect) = registered(symbol.dialect) else { return Ok(()) };
    let has = if kind == "type" { dialect.types } else { dialect.attributes };
    let message = match has {
        Has::Some if !symbol.name.is_empty() => return Ok(()),
        Has::Only(names) if names.contains(&symbol.name) => return Ok(()),
        Has::Only(_) | Has::Some if symbol.name.is_empty() => "expected valid keyword".to_owned(),
        _ => unknown(dialect, kind, symbol.name),
    };
    let mut problem = syntax(symbol.span, message);
    if let Has::Only(names) = has {
        problem = problem.with_hint(format!("there are {}", names.join(", ")));
    }
    Err(problem.into())
}
