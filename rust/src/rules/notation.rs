//! Rules as short strings: `"i k, k j -> i j"`.
//!
//! Operands are before the arrow, results after it, separated by commas; dims are separated by
//! spaces. Sizes come from the shapes of the op that the rule is used for.
//!
//! | text | meaning |
//! | --- | --- |
//! | `i`, `batch` | a dim with this factor |
//! | `(i j)` | a dim with several factors, major to minor: `(i j) -> i j` splits it |
//! | `_` | a dim that corresponds to no other dim |
//! | `...` | any number of dims with one factor each, aligned at their minor end |
//! | `reduction={k}` | after the tensors: the kind of factors; also `pass_through`, `need_replication`, `permutation`, `blocked_propagation` (or `blocked`) |
//! | `{i=8}` | the size of a factor that does not follow from the shapes |
//!
//! Tensors may also be written in parentheses, with their dims separated by commas:
//! `"(i, k), (k, j) -> (i, j)"`; see [`super::notation_tuples`].
//!
//! A factor that is in no result is a reduction unless it is listed as another kind. A scalar is an
//! empty string: in `"i, -> i"` the second operand is a scalar. If a factor needs replication or a
//! permutation, or is blocked, its dims may differ in size; then the factor has the size of the
//! first dim.

use super::builder::FactorKind;
use crate::error::{Code, Diagnostic, Result};
use std::str::FromStr;

/// One entry of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Dim {
    /// Factors, major to minor; empty for `_`.
    Factors(Vec<String>),
    /// `...`
    Rest,
}

/// A rule for ops of any shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notation {
    pub(super) text: String,
    pub(super) operands: Vec<Vec<Dim>>,
    pub(super) results: Vec<Vec<Dim>>,
    pub(super) sizes: Vec<(String, i64)>,
    pub(super) kinds: Vec<(String, FactorKind)>,
    pub(super) blocked: Vec<String>,
}

pub(super) const FORMS: &str =
    "write \"i k, k j -> i j\", \"(i, k), (k, j) -> (i, j)\" or <([i, k], [k, j])->([i, j]) {i=8, j=16, k=32}>";

pub(super) fn error(text: &str, message: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::InvalidRule, format!("rule \"{text}\": {message}"))
}

impl FromStr for Notation {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = |message: String| error(text, message).with_hint(FORMS);
        let short = super::notation_tuples::short(text);
        let short = short.as_deref().unwrap_or(text);
        let (operands, rest) =
            short.split_once("->").ok_or_else(|| fail("there is no '->'".into()))?;
        let options_start = rest.find(['{', '=']).map_or(rest.len(), |at| {
            let before = &rest[..at];
            let word_start = before.trim_end().rfind([' ', ',']).map_or(0, |space| space + 1);
            if rest[at..].starts_with('{') {
                at
            } else {
                word_start
            }
        });
        // A comma before the options separates them; without options it is followed by a scalar.
        let results = rest[..options_start].trim_end();
        let has_options = options_start < rest.len();
        let results = results.strip_suffix(',').filter(|_| has_options).unwrap_or(results);
        let mut rule = Self {
            text: text.to_owned(),
            operands: tensors(operands).map_err(fail)?,
            results: tensors(results).map_err(fail)?,
            sizes: Vec::new(),
            kinds: Vec::new(),
            blocked: Vec::new(),
        };
        rule.read_options(&rest[options_start..]).map_err(fail)?;
        rule.check_names().map_err(fail)?;
        Ok(rule)
    }
}

pub(super) type Parsed<T> = std::result::Result<T, String>;

fn tensors(text: &str) -> Parsed<Vec<Vec<Dim>>> {
    text.split(',').map(tensor).collect()
}

fn tensor(text: &str) -> Parsed<Vec<Dim>> {
    let mut dims = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let len = if rest.starts_with('(') {
            rest.find(')').ok_or("a '(' is never closed")? + 1
        } else {
            rest.find([' ', '(']).unwrap_or(rest.len())
        };
        let (word, tail) = rest.split_at(len);
        rest = tail.trim_start();
        dims.push(dim(word)?);
    }
    if dims.iter().filter(|dim| **dim == Dim::Rest).count() > 1 {
        return Err("a tensor has more than one '...'".into());
    }
    Ok(dims)
}

fn dim(word: &str) -> Parsed<Dim> {
    if word == "..." {
        return Ok(Dim::Rest);
    }
    if word == "_" {
        return Ok(Dim::Factors(Vec::new()));
    }
    if let Some(inner) = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
        let factors = inner.split_whitespace().map(factor).collect::<Parsed<_>>()?;
        return Ok(Dim::Factors(factors));
    }
    Ok(Dim::Factors(vec![factor(word)?]))
}

fn factor(word: &str) -> Parsed<String> {
    let is_name = word.starts_with(|first: char| first.is_alphabetic())
        && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if is_name {
        return Ok(word.to_owned());
    }
    Err(format!("'{word}' is no factor; factors are words like i or batch, separated by spaces"))
}

impl Notation {
    /// `{i=8} reduction={k}, ...`
    fn read_options(&mut self, mut text: &str) -> Parsed<()> {
        loop {
            text = text.trim_start_matches([' ', ',']);
            if text.is_empty() {
                return Ok(());
            }
            let (name, rest) = text.split_once('{').ok_or(format!("'{text}' is no option"))?;
            let (body, rest) = rest.split_once('}').ok_or("a '{' is never closed")?;
            text = rest;
            let items = body.split([',', ' ']).filter(|item| !item.is_empty());
            let name = name.trim_end().trim_end_matches('=').trim_end();
            let kind = match name {
                "" => {
                    for item in items {
                        self.sizes.push(size(item)?);
                    }
                    continue;
                }
                "blocked" | "blocked_propagation" => {
                    self.blocked.extend(items.map(str::to_owned));
                    continue;
                }
                "pass_through" => FactorKind::PassThrough,
                "reduction" => FactorKind::Reduction,
                "need_replication" => FactorKind::NeedReplication,
                "permutation" => FactorKind::Permutation,
                _ => return Err(format!("there is no option '{name}'")),
            };
            self.kinds.extend(items.map(|item| (item.to_owned(), kind)));
        }
    }

    /// The shapes of operands and results if the sizes in the rule determine them: every factor has
    /// a size, and there is no `...`.
    pub fn given_shapes(&self) -> Option<[Vec<Vec<i64>>; 2]> {
        let size = |name: &String| {
            let given = self.sizes.iter().find(|(other, _)| other == name);
            given.map(|&(_, size)| size)
        };
        let dim = |dim: &Dim| match dim {
            Dim::Rest => None,
            Dim::Factors(names) => {
                names.iter().try_fold(1i64, |product, name| product.checked_mul(size(name)?))
            }
        };
        let shapes = |tensors: &[Vec<Dim>]| {
            let shape = |dims: &Vec<Dim>| dims.iter().map(dim).collect::<Option<Vec<i64>>>();
            tensors.iter().map(shape).collect::<Option<Vec<_>>>()
        };
        Some([shapes(&self.operands)?, shapes(&self.results)?])
    }

    fn check_names(&self) -> Parsed<()> {
        let dims = self.operands.iter().chain(&self.results).flatten();
        let is_factor = |name: &str| {
            dims.clone().any(
                |dim| matches!(dim, Dim::Factors(names) if names.iter().any(|other| other == name)),
            )
        };
        let listed = self.kinds.iter().map(|(name, _)| name);
        let sized = self.sizes.iter().map(|(name, _)| name);
        for name in listed.chain(sized).chain(&self.blocked) {
            if !is_factor(name) {
                return Err(format!("'{name}' is no factor of it"));
            }
        }
        let has_rest = |tensor: &Vec<Dim>| tensor.contains(&Dim::Rest);
        if self.results.iter().any(has_rest) && !self.operands.iter().any(has_rest) {
            return Err("a result has '...' and no operand has".into());
        }
        Ok(())
    }
}

fn size(item: &str) -> Parsed<(String, i64)> {
    let parsed = item.split_once('=').and_then(|(name, size)| {
        let size = size.parse().ok().filter(|&size: &i64| size > 0)?;
        Some((name.to_owned(), size))
    });
    parsed.ok_or_else(|| format!("'{item}' is no size, like i=8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::print_rule;
    use crate::rules::{Shapes, SignatureView};

    fn rule(text: &str, operands: &[&[i64]], results: &[&[i64]]) -> String {
        let some =
            |shapes: &[&'static [i64]]| shapes.iter().map(|&shape| Some(shape)).collect::<Vec<_>>();
        let _ = some;
        let operands: Vec<_> = operands.iter().map(|&shape| Some(shape)).collect();
        let results: Vec<_> = results.iter().map(|&shape| Some(shape)).collect();
        let shapes = Shapes::new(&operands, &results);
        let view = SignatureView::new("my.op", &shapes, Vec::new());
        let rule = text.parse::<Notation>().and_then(|notation| notation.instantiate(&view));
        match rule {
            Ok(rule) => print_rule(&rule).replace("#sdy.op_sharding_rule", ""),
            Err(error) => {
                error.diagnostics[0].message.split_once("\": ").unwrap_or_default().1.into()
            }
        }
    }

    #[test]
    fn sizes_come_from_shapes() {
        assert_eq!(
            rule("i k, k j -> i j", &[&[2, 3], &[3, 5]], &[&[2, 5]]),
            "<([i, j], [j, k])->([i, k]) {i=2, j=3, k=5} reduction={j}>"
        );
        assert_eq!(rule("(a b) -> a b", &[&[6]], &[&[2, 3]]), "<([ij])->([i, j]) {i=2, j=3}>");
        assert_eq!(rule("(a b) -> (b a) {a=2}", &[&[6]], &[&[6]]), "<([ij])->([ji]) {i=2, j=3}>");
        assert_eq!(
            rule("... i, i -> ...", &[&[4, 2, 3], &[3]], &[&[4, 2]]),
            "<([i, j, k], [k])->([i, j]) {i=4, j=2, k=3} reduction={k}>"
        );
        assert_eq!(rule("(i j) -> (j i) {i=1}", &[&[6]], &[&[6]]), "<([i])->([i]) {i=6}>");
        assert_eq!(rule("i _, -> i", &[&[2, 3], &[]], &[&[2]]), "<([i, j], [])->([i]) {i=2, j=1}>");
    }

    #[test]
    fn scalars_may_be_the_last_results() {
        let (shapes, written): (&[&[i64]], _) =
            (&[&[2, 3], &[]], "<([i, j])->([i, j], []) {i=2, j=3}>");
        for text in ["i j -> i j,", "(i, j) -> (i, j), ()", "(i, j) -> (i, j), (): i=2"] {
            assert_eq!(rule(text, &[&[2, 3]], shapes), written, "{text}");
        }
        let permuted = "<([i, j])->([i, j], []) {i=2, j=3} permutation={j}>";
        for text in ["i j -> i j, , permutation={j}", "(i, j) -> (i, j), () permutation={j}"] {
            assert_eq!(rule(text, &[&[2, 3]], shapes), permuted, "{text}");
        }
    }

    #[test]
    fn kinds_are_listed() {
        assert_eq!(
            rule("i j -> i j need_replication={j} blocked={j}", &[&[2, 3]], &[&[2, 2]]),
            "<([i, j])->([i, j]) {i=2, j=3} need_replication={j} blocked_propagation={j}>"
        );
        assert_eq!(
            rule("i j -> i, permutation={j}", &[&[2, 3]], &[&[2]]),
            "<([i, j])->([i]) {i=2, j=3} permutation={j}>"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("i j", "there is no '->'"),
            ("i -> i k={}", "there is no option 'k'"),
            ("i -> i k={", "a '{' is never closed"),
            ("i j -> i", "operand 0 has 2 dims in it, and 1 in the op"),
            ("i, j -> i", "it has 2 operands, and the op has 1"),
            (
                "i* -> i",
                "'i*' is no factor; factors are words like i or batch, separated by spaces",
            ),
            ("i -> i reduction={i}", "i is a reduction and is in a result"),
            ("i -> i reduction={z}", "'z' is no factor of it"),
            ("(i -> i", "a '(' is never closed"),
            ("(i j) -> i", "(i j) cannot have size 7 in operand 0"),
        ];
        for (text, message) in cases {
            assert_eq!(rule(text, &[&[7]], &[&[2]]), message, "{text}");
        }
        assert_eq!(rule("i -> i", &[&[6]], &[&[2]]), "i has size 2 in result 0 and 6 elsewhere");
        assert_eq!(
            rule("(i j) -> (i j)", &[&[6]], &[&[6]]),
            "the size of i is unknown; say it, {i=8}"
        );
    }
}
