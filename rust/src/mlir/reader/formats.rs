//! Parses the text between the name of an op and its attribute dictionary, by the op's format.

use super::format_table::Part;
use super::format_table::Part::{
    Bool, Byte, Case, ConvDims, DotDims, FloatFormat, Int, Ints, Key, Operand, Operands,
    OperandsThen, Optional, Precision, PrecisionAndAlgorithm, Slices, Str, Symbol, Window,
};
use super::parser::Parser;
use crate::error::{Diagnostic, Result, Span};
use crate::index::StrId;
use crate::mlir::attributes::{AttrValue, OwnKind};
use crate::mlir::cursor::syntax;
use crate::mlir::grammar::{cases, Grammar};
use crate::mlir::meaning::in_own_syntax;

impl Parser<'_> {
    /// Reads the parts of a format.
    pub(super) fn parse_format(&mut self, op: StrId, parts: &'static [Part]) -> Result<()> {
        for part in parts {
            self.parse_part(op, *part)?;
        }
        Ok(())
    }
    fn parse_part(&mut self, op: StrId, part: Part) -> Result<()> {
        match part {
            Operand => self.parse_operand(),
            Operands => {
                let end = self.cursor.pos;
                if self.cursor.next_byte() != b'%' {
                    self.cursor.pos = end;
                    return Ok(());
                }
                loop {
                    self.parse_operand()?;
                    if !self.eat_comma() {
                        return Ok(());
                    }
                }
            }
            OperandsThen => {
                while self.cursor.next_byte() == b'%' {
                    self.parse_operand()?;
                    self.cursor.expect(b',')?;
                }
                Ok(())
            }
            Byte(byte) => self.cursor.expect(byte),
            Key(word) => self.parse_key(op, word),
            Int => match self.cursor.next_byte() {
                b'0'..=b'9' | b'-' => self.grammar().int(),
                _ => self.own_attribute(op, OwnKind::Number("i64")),
            },
            Symbol => {
                let symbol = self.cursor.symbol().map(|_| ());
                symbol.map_err(|error| in_own_syntax(self.program.str(op), error))
            }
            Str => {
                if self.cursor.next_byte() != b'"' {
                    return Err(self.cursor.expected("a string"));
                }
                self.cursor.string().map(|_| ())
            }
            Optional(parts) => {
                if self.eat_comma() {
                    return self.parse_format(op, parts);
                }
                Ok(())
            }
            Slices => {
                let slices = slices(&mut self.grammar());
                slices.map_err(|error| in_own_syntax(self.program.str(op), error))
            }
            DotDims => {
                let end = self.cursor.pos;
                if self.cursor.eat_keyword("batching_dims") {
                    self.cursor.pos = end;
                    self.parse_dot_dims(op, "batching_dims")?;
                    self.cursor.expect(b',')?;
                }
                self.parse_dot_dims(op, "contracting_dims")
            }
            Precision => {
                if self.eat_comma() {
                    return self.parse_precision(op);
                }
                Ok(())
            }
            PrecisionAndAlgorithm => self.parse_precision_and_algorithm(op),
            Case(name) => self.parse_case(op, name),
            Ints => {
                let ints = self.attribute_or(op, OwnKind::Ints, |mut grammar| grammar.ints());
                ints.map_err(|error| {
                    let mut error = in_own_syntax(self.program.str(op), error);
                    let is_of_ints =
                        |first: &&Diagnostic| first.message.contains("expected integer value");
                    if let Some(first) = error.diagnostics.first().filter(is_of_ints) {
                        // MLIR reports the error at the end of the list.
                        let end = syntax(first.span.unwrap_or(Span::EMPTY), "expected ']'");
                        error.diagnostics.push(end);
                    }
                    error
                })
            }
            Bool => match self.cursor.next_byte() {
                b'0'..=b'9' | b'-' => bit(&mut self.grammar()),
                _ => self.own_attribute(op, OwnKind::Number("i1")),
            },
            ConvDims => self.grammar().conv_dims(),
            Window => window(&mut self.grammar()),
            FloatFormat => self.parse_float_format(op),
        }
    }
    /// Steps over a comma if it is next.
    pub(super) fn eat_comma(&mut self) -> bool {
        let end = self.cursor.pos;
        let found = self.cursor.eat(b',');
        if !found {
            self.cursor.pos = end;
        }
        found
    }
    fn parse_key(&mut self, op: StrId, word: &str) -> Result<()> {
        let found = self.cursor.expect_keyword(word);
        found.map_err(|error| in_own_syntax(self.program.str(op), error))?;
        self.cursor.expect(b'=')
    }
    /// If the next byte is `#`, an attribute of this kind of the op called `op`; else what `read`
    /// reads.
    fn attribute_or(
        &mut self,
        op: StrId,
        kind: OwnKind,
        read: impl FnOnce(Grammar<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        if self.cursor.next_byte() == b'#' {
            return self.own_attribute(op, kind);
        }
        read(self.grammar())
    }
    /// An attribute of this kind of the op called `op`.
    fn own_attribute(&mut self, op: StrId, kind: OwnKind) -> Result<()> {
        let start = self.cursor.pos;
        self.grammar().attribute()?;
        let span = self.cursor.span_since(start);
        let problem = kind.problem(self.program.resolved_alias(self.text_at(span)));
        let Some(problem) = problem else { return Ok(()) };
        // MLIR's parser checks types, and its errors do not name the op.
        let names_op = !problem.starts_with("attribute type");
        let problem = syntax(span, problem).into();
        Err(if names_op { in_own_syntax(self.program.str(op), problem) } else { problem })
    }
    fn parse_case(&mut self, op: StrId, name: &'static str) -> Result<()> {
        let (own, cases) = cases(name).unwrap_or_default();
        self.attribute_or(op, OwnKind::Of(name), |mut grammar| grammar.case(own, cases))
            .map_err(|error| in_own_syntax(self.program.str(op), error))
    }
    /// `key = [0] x [1]`.
    fn parse_dot_dims(&mut self, op: StrId, key: &str) -> Result<()> {
        self.parse_key(op, key)?;
        let pair = ints_by_ints(&mut self.grammar());
        pair.map_err(|error| in_own_syntax(self.program.str(op), error))
    }
    /// `precision = [DEFAULT, HIGHEST]`.
    fn parse_precision(&mut self, op: StrId) -> Result<()> {
        self.parse_key(op, "precision")?;
        let (own, cases) = cases("precision").unwrap_or_default();
        let list = self.grammar().list(b'[', b']', |grammar| grammar.case(own, cases));
        list.map_err(|error| in_own_syntax(self.program.str(op), error))
    }
    fn parse_precision_and_algorithm(&mut self, op: StrId) -> Result<()> {
        if !self.eat_comma() {
            return Ok(());
        }
        let end = self.cursor.pos;
        let has_algorithm = self.cursor.eat_keyword("algorithm");
        self.cursor.pos = end;
        if !has_algorithm {
            self.parse_precision(op)?;
            if !self.eat_comma() {
                return Ok(());
            }
        }
        self.parse_key(op, "algorithm")?;
        self.grammar().structure("dot_algorithm")
    }
    fn parse_float_format(&mut self, op: StrId) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let word = self.cursor.name();
        let digits = |text: &str| text.parse::<i32>().is_ok() && !text.starts_with(['+', '-']);
        let parts = word.strip_prefix('e').and_then(|word| word.split_once('m'));
        if parts.is_some_and(|(exponent, mantissa)| digits(exponent) && digits(mantissa)) {
            return Ok(());
        }
        let span = self.cursor.span_since(start);
        self.cursor.pos = start;
        let error = if word.is_empty() {
            self.cursor.expected("valid keyword")
        } else {
            let message = format!("expected exponent mantissa in format e#m#, saw {word}");
            syntax(span, message).into()
        };
        Err(in_own_syntax(self.program.str(op), error))
    }
}

/// An `i1` integer.
fn bit(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    grammar.cursor.skip_space();
    let start = grammar.cursor.pos;
    grammar.int()?;
    let span = grammar.cursor.span_since(start);
    let value = AttrValue::parse(&grammar.cursor.text()[start..grammar.cursor.pos]);
    if matches!(value, AttrValue::Int(-1..=1)) {
        return Ok(());
    }
    Err(syntax(span, "integer constant out of range for attribute").into())
}

/// `[0] x [1]`
fn ints_by_ints(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    grammar.ints()?;
    grammar.cursor.expect(b'x')?;
    grammar.ints()
}

/// `[start:limit, start:limit:stride]`
fn slices(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    grammar.cursor.expect(b'[')?;
    if grammar.cursor.eat(b']') {
        return Ok(());
    }
    loop {
        slice(grammar)?;
        if grammar.cursor.eat(b']') {
            return Ok(());
        }
        grammar.cursor.expect(b',')?;
    }
}

/// `start:limit`, `start:limit:stride`.
fn slice(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    grammar.int()?;
    grammar.cursor.expect(b':')?;
    grammar.int()?;
    if grammar.cursor.eat(b':') {
        grammar.int()?;
    }
    Ok(())
}

/// `{stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}`: each at
/// most once, in any order, optionally with a trailing comma.
fn window(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    let mut left = vec!["stride", "pad", "lhs_dilate", "rhs_dilate", "reverse"];
    grammar.cursor.expect(b'{')?;
    while !grammar.cursor.eat(b'}') {
        grammar.cursor.skip_space();
        let start = grammar.cursor.pos;
        let word = grammar.cursor.name();
        let Some(at) = left.iter().position(|name| *name == word) else {
            grammar.cursor.pos = start;
            return Err(grammar.cursor.expected(&format!("one of {}", left.join(", "))));
        };
        left.remove(at);
        grammar.cursor.expect(b'=')?;
        match word {
            "pad" => grammar.list(b'[', b']', pair)?,
            "reverse" => grammar.list(b'[', b']', bool_or_int)?,
            _ => grammar.list(b'[', b']', Grammar::int)?,
        }
        if !grammar.cursor.eat(b',') {
            return grammar.cursor.expect(b'}');
        }
    }
    Ok(())
}

/// `[1, 2]`.
fn pair(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    grammar.cursor.expect(b'[')?;
    grammar.int()?;
    grammar.cursor.expect(b',')?;
    grammar.int()?;
    grammar.cursor.expect(b']')
}

fn bool_or_int(grammar: &mut Grammar<'_, '_>) -> Result<()> {
    if grammar.cursor.next_byte().is_ascii_alphabetic() {
        return grammar.case("bool", &["true", "false"]);
    }
    grammar.int()
}
