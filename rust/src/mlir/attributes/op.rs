//! The attributes of an op in generic or custom syntax.
//!
//! In custom syntax attributes are among the operands, as `dims = [1, 0]`; here they get the names and
//! forms of the generic form, `permutation = array<i64: 1, 0>`.

use super::conv_dims::conv_dims;
use super::cursor::{Aliases, AttrCursor};
use super::generic_names::generic_name;
use super::value::{AttrValue, Field, Fields};
use super::window::window;
use crate::index::{OpId, SignatureId};
use crate::ir::{OpTraits, Program, Span};

/// The attributes that all ops with this signature have, by their names in the generic form.
pub fn signature_attributes(program: &Program, id: SignatureId) -> Fields<'_> {
    let signature = &program.signatures()[id];
    attributes(program, signature.example, signature.syntax)
}

/// Most ops have at most this many attributes in custom syntax.
const USUAL_FIELDS: usize = 3;

/// The attributes of `op`; `syntax` is its text from its name to its first region or type.
pub fn attributes<'a, F: Field<'a>>(program: &'a Program, op: OpId, syntax: Span) -> Vec<F> {
    let aliases = |name: &str| alias(program, name);
    let dict = program.op_attrs(op).iter().map(|attr| {
        let value = AttrValue::parse_with(program.text().get(attr.value), &aliases);
        F::new(program.str(attr.name), value)
    });
    let mut fields: Vec<F> = Vec::with_capacity(dict.len() + USUAL_FIELDS);
    fields.extend(dict);
    let (name, text) = (program.op_name(op), program.text().get(syntax));
    // The custom syntax of Shardy's ops is stored as shardings and payloads.
    if name.starts_with("sdy.") || name.starts_with("mpmd.") {
        return fields;
    }
    // In the generic form the name is quoted, and all attributes are in the dictionaries.
    let starts_with_operand = text.as_bytes().starts_with(b" %");
    let is_generic = || text.starts_with('"') || is_after_quote(program, syntax);
    if text.is_empty() || !starts_with_operand && is_generic() {
        return fields;
    }
    let text = from_last_operand(program, op, syntax, text);
    // The text is the last part of the syntax.
    let start = syntax.end.saturating_sub(text.len() as u32);
    let dict = program.op_dict_span(op).filter(|dict| !dict.is_empty() && dict.start >= start);
    let dict = dict.map(|dict| [dict.start, dict.end].map(|place| (place - start) as usize));
    syntax_attributes(name, text, dict, &aliases, &mut fields);
    fields
}

/// The part of `text`, the custom syntax of `op` at `syntax`, from its last operand on, if it
/// starts with operands. There are no attributes between these.
fn from_last_operand<'a>(program: &Program, op: OpId, syntax: Span, text: &'a str) -> &'a str {
    let last = program.operand_names(op).last().and_then(|last| last.checked_sub(syntax.start));
    let rest = last.and_then(|start| text.get(start as usize..));
    let first = |text: &str| text.as_bytes().first().copied();
    match rest {
        Some(rest) if first(rest) == Some(b'%') => {
            if first(text.trim_ascii_start()) == Some(b'%') {
                rest
            } else {
                text
            }
        }
        _ => text,
    }
}

/// The attribute `name` of `op`, in generic or custom syntax.
pub fn op_attribute<'a>(program: &'a Program, op: OpId, name: &str) -> Option<AttrValue<'a>> {
    let in_dictionary = |op: OpId| {
        let text = program.attr(op, name)?;
        Some(AttrValue::parse_with(text, &|name| alias(program, name)))
    };
    in_dictionary(op).or_else(|| {
        let id = program.signature(op).get()?;
        in_dictionary(program.signatures()[id].example).or_else(|| {
            let mut fields = signature_attributes(program, id).into_iter();
            fields.find(|(other, _)| *other == name).map(|(_, value)| value)
        })
    })
}

/// All attributes of `op` by their names in the generic form; the value of a constant is `value`.
pub fn op_attributes(program: &Program, op: OpId) -> Fields<'_> {
    let mut fields = attributes(program, op, Span::EMPTY);
    if let Some(id) = program.signature(op).get() {
        // Attributes with a dialect in their name are not part of a signature.
        for (name, value) in signature_attributes(program, id) {
            if !name.contains('.') && fields.iter().all(|(own, _)| *own != name) {
                fields.push((name, value));
            }
        }
    } else if is_constant(program, op) && fields.iter().all(|(name, _)| *name != "value") {
        fields.push(("value", constant(program, op)));
    }
    fields
}

/// The value of `op`, a constant.
pub fn constant(program: &Program, op: OpId) -> AttrValue<'_> {
    AttrValue::parse_with(program.constant_text(op), &|name| alias(program, name))
}

fn is_constant(program: &Program, op: OpId) -> bool {
    program.has_traits(op, OpTraits::CONSTANT_LIKE)
}

/// The definition of the alias `name`.
fn alias<'a>(program: &'a Program, name: &str) -> Option<&'a str> {
    let id = program.strings().find(name)?;
    program.alias(id).map(|span| program.text().get(span))
}

fn is_after_quote(program: &Program, syntax: Span) -> bool {
    let before = Span::new(syntax.start.saturating_sub(1), syntax.start);
    syntax.start > 0 && program.text().get(before) == "\""
}

/// Adds to `fields` the attributes in `text`, the custom syntax of an op called `name`, from its
/// name to its type. The dictionary in braces is skipped, directly if its start and its end are
/// known (`dict`).
fn syntax_attributes<'a, F: Field<'a>>(
    name: &str,
    text: &'a str,
    dict: Option<[usize; 2]>,
    aliases: Aliases<'_, 'a>,
    fields: &mut Vec<F>,
) {
    let cursor = AttrCursor::new(text, aliases);
    let num_before = fields.len();
    let mut reader = Reader { name, cursor, dict, fields, num_before };
    while reader.cursor.peek().is_some() {
        if reader.step().is_none() {
            reader.cursor.skip_char();
        }
    }
}

struct Reader<'r, 'a, F> {
    name: &'r str,
    cursor: AttrCursor<'r, 'a>,
    /// The start and end of the dictionary, if known.
    dict: Option<[usize; 2]>,
    fields: &'r mut Vec<F>,
    /// The number of fields at the start, which are not from the custom syntax.
    num_before: usize,
}

impl<'a, F: Field<'a>> Reader<'_, 'a, F> {
    fn put(&mut self, name: &'a str, value: AttrValue<'a>) {
        self.fields.push(F::new(name, value));
    }

    /// Parses one item: an operand, an attribute, a dictionary. `None` if it is something else.
    fn step(&mut self) -> Option<()> {
        match self.cursor.peek()? {
            b'%' => self.cursor.skip_values(),
            b'{' => match self.dict {
                Some([start, end]) if start == self.cursor.place => self.cursor.place = end,
                _ => self.cursor.balanced()?,
            },
            b'#' if self.name == "stablehlo.compare" => {
                let value = self.cursor.value()?;
                self.put_of_comparison(value);
            }
            b'"' if self.name == "stablehlo.compare" => {
                let value = self.cursor.case()?;
                self.put_of_comparison(value);
            }
            b'@' => {
                let target = self.cursor.symbol()?;
                self.put("call_target_name", AttrValue::Str(target));
            }
            b'"' => {
                let text = self.cursor.string()?;
                self.put("name", AttrValue::Str(text));
            }
            b'[' => self.brackets()?,
            byte if byte.is_ascii_alphabetic() || byte == b'_' => self.word()?,
            _ => return None,
        }
        Some(())
    }

    /// `[0:4, 1:8:2]` of a slice, `[1]` of a tuple element.
    fn brackets(&mut self) -> Option<()> {
        if self.name == "stablehlo.get_tuple_element" {
            let index = *self.cursor.ints()?.first()?;
            self.put("index", AttrValue::Int(index));
            return Some(());
        }
        let ranges = self.cursor.list("[", "]", |cursor| {
            let start = cursor.int()?;
            let limit = if cursor.eat(":") { cursor.int()? } else { start };
            let stride = if cursor.eat(":") { cursor.int()? } else { 1 };
            Some([start, limit, stride])
        })?;
        for (at, name) in ["start_indices", "limit_indices", "strides"].into_iter().enumerate() {
            let values = ranges.iter().map(|range| range[at]).collect();
            self.put(name, AttrValue::Ints(values));
        }
        Some(())
    }

    /// A bare word, or `word = value`.
    fn word(&mut self) -> Option<()> {
        let word = self.cursor.word()?;
        if !self.cursor.eat("=") {
            match (self.name, word) {
                ("stablehlo.compare", _) => self.put_of_comparison(AttrValue::Keyword(word)),
                ("chlo.scan" | "mhlo.scan", "inits") => self.put_segments(),
                _ => {}
            }
            return Some(());
        }
        match (self.name, word) {
            (_, "batching_dims" | "contracting_dims") => self.dot_dims(word),
            (_, "precision") => {
                let cases = self.cursor.list("[", "]", AttrCursor::case)?;
                self.put("precision_config", AttrValue::Array(cases));
                Some(())
            }
            ("stablehlo.dot_general", "algorithm") => self.dot_algorithm(),
            (_, "dim_numbers") => {
                let dims = conv_dims(&mut self.cursor)?;
                self.put("dimension_numbers", dims);
                Some(())
            }
            (_, "window") => {
                let lists = window(&mut self.cursor)?;
                self.fields.extend(lists.into_iter().map(|(name, list)| F::new(name, list)));
                Some(())
            }
            ("stablehlo.reduce_precision", "format") => self.float_format(),
            _ => {
                let value = self.keyed_value(word)?;
                self.put(generic_name(self.name, word), value);
                Some(())
            }
        }
    }

    /// Adds the direction of a comparison, or the comparison type, which comes after the direction.
    fn put_of_comparison(&mut self, value: AttrValue<'a>) {
        let has_direction = self.fields.len() > self.num_before;
        self.put(if has_direction { "compare_type" } else { "comparison_direction" }, value);
    }

    /// Adds `operandSegmentSizes`: the number of values before the word just read, and in the list
    /// after it.
    fn put_segments(&mut self) {
        let (before, after) = self.cursor.text.split_at(self.cursor.place);
        let list = after.split_once(')').map_or(after, |(list, _)| list);
        let count = |text: &str| text.bytes().filter(|&byte| byte == b'%').count() as i64;
        let sizes = [count(before), count(list)];
        self.put("operandSegmentSizes", AttrValue::Ints(sizes.into_iter().collect()));
    }

    fn keyed_value(&mut self, word: &str) -> Option<AttrValue<'a>> {
        match word {
            "type" | "distribution" | "algorithm" if self.cursor.peek() != Some(b'#') => {
                self.cursor.case()
            }
            _ => match self.cursor.int_list(b'[', b']') {
                Some(ints) => Some(AttrValue::Ints(ints)),
                None => match self.cursor.value()? {
                    AttrValue::Array(items) => Some(AttrValue::DenseArray(items)),
                    value => Some(value),
                },
            },
        }
    }

    /// `[0] x [1]`, into `dot_dimension_numbers`.
    fn dot_dims(&mut self, word: &str) -> Option<()> {
        let lhs = AttrValue::Ints(self.cursor.int_list(b'[', b']')?);
        self.cursor.eat("x").then_some(())?;
        let rhs = AttrValue::Ints(self.cursor.int_list(b'[', b']')?);
        let names = if word == "batching_dims" {
            ["lhs_batching_dimensions", "rhs_batching_dimensions"]
        } else {
            ["lhs_contracting_dimensions", "rhs_contracting_dimensions"]
        };
        if self.fields.last().map(F::name) != Some("dot_dimension_numbers") {
            let fields = Vec::with_capacity(4);
            let name = "stablehlo.dot".into();
            self.put("dot_dimension_numbers", AttrValue::Struct { name, fields });
        }
        if let Some(AttrValue::Struct { fields, .. }) = self.fields.last_mut().map(F::value_mut) {
            fields.extend([(names[0], lhs), (names[1], rhs)]);
        }
        Some(())
    }

    /// `<lhs_precision_type = tf32, ...>`.
    fn dot_algorithm(&mut self) -> Option<()> {
        let fields = self.cursor.list("<", ">", |cursor| {
            let name = cursor.word()?;
            cursor.eat("=").then_some(())?;
            Some((name, cursor.value()?))
        })?;
        self.put("algorithm", AttrValue::Struct { name: "stablehlo.dot_algorithm".into(), fields });
        Some(())
    }

    /// `e5m10`.
    fn float_format(&mut self) -> Option<()> {
        let (exponent, mantissa) = self.cursor.word()?.strip_prefix('e')?.split_once('m')?;
        self.put("exponent_bits", AttrValue::Int(exponent.parse().ok()?));
        self.put("mantissa_bits", AttrValue::Int(mantissa.parse().ok()?));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(name: &str, text: &'a str) -> Fields<'a> {
        let mut fields = Vec::new();
        syntax_attributes(name, text, None, &|_| None, &mut fields);
        fields
    }
    fn ints(fields: &Fields<'_>, name: &str) -> Option<Vec<i64>> {
        fields.iter().find(|(field, _)| *field == name)?.1.as_ints()
    }

    #[test]
    fn keyed_attributes_get_their_generic_names() {
        let fields = read("stablehlo.transpose", " %0#1, dims = [1, 0] {a = 3}");
        assert_eq!(ints(&fields, "permutation"), Some(vec![1, 0]));
        assert_eq!(fields.len(), 1);
        let fields = read("stablehlo.pad", " %a, %b, low = [0], high = [-1], interior = [2]");
        assert_eq!(ints(&fields, "edge_padding_high"), Some(vec![-1]));
        let fields = read(
            "stablehlo.reduce",
            "(%a init: %b) applies stablehlo.add across dimensions = [1, 2]",
        );
        assert_eq!(ints(&fields, "dimensions"), Some(vec![1, 2]));
        for case in ["FFT", "\"FFT\"", "#stablehlo<fft_type FFT>"] {
            let text = format!(" %a, type = {case}, length = [4]");
            let fields = read("stablehlo.fft", &text);
            assert_eq!(fields[0], ("fft_type", AttrValue::Keyword("FFT")));
        }
        let fields = read("stablehlo.fft", " %a, type = FFT, length = [4]");
        assert_eq!(ints(&fields, "fft_length"), Some(vec![4]));
        let fields = read("stablehlo.concatenate", " %a, %b, dim = 1");
        assert_eq!(fields, [("dimension", AttrValue::Int(1))]);
        let fields = read("chlo.top_k", "(%a, k = 8)");
        assert_eq!(fields, [("k", AttrValue::Int(8))]);
        let fields = read("chlo.scan", "(%a, %b#1) inits (%c) dimension=1");
        assert_eq!(ints(&fields, "operandSegmentSizes"), Some(vec![2, 1]));
        assert_eq!(fields[1], ("dimension", AttrValue::Int(1)));
    }

    #[test]
    fn special_syntaxes() {
        let text = " %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1], \
                    precision = [DEFAULT, HIGHEST], algorithm = <lhs_precision_type = tf32>";
        let fields = read("stablehlo.dot_general", text);
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["dot_dimension_numbers", "precision_config", "algorithm"]);
        assert_eq!(fields[0].1.int_list_field("lhs_contracting_dimensions"), Some(vec![2]));
        assert_eq!(fields[0].1.int_list_field("rhs_batching_dimensions"), Some(vec![0]));

        let fields = read("stablehlo.slice", " %0 [0:4, 1:8:2]");
        assert_eq!(ints(&fields, "start_indices"), Some(vec![0, 1]));
        assert_eq!(ints(&fields, "strides"), Some(vec![1, 2]));

        let text = "(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], \
                    window = {stride = [2, 2], pad = [[0, 1], [2, 3]], reverse = [false, true]} \
                    {batch_group_count = 1 : i64}";
        let fields = read("stablehlo.convolution", text);
        assert_eq!(fields[0].1.int_list_field("output_spatial_dimensions"), Some(vec![1, 2]));
        assert_eq!(ints(&fields, "padding"), Some(vec![0, 1, 2, 3]));
        assert_eq!(ints(&fields, "window_strides"), Some(vec![2, 2]));

        let fields = read("stablehlo.custom_call", " @\"a b\"(%0) {x = 1}");
        assert_eq!(fields, [("call_target_name", AttrValue::Str("a b".into()))]);
        let fields = read("stablehlo.compare", "  EQ, %0, %1,  FLOAT");
        assert_eq!(fields[1], ("compare_type", AttrValue::Keyword("FLOAT")));
        let fields = read("stablehlo.reduce_precision", " %0, format = e5m10");
        assert_eq!(
            fields,
            [("exponent_bits", AttrValue::Int(5)), ("mantissa_bits", AttrValue::Int(10))]
        );
    }

    #[test]
    fn nonsense_ends() {
        for text in ["= = [", "window = {", "batching_dims = [0] y", "[0:", "%", "é%é@", "{{{"] {
            read("stablehlo.dot_general", text);
        }
    }
}
