//! Text of op sharding rules:
//! `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom>`.
//!
//! Factors are called `i` to `z`, then `z_1`, `z_2` and so on; a dim of several factors writes them
//! without a gap, `ij`. Reading a rule verifies all of it that does not depend on the op.

use super::cursor::Cursor;
use super::problem::Part;
use super::rule_check::rule_problems;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{FactorId, Id};
use crate::rule::{OpShardingRule, TensorMapping};
use std::fmt::Write as _;

/// How many factors have a one-letter symbol.
const NUM_LETTERS: u8 = b'z' - b'i' + 1;

/// The four lists of special factors, in the order in which they are written.
const SPECIAL_LISTS: [&str; 4] =
    ["reduction", "need_replication", "permutation", "blocked_propagation"];

/// The symbol of the `index`-th factor: `i` to `z`, `z_1`, ...
pub fn factor_symbol(index: usize) -> String {
    if index < usize::from(NUM_LETTERS) {
        return char::from(b'i' + index as u8).to_string();
    }
    format!("z_{}", index + 1 - usize::from(NUM_LETTERS))
}

/// Where the parts of a rule stand in the text.
struct RuleSpans {
    whole: Span,
    tensors: Vec<Span>,
    factors: Vec<Span>,
}

impl RuleSpans {
    fn span_of(&self, part: Part) -> Option<Span> {
        match part {
            Part::Tensor(tensor) => self.tensors.get(tensor).copied(),
            Part::Factor(factor) => self.factors.get(factor).copied(),
            _ => Some(self.whole),
        }
    }
}

/// Parses and verifies a rule, `#sdy.op_sharding_rule<...>` or the part in angle brackets alone.
/// `base` is where `text` stands in the program's text. Whether the rule fits its op is for
/// [`super::verify_rule_shapes`].
pub fn parse_rule(text: &str, base: u32) -> Result<OpShardingRule> {
    parse(text, base, 0)
}

/// Parses a rule that is for no op in particular: no factor has size 0.
pub fn parse_lone_rule(text: &str) -> Result<OpShardingRule> {
    parse(text, 0, 1)
}

fn parse(text: &str, base: u32, least_size: i64) -> Result<OpShardingRule> {
    let mut cursor = Cursor::new(text, base);
    let wrapping = cursor.open("op_sharding_rule");
    let start = cursor.position();
    cursor.expect("<")?;
    let mut tensors = Vec::new();
    let mut tensor_spans = Vec::new();
    let num_operands = read_tensors(&mut cursor, &mut tensors, &mut tensor_spans)?;
    cursor.expect("->")?;
    read_tensors(&mut cursor, &mut tensors, &mut tensor_spans)?;
    let (factor_sizes, factor_spans) = read_sizes(&mut cursor)?;
    let mut special = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for (list, name) in special.iter_mut().zip(SPECIAL_LISTS) {
        *list = read_special(&mut cursor, name)?;
    }
    let is_custom = cursor.eat(",");
    if is_custom && !cursor.eat_word("custom") {
        return Err(cursor.expected("'custom'"));
    }
    if !cursor.peek(">") {
        return Err(cursor.expected(&after_sizes(is_custom)));
    }
    cursor.expect(">")?;
    let spans =
        RuleSpans { whole: cursor.span_from(start), tensors: tensor_spans, factors: factor_spans };
    cursor.close(wrapping)?;
    cursor.finish()?;
    let raw = RawRule { tensors, num_operands, factor_sizes, special, is_custom };
    let rule = raw.resolve()?;
    let problems = rule_problems(&rule, least_size).into_iter();
    Error::check(problems.map(|p| p.located(|part| spans.span_of(part))).collect())?;
    Ok(rule)
}

/// What may stand where something else was found.
fn after_sizes(is_custom: bool) -> String {
    if is_custom {
        return "'>'".to_owned();
    }
    let lists = SPECIAL_LISTS.join("={..}, ");
    format!("'>' (after the sizes come, in this order, {lists}={{..}} and ', custom')")
}

/// A factor as it was read, before it is known how many there are.
type RawFactor = (i64, Span);

/// A rule as it was read.
struct RawRule {
    tensors: Vec<Vec<Vec<RawFactor>>>,
    num_operands: usize,
    factor_sizes: Vec<i64>,
    special: [Vec<RawFactor>; 4],
    is_custom: bool,
}

impl RawRule {
    /// The rule, if every factor has a size.
    fn resolve(self) -> Result<OpShardingRule> {
        let num_factors = self.factor_sizes.len();
        let mut diagnostics = Vec::new();
        let mut id = |(index, span): RawFactor| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if index < num_factors {
                return FactorId::from_index(index);
            }
            let symbol = if index == usize::MAX { "this".into() } else { factor_symbol(index) };
            let problem =
                Diagnostic::new(Code::InvalidRule, format!("factor {symbol} has no size"));
            let hint = "list the size of each factor after the mappings: {i=8, j=16}";
            diagnostics.push(problem.at(span).with_hint(hint));
            FactorId::NONE
        };
        let mut tensors = Vec::new();
        for dims in self.tensors {
            let dims = dims.into_iter().map(|dim| dim.into_iter().map(&mut id).collect());
            tensors.push(TensorMapping { dims: dims.collect() });
        }
        let mut list = |factors: Vec<RawFactor>| factors.into_iter().map(&mut id).collect();
        let [reduction, need_replication, permutation, blocked] = self.special.map(&mut list);
        Error::check(diagnostics)?;
        let results = tensors.split_off(self.num_operands);
        Ok(OpShardingRule {
            factor_sizes: self.factor_sizes,
            operands: tensors,
            results,
            reduction,
            need_replication,
            permutation,
            blocked,
            is_custom: self.is_custom,
        })
    }
}

/// Reads `([i, j], [jk])`; returns how many tensors there are.
fn read_tensors(
    cursor: &mut Cursor<'_>,
    tensors: &mut Vec<Vec<Vec<RawFactor>>>,
    spans: &mut Vec<Span>,
) -> Result<usize> {
    cursor.expect("(")?;
    if cursor.peek(")") {
        return Err(cursor.expected("the mapping of a tensor, like [i, j]"));
    }
    let read = cursor.list(")", |cursor| {
        let start = cursor.position();
        cursor.expect("[")?;
        let dims = cursor.list("]", |cursor| {
            let Some((word, span)) = cursor.word() else {
                return Err(cursor.expected("the factors of a dim"));
            };
            symbols(word, span.start)
        })?;
        spans.push(cursor.span_from(start));
        Ok(dims)
    })?;
    let count = read.len();
    tensors.extend(read);
    Ok(count)
}

/// The factors that `word` names without a gap; `start` is where it stands.
fn symbols(word: &str, start: u32) -> Result<Vec<RawFactor>> {
    let mut factors = Vec::new();
    let mut at = 0;
    while at < word.len() {
        let rest = &word[at..];
        let (index, len) = symbol(rest).map_err(|message| {
            let from = start + at as u32;
            let span = Span::new(from, from + rest.len() as u32);
            Diagnostic::new(Code::Syntax, message).at(span)
        })?;
        let from = start + at as u32;
        factors.push((index, Span::new(from, from + len as u32)));
        at += len;
    }
    Ok(factors)
}

/// The index of the factor whose symbol `text` starts with, and the length of the symbol.
fn symbol(text: &str) -> std::result::Result<(i64, usize), String> {
    let Some(rest) = text.strip_prefix("z_") else {
        return match text.as_bytes().first() {
            Some(letter @ b'i'..=b'z') => Ok((i64::from(letter - b'i'), 1)),
            _ => Err(format!("'{text}' is no factor: they are called i to z, then z_1, z_2, ...")),
        };
    };
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0 || rest.starts_with('0') {
        return Err(format!("'{text}' is no factor: z_ takes a number from 1"));
    }
    let index = rest[..len].parse::<i64>().ok();
    match index.and_then(|index| index.checked_add(i64::from(NUM_LETTERS) - 1)) {
        Some(index) => Ok((index, 2 + len)),
        None => Err("the number of this factor does not fit in 64 bits".to_owned()),
    }
}

/// Reads `{i=8, j=16}` if it is there.
fn read_sizes(cursor: &mut Cursor<'_>) -> Result<(Vec<i64>, Vec<Span>)> {
    if !cursor.eat("{") {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut next = 0;
    let sizes = cursor.list("}", |cursor| {
        let start = cursor.position();
        let expected = factor_symbol(next);
        next += 1;
        if !cursor.eat_word(&expected) {
            let what = format!("'{expected}' (sizes are listed in the order i, j, k, ...)");
            return Err(cursor.expected(&what));
        }
        cursor.expect("=")?;
        let (size, _) = cursor.integer()?;
        Ok((size, cursor.span_from(start)))
    })?;
    Ok(sizes.into_iter().unzip())
}

/// Reads `name={i, k}` if it is there.
fn read_special(cursor: &mut Cursor<'_>, name: &str) -> Result<Vec<RawFactor>> {
    if !cursor.eat_word(name) {
        return Ok(Vec::new());
    }
    cursor.expect("=")?;
    if !cursor.eat("{") {
        return Ok(Vec::new());
    }
    cursor.list("}", |cursor| {
        let Some((word, span)) = cursor.word() else {
            return Err(cursor.expected("a factor"));
        };
        if let [factor] = symbols(word, span.start)?[..] {
            return Ok(factor);
        }
        let message = format!("expected one factor, found '{word}'");
        let problem = Diagnostic::new(Code::Syntax, message).at(span);
        Err(problem.with_hint("separate factors with commas").into())
    })
}

/// Appends a rule, with its `#sdy.op_sharding_rule` in front.
pub fn write_rule(out: &mut String, rule: &OpShardingRule) {
    out.push_str("#sdy.op_sharding_rule<");
    write_tensors(out, &rule.operands);
    out.push_str("->");
    write_tensors(out, &rule.results);
    for (i, size) in rule.factor_sizes.iter().enumerate() {
        let separator = if i == 0 { " {" } else { ", " };
        let _ = write!(out, "{separator}{}={size}", factor_symbol(i));
    }
    out.push_str(if rule.factor_sizes.is_empty() { "" } else { "}" });
    let lists = [&rule.reduction, &rule.need_replication, &rule.permutation, &rule.blocked];
    for (name, factors) in SPECIAL_LISTS.into_iter().zip(lists) {
        for (i, factor) in factors.iter().enumerate() {
            if i == 0 {
                let _ = write!(out, " {name}={{");
            } else {
                out.push_str(", ");
            }
            out.push_str(&factor_symbol(factor.index()));
        }
        out.push_str(if factors.is_empty() { "" } else { "}" });
    }
    out.push_str(if rule.is_custom { ", custom>" } else { ">" });
}

/// Appends `([i, k], [k, j])`.
fn write_tensors(out: &mut String, tensors: &[TensorMapping]) {
    out.push('(');
    for (i, tensor) in tensors.iter().enumerate() {
        out.push_str(if i == 0 { "[" } else { ", [" });
        for (dim, factors) in tensor.dims.iter().enumerate() {
            out.push_str(if dim == 0 { "" } else { ", " });
            for factor in factors {
                out.push_str(&factor_symbol(factor.index()));
            }
        }
        out.push(']');
    }
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::print_rule;

    #[test]
    fn rules_print_as_they_are_parsed() {
        for text in [
            "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>",
            "<([])->([])>",
            "<([ij])->([i, j]) {i=2, j=4}, custom>",
            "<([i, j, k])->([i, j]) {i=8, j=2, k=4} reduction={k} need_replication={j} \
             permutation={i} blocked_propagation={i, k}, custom>",
        ] {
            let rule = parse_rule(text, 0).unwrap();
            assert_eq!(print_rule(&rule), format!("#sdy.op_sharding_rule{text}"));
        }
        let dims: Vec<String> = (0..20).map(factor_symbol).collect();
        let sizes: Vec<String> = dims.iter().map(|dim| format!("{dim}=2")).collect();
        let joined = dims.concat();
        let text = format!("<([{joined}])->([{joined}]) {{{}}}>", sizes.join(", "));
        assert!(joined.ends_with("zz_1z_2"));
        assert_eq!(
            print_rule(&parse_rule(&text, 0).unwrap()),
            format!("#sdy.op_sharding_rule{text}")
        );
    }

    #[test]
    fn bad_text_is_refused() {
        for bad in [
            "",
            "<([i])->([i]) {j=2}>",
            "<()->([i]) {i=2}>",
            "<([i,])->([i]) {i=2}>",
            "<([a])->([i]) {i=2}>",
            "<([z_0])->([i]) {i=2}>",
            "<([z_99999999999999999999])->([i]) {i=2}>",
            "<([i])->([i]) {i=2} permutation={i} reduction={i}>",
            "<([i])->([i]) {i=2} reduction={ij}>",
            "<([i])->([i]) {i=2}, costum>",
        ] {
            assert_eq!(parse_rule(bad, 0).unwrap_err().diagnostics[0].code, Code::Syntax, "{bad}");
        }
        let error = parse_rule("<([i])->([z_9223372036854775000]) {i=2}>", 0).unwrap_err();
        assert_eq!(error.diagnostics[0].message, "factor z_9223372036854775000 has no size");
        assert_eq!(error.diagnostics[0].span, Some(Span::new(10, 31)));
    }
}
