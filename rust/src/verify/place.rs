//! Where in the text something stands that has no span of its own in the program.

use super::Verifier;
use crate::error::Span;
use crate::index::{FuncId, OpId};
use crate::ir::{OpFlags, OpKind};

impl Verifier<'_> {
    /// The text of `op` without its regions, and where it stands; none if a pass made the op.
    fn header(&self, op: OpId) -> Option<(&str, u32)> {
        let row = &self.program.ops[op];
        if row.flags.has(OpFlags::SYNTHESISED) || row.span.is_empty() {
            return None;
        }
        let regions = self.program.op_regions(op).map(|region| self.program.regions[region].span);
        let body = regions.filter(|span| !span.is_empty()).map(|span| span.start).min();
        let end = body.filter(|body| (row.span.start..row.span.end).contains(body));
        let span = Span::new(row.span.start, end.unwrap_or(row.span.end));
        Some((self.program.text.get(span), span.start))
    }
    /// The name of `op`.
    pub(super) fn name_span(&self, op: OpId) -> Option<Span> {
        let (text, base) = self.header(op)?;
        let name = self.program.op_name(op);
        let short = name.strip_prefix("func.").or_else(|| name.strip_prefix("builtin."));
        let found = text.find(name).map(|at| (at, name.len()));
        let (at, len) = found.or_else(|| short.and_then(|s| Some((text.find(s)?, s.len()))))?;
        let start = base + at as u32;
        Some(Span::new(start, start + len as u32))
    }
    /// The value of the attribute `name` of `op`, in its dictionary or its own syntax.
    pub(super) fn attr_span(&self, op: OpId, name: &str) -> Option<Span> {
        let (text, base) = self.header(op)?;
        let at = values_of(text, name).next()?;
        value_span(&text[at..], base + at as u32)
    }
    /// The sharding of the results of `op`.
    pub(super) fn sharding_span(&self, op: OpId) -> Option<Span> {
        let name = match self.program.kind(op) {
            OpKind::ShardingConstraint | OpKind::Reshard => {
                let (text, base) = self.header(op)?;
                let at = text.find("<@").or_else(|| text.find("<mesh"))?;
                return value_span(&text[at..], base + at as u32);
            }
            OpKind::ManualComputation | OpKind::NamedComputation => "out_shardings",
            OpKind::DataFlowEdge => "sharding",
            OpKind::AllGather
            | OpKind::AllSlice
            | OpKind::AllToAll
            | OpKind::CollectivePermute
            | OpKind::AllReduce
            | OpKind::ReduceScatter
            | OpKind::ShardedToUnreduced
            | OpKind::ReplicatedToUnreduced => "out_sharding",
            _ => "sdy.sharding",
        };
        self.attr_span(op, name)
    }
    /// The sharding of an argument of a function.
    pub(super) fn arg_sharding_span(&self, func: FuncId, index: usize) -> Option<Span> {
        let dict = *self.program.functions[func].arg_dicts.get(index)?;
        let text = self.program.text.get(dict);
        let at = values_of(text, "sdy.sharding").next()?;
        value_span(&text[at..], dict.start + at as u32)
    }
    /// The sharding of the result of a function that has `before` results with shardings before it.
    pub(super) fn result_sharding_span(&self, func: FuncId, before: usize) -> Option<Span> {
        let results = self.program.functions[func].results_span;
        let text = self.program.text.get(results);
        let at = values_of(text, "sdy.sharding").nth(before)?;
        value_span(&text[at..], results.start + at as u32)
    }
}

/// Where the values of attributes called `name` start in `text`, at the equals sign.
fn values_of<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = text[..at].bytes().next_back();
        let is_whole = before.is_none_or(|b| !(b.is_ascii_alphanumeric() || b"_.#".contains(&b)));
        let end = at + name.len();
        let rest = text[end..].trim_start_matches(['"', ' ', '\n']);
        (is_whole && rest.starts_with('=')).then(|| text.len() - rest.len())
    })
}

/// The attribute that `text` starts with, up to the comma, bracket or space after it; it stands at
/// `base`.
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
