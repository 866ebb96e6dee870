//! Attributes of dialects: aliases, `StableHLO`'s structures and enumerations, and bracketed text.

use super::position::Grammar;
use super::types::alias_name;
use crate::attribute;
use crate::error::{Code, Diagnostic, Result};
use crate::mlir::cursor::syntax;

/// The type of a field of a structure.
#[derive(Clone, Copy)]
enum Field {
    Ints,
    Int,
    Bool,
    Type,
}
use Field::{Bool, Int, Ints, Type};

/// The structures of `StableHLO`, by name, with their fields.
const STRUCTS: [(&str, &[(&str, Field)]); 6] = [
    (
        "gather",
        &[
            ("offset_dims", Ints),
            ("collapsed_slice_dims", Ints),
            ("operand_batching_dims", Ints),
            ("start_indices_batching_dims", Ints),
            ("start_index_map", Ints),
            ("index_vector_dim", Int),
        ],
    ),
    (
        "scatter",
        &[
            ("update_window_dims", Ints),
            ("inserted_window_dims", Ints),
            ("input_batching_dims", Ints),
            ("scatter_indices_batching_dims", Ints),
            ("scatter_dims_to_operand_dims", Ints),
            ("index_vector_dim", Int),
        ],
    ),
    (
        "dot",
        &[
            ("lhs_batching_dimensions", Ints),
            ("rhs_batching_dimensions", Ints),
            ("lhs_contracting_dimensions", Ints),
            ("rhs_contracting_dimensions", Ints),
        ],
    ),
    ("channel_handle", &[("handle", Int), ("type", Int)]),
    (
        "output_operand_alias",
        &[("output_tuple_indices", Ints), ("operand_index", Int), ("operand_tuple_indices", Ints)],
    ),
    (
        "dot_algorithm",
        &[
            ("lhs_precision_type", Type),
            ("rhs_precision_type", Type),
            ("accumulation_type", Type),
            ("lhs_component_count", Int),
            ("rhs_component_count", Int),
            ("num_primitive_operations", Int),
            ("allow_imprecise_accumulation", Bool),
        ],
    ),
];
/// The structures in which every field has to be given.
const COMPLETE: [&str; 3] = ["channel_handle", "output_operand_alias", "dot_algorithm"];

/// The enumerations of `StableHLO`, with their cases.
const ENUMS: [(&str, &[&str]); 7] = [
    ("precision", &["DEFAULT", "HIGH", "HIGHEST"]),
    ("comparison_direction", &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    ("comparison_type", &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
    ("fft_type", &["FFT", "IFFT", "RFFT", "IRFFT"]),
    ("transpose", &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
    ("rng_algorithm", &["DEFAULT", "THREE_FRY", "PHILOX"]),
    ("rng_distribution", &["UNIFORM", "NORMAL"]),
];

/// The cases of the enumeration called `name`.
pub(in crate::mlir) fn cases(name: &str) -> Option<&'static [&'static str]> {
    ENUMS.iter().find(|(other, _)| *other == name).map(|(_, cases)| *cases)
}

impl Grammar<'_, '_> {
    /// `#alias`, `#dialect.name<...>` or `#dialect<name ...>`, and a type.
    pub(super) fn dialect_attribute(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let name = alias_name(self.cursor);
        if name.is_empty() {
            return Err(self.cursor.expected("attribute name"));
        }
        let has_body = self.cursor.peek() == b'<';
        if !has_body && !name.contains('.') {
            return self.alias(start);
        }
        match name.split_once('.').map_or((name, ""), |parts| parts) {
            ("stablehlo", "") => self.enumeration()?,
            ("sdy", name) if has_body && self.is_manual_axes(name) => {
                self.cursor.skip_body()?;
                attribute::parse_manual_axes(self.cursor.since(start), start as u32)?;
            }
            ("stablehlo", "conv") if has_body => self.conv()?,
            ("stablehlo", name) if STRUCTS.iter().any(|(known, _)| *known == name) => {
                self.structure(name)?;
            }
            _ if has_body => self.cursor.skip_body()?,
            _ => {}
        }
        self.optional_type()
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
    /// Whether `#sdy.<name>` with the text here is a list of manual axes.
    fn is_manual_axes(&self, name: &str) -> bool {
        let body = &self.cursor.text()[self.cursor.pos + 1..];
        let is_other = body.trim_start().starts_with(|first: char| first.is_ascii_alphabetic());
        name == "manual_axes"
            || (name.is_empty() && (!is_other || body.trim_start().starts_with("manual_axes")))
    }
    /// `<name CASE>`.
    fn enumeration(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'<')?;
        self.cursor.skip_space();
        let name = self.cursor.name();
        let Some(cases) = cases(name) else {
            self.cursor.pos = start;
            return self.cursor.skip_body();
        };
        self.case(cases)?;
        // MLIR stops parsing here too.
        self.cursor.pos = start;
        self.cursor.skip_body()
    }
    /// One of `cases`.
    pub fn case(&mut self, cases: &[&str]) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if cases.contains(&self.cursor.name()) {
            return Ok(());
        }
        self.cursor.pos = start;
        Err(self.cursor.expected(&format!("one of {}", cases.join(", "))))
    }
    /// `<field = value, ...>`, optionally with a trailing comma.
    pub fn structure(&mut self, name: &str) -> Result<()> {
        let fields = STRUCTS.iter().find(|(known, _)| *known == name).map_or(&[][..], |row| row.1);
        self.cursor.expect(b'<')?;
        let mut seen = Vec::new();
        while !self.cursor.eat(b'>') {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            let word = self.cursor.name();
            let Some((field, kind)) = fields.iter().find(|(field, _)| *field == word) else {
                self.cursor.pos = start;
                let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
                return Err(self.cursor.expected(&format!("one of {}", names.join(", "))));
            };
            if seen.contains(field) {
                let message = format!("field {field} is given twice");
                return Err(syntax(self.cursor.span_since(start), message).into());
            }
            seen.push(field);
            self.cursor.expect(b'=')?;
            match kind {
                Ints => self.sizes()?,
                Int => self.int()?,
                Bool => self.case(&["true", "false"])?,
                Type => self.ty()?,
            }
            if !self.cursor.eat(b',') {
                self.cursor.expect(b'>')?;
                break;
            }
            if COMPLETE.contains(&name) && self.cursor.next_byte() == b'>' {
                return Err(self.cursor.expected("a field"));
            }
        }
        match fields.iter().find(|(field, _)| COMPLETE.contains(&name) && !seen.contains(field)) {
            Some((field, _)) => Err(self.cursor.expected(&format!("field {field} before this"))),
            None => Ok(()),
        }
    }
    /// `<dimension numbers>`, or anything after the word `raw`.
    fn conv(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'<')?;
        if self.cursor.eat_keyword("raw") {
            self.cursor.pos = start;
            return self.cursor.skip_body();
        }
        self.conv_dims()?;
        self.cursor.expect(b'>')
    }
    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    pub fn conv_dims(&mut self) -> Result<()> {
        self.conv_list(["b", "f"])?;
        self.cursor.expect(b'x')?;
        self.conv_list(["i", "o"])?;
        self.cursor.expect_arrow()?;
        self.conv_list(["b", "f"])
    }
    /// A list with each of `letters`, and each number up to the largest, once.
    fn conv_list(&mut self, letters: [&str; 2]) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let (mut seen, mut numbers) = (Vec::new(), Vec::new());
        self.list(b'[', b']', |grammar| {
            if grammar.cursor.eat(b'?') {
                return Ok(());
            }
            let at = grammar.cursor.pos;
            match grammar.cursor.name() {
                "" => {
                    let start = grammar.cursor.pos;
                    grammar.int()?;
                    numbers.push(grammar.cursor.since(start).trim().parse().unwrap_or(usize::MAX));
                }
                letter if letters.contains(&letter) && !seen.contains(&letter) => seen.push(letter),
                _ => {
                    grammar.cursor.pos = at;
                    return Err(grammar.cursor.expected("a dim of its own"));
                }
            }
            Ok(())
        })?;
        numbers.sort_unstable();
        if seen.len() == letters.len() && numbers.iter().copied().eq(0..numbers.len()) {
            return Ok(());
        }
        let [first, second] = letters;
        let message = format!("the dims are {first}, {second} and the numbers from 0 on");
        Err(syntax(self.cursor.span_since(start), message).into())
    }
    /// `[1, -2]`.
    pub fn ints(&mut self) -> Result<()> {
        self.list(b'[', b']', Self::int)
    }
    /// `[1, ?]`.
    fn sizes(&mut self) -> Result<()> {
        self.list(
            b'[',
            b']',
            |grammar| if grammar.cursor.eat(b'?') { Ok(()) } else { grammar.int() },
        )
    }
    /// An integer of 64 bits.
    pub fn int(&mut self) -> Result<()> {
        self.cursor.integer().map(|_| ())
    }
}
