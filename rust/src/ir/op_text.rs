//! Spans of parts of an op that the tables do not have: its name, its attributes.

use super::{has_one_sharding, OpFlags, OpKind, Program, StaticShape};
use crate::error::{Diagnostic, Span};
use crate::index::{OpId, ValueId};

impl Program {
    /// The first line of `op` itself: its text without the white space and comments before it. `None`
    /// if it has no text of its own.
    pub fn op_span(&self, op: OpId) -> Option<Span> {
        let span = self.printing.ops.get(op)?.span;
        if span.is_empty() {
            return None;
        }
        let rest = without_space(self.text.get(span));
        let line = rest.find('\n').unwrap_or(rest.len());
        let start = span.end - rest.len() as u32;
        Some(Span::new(start, start + line as u32))
    }
    /// The text of `op` without the space and comments before it and without its regions, and its offset;
    /// `None` if a pass made the op.
    fn header(&self, op: OpId) -> Option<(&str, u32)> {
        let whole = self.printing.ops[op].span;
        if self.printing.flags[op].has(OpFlags::SYNTHESISED) {
            return None;
        }
        let start = self.op_span(op)?.start;
        let regions = self.op_regions(op).map(|region| self.printing.region_spans[region]);
        let body = regions.filter(|span| !span.is_empty()).map(|span| span.start).min();
        let end = body.filter(|body| (start..whole.end).contains(body));
        let span = Span::new(start, end.unwrap_or(whole.end));
        Some((self.text.get(span), span.start))
    }
    /// The span of the name of `op`, at which MLIR reports errors.
    pub fn name_span(&self, op: OpId) -> Option<Span> {
        let (text, base) = self.header(op)?;
        let mut rest = text;
        if text.starts_with('%') {
            rest = without_space(text.split_once('=')?.1);
        }
        rest = rest.strip_prefix('"').unwrap_or(rest);
        let name = self.op_name(op);
        let short = name.strip_prefix("func.").or_else(|| name.strip_prefix("builtin."));
        let mut spellings = std::iter::once(name).chain(short);
        let found = spellings.find(|spelling| rest.starts_with(spelling))?;
        let start = base + (text.len() - rest.len()) as u32;
        Some(Span::new(start, start + found.len() as u32))
    }
    /// The span of the dictionary of `op`, or the empty span where one would be inserted; `None` if a pass
    /// made the op.
    pub fn op_dict_span(&self, op: OpId) -> Option<Span> {
        let is_written = !self.printing().flags(op).has(OpFlags::SYNTHESISED);
        is_written.then(|| self.printing().op(op).dict)
    }
    /// The definition of the attribute `text` if it is an alias, else `text` itself.
    pub fn resolved_alias<'a>(&'a self, text: &'a str) -> &'a str {
        if !text.starts_with('#') {
            return text;
        }
        let body = self.strings.find(text).and_then(|name| self.alias(name));
        body.map_or(text, |body| self.text.get(body))
    }
    /// The span of the value of attribute `name` of `op`, in its dictionary or custom syntax.
    pub fn attr_span(&self, op: OpId, name: &str) -> Option<Span> {
        let (text, base) = self.header(op)?;
        let at = values_of(text, name).next()?;
        value_span(&text[at..], base + at as u32)
    }
    /// The span of the attribute that starts with one of `starts` in the text of `op`.
    pub fn attr_span_from(&self, op: OpId, starts: &[&str]) -> Option<Span> {
        let (text, base) = self.header(op)?;
        let at = starts.iter().find_map(|start| text.find(start))?;
        value_span(&text[at..], base + at as u32)
    }
    /// The shapes of the operands and of the results of `op`.
    pub fn static_shapes(&self, op: OpId) -> [Vec<StaticShape>; 2] {
        let shape = |value: ValueId| self.types[self.values[value].ty].static_shape();
        let shape = |value| shape(value).ok_or_else(|| self.value_type_text(value).to_owned());
        let operands = self.op_operands(op).iter().map(|slot| shape(slot.value)).collect();
        [operands, self.op_results(op).map(shape).collect()]
    }
    /// The beginning of the reference's messages about the sharding of the `index`-th of `count`
    /// results of `op`, or of its operands if `is_input`.
    pub fn sharding_subject(&self, op: OpId, is_input: bool, index: usize, count: usize) -> String {
        let side = self.sharding_side(op, is_input);
        let name = self.op_name(op);
        match side {
            "" => format!("'{name}' op "),
            _ if count == 1 => format!("'{name}' op {side} - "),
            _ => format!("'{name}' op {side} {index} - "),
        }
    }
    /// The reference's word for the shardings of the results of `op`, or of its operands if
    /// `is_input`; empty if the op has a single sharding.
    pub fn sharding_side(&self, op: OpId, is_input: bool) -> &'static str {
        match (self.kind(op), is_input) {
            (OpKind::NamedComputation | OpKind::Fragment, true) => "in_shardings",
            (OpKind::NamedComputation | OpKind::Fragment, false) => "out_shardings",
            (_, true) => "operand",
            (kind, false) if has_one_sharding(kind) => "",
            (_, false) => "result",
        }
    }
    /// `problem` at the place where MLIR reports errors in `op`: the line of the op's name. If the
    /// problem's span is on another line, it becomes the detail.
    #[must_use]
    pub fn reported_at(&self, op: OpId, mut problem: Diagnostic) -> Diagnostic {
        let Some(name) = self.name_span(op) else { return problem };
        match problem.span {
            Some(span) if self.is_one_line(name, span) => {}
            span => {
                problem.span = Some(name);
                problem.detail = span;
            }
        }
        problem
    }
    fn is_one_line(&self, a: Span, b: Span) -> bool {
        let between = Span::new(a.start.min(b.start), a.start.max(b.start));
        !self.text.get(between).contains('\n')
    }
}

/// The offsets in `text` of the equals signs after attributes called `name`.
fn values_of<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = text[..at].bytes().next_back();
        let is_whole = before.is_none_or(|b| !(b.is_ascii_alphanumeric() || b"_.#".contains(&b)));
        let end = at + name.len();
        let rest = text[end..].trim_start_matches(['"', ' ', '\n']);
        (is_whole && rest.starts_with('=')).then(|| text.len() - rest.len())
    })
}

/// The span of the attribute that `text`, which is at offset `base`, starts with: up to the comma, bracket or
/// space after it.
fn value_span(text: &str, base: u32) -> Option<Span> {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|&byte| !(byte.is_ascii_whitespace() || byte == b'='))?;
    let mut depth = 0usize;
    let mut in_string = false;
    let mut end = bytes.len();
    let mut i = start;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' if in_string => i += 1,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'<' | b'[' | b'{' | b'(' => depth += 1,
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b']' | b'}' | b')' if depth == 0 => {
                end = i;
                break;
            }
            b'>' | b']' | b'}' | b')' => depth -= 1,
            byte if depth == 0 && (byte == b',' || byte.is_ascii_whitespace()) => {
                end = i;
                break;
            }
            _ => {}
        }
        i += 1;
    }
    let end = end.min(bytes.len());
    (start < end).then(|| Span::new(base + start as u32, base + end as u32))
}

/// `text` without the white space and comments that it starts with.
fn without_space(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match text.strip_prefix("//") {
            Some(comment) => text = comment.split_once('\n').map_or("", |(_, after)| after),
            None => return text,
        }
    }
}

impl Diagnostic {
    /// Puts the diagnostic at `op`, if that has text of its own.
    #[must_use]
    pub fn at_op(mut self, program: &Program, op: OpId) -> Self {
        self.span = program.op_span(op);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::value_span;
    use crate::error::Span;

    #[test]
    fn values_end_where_they_end() {
        let value = |text: &'static str| {
            value_span(text, 0).map(|Span { start, end }| &text[start as usize..end as usize])
        };
        assert_eq!(value(" = #a<([i])->([i]), \"}\">, b"), Some("#a<([i])->([i]), \"}\">"));
        assert_eq!(value("<@m, [{\"a\\\"b\"}]> : x"), Some("<@m, [{\"a\\\"b\"}]>"));
        assert_eq!(value("=x}"), Some("x"));
        assert_eq!(value(" ="), None);
        assert_eq!(value("<["), Some("<["));
    }
}
