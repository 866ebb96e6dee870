//! Rules as short strings: `"i k, k j -> i j"`.
//!
//! Operands before the arrow, results after it, separated by commas; dims separated by spaces. Sizes
//! come from the shapes of the op that the rule is used for.
//!
//! | text | meaning |
//! | --- | --- |
//! | `i`, `batch` | a dim that is this factor |
//! | `(i j)` | a dim of several factors, major to minor: `(i j) -> i j` splits it |
//! | `_` | a dim that corresponds to no other |
//! | `...` | any number of dims, one factor each, aligned at their minor end |
//! | `reduction={k}` | after the tensors: the kind of factors; also `need_replication`, `permutation`, `blocked_propagation` (or `blocked`) |
//! | `{i=8}` | the size of a factor that the shapes do not tell |
//!
//! A factor that is in no result is a reduction unless it is listed otherwise. A tensor without dims
//! is written as nothing: `"i, -> i"` has a scalar second operand. A factor that needs replication or a
//! permutation, or is blocked, may stand for dims of different sizes; its size is that of the first.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FactorId, Id};
use crate::rule::{OpShardingRule, TensorMapping};
use std::str::FromStr;

/// One entry of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Dim {
    /// Factors, major to minor; none for `_`.
    Factors(Vec<String>),
    /// `...`
    Rest,
}

/// A rule for ops of any shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notation {
    text: String,
    operands: Vec<Vec<Dim>>,
    results: Vec<Vec<Dim>>,
    sizes: Vec<(String, i64)>,
    kinds: Vec<(String, FactorKind)>,
    blocked: Vec<String>,
}

fn error(text: &str, message: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::InvalidRule, format!("rule \"{text}\": {message}"))
}

impl FromStr for Notation {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = |message: String| error(text, message);
        let (operands, rest) =
            text.split_once("->").ok_or_else(|| fail("there is no '->'".into()))?;
        let options_start = rest.find(['{', '=']).map_or(rest.len(), |at| {
            let before = &rest[..at];
            let word_start = before.trim_end().rfind([' ', ',']).map_or(0, |space| space + 1);
            if rest[at..].starts_with('{') {
                at
            } else {
                word_start
            }
        });
        let mut rule = Self {
            text: text.to_owned(),
            operands: tensors(operands).map_err(fail)?,
            results: tensors(rest[..options_start].trim_end_matches([' ', ','])).map_err(fail)?,
            sizes: Vec::new(),
            kinds: Vec::new(),
            blocked: Vec::new(),
        };
        rule.read_options(&rest[options_start..]).map_err(fail)?;
        rule.check_names().map_err(fail)?;
        Ok(rule)
    }
}

type Parsed<T> = std::result::Result<T, String>;

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
                "reduction" => FactorKind::Reduction,
                "need_replication" => FactorKind::NeedReplication,
                "permutation" => FactorKind::Permutation,
                _ => return Err(format!("there is no option '{name}'")),
            };
            self.kinds.extend(items.map(|item| (item.to_owned(), kind)));
        }
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

    /// The rule for an op of these shapes.
    pub fn instantiate(&self, view: &SignatureView<'_>) -> Result<OpShardingRule> {
        self.try_instantiate(view).map_err(|message| error(&self.text, message).into())
    }

    fn try_instantiate(&self, view: &SignatureView<'_>) -> Parsed<OpShardingRule> {
        let sides = [
            ("operand", &self.operands, view.num_operands()),
            ("result", &self.results, view.num_results()),
        ];
        let mut tensors = Vec::new();
        for (what, specs, count) in sides {
            if specs.len() != count {
                return Err(format!("it has {} {what}s, and the op has {count}", specs.len()));
            }
            for (index, dims) in specs.iter().enumerate() {
                let shape =
                    if what == "operand" { view.operand(index) } else { view.result(index) };
                let name = format!("{what} {index}");
                tensors.push(expand(&name, dims, shape.unwrap_or(&[]))?);
            }
        }
        let mut factors = self.factor_sizes(&tensors)?;
        drop_hidden(&mut factors, &tensors);
        self.build(view, &tensors, &factors)
    }

    /// Every factor with its size, in order of appearance.
    fn factor_sizes(&self, tensors: &[Tensor<'_>]) -> Parsed<Vec<(String, i64)>> {
        let mut order: Vec<String> = Vec::new();
        for name in tensors.iter().flat_map(|tensor| &tensor.dims).flatten() {
            if !order.contains(name) {
                order.push(name.clone());
            }
        }
        let mut sizes: Vec<Option<i64>> = order
            .iter()
            .map(|name| self.sizes.iter().find(|(other, _)| other == name).map(|(_, size)| *size))
            .collect();
        let place = |name: &String| order.iter().position(|other| other == name).unwrap_or(0);
        // Each round tells the size of at least one more factor, or is the last.
        let mut has_learned = true;
        while std::mem::take(&mut has_learned) {
            for tensor in tensors {
                for (factors, &dim_size) in tensor.dims.iter().zip(tensor.shape) {
                    let unknown: Vec<usize> =
                        factors.iter().map(place).filter(|&at| sizes[at].is_none()).collect();
                    let known = factors.iter().filter_map(|name| sizes[place(name)]);
                    let known = known.fold(1_i64, i64::saturating_mul);
                    if let [at] = unknown[..] {
                        if known <= 0 || dim_size % known != 0 {
                            let list = factors.join(" ");
                            return Err(format!(
                                "({list}) cannot have size {dim_size} in {}",
                                tensor.name
                            ));
                        }
                        sizes[at] = Some(dim_size / known);
                        has_learned = true;
                    }
                }
            }
        }
        let sized = order.into_iter().zip(sizes);
        let known = sized.map(|(name, size)| {
            let missing = || format!("the size of {name} is unknown; say it, {{{name}=8}}");
            let size = size.ok_or_else(missing)?;
            Ok((name, size))
        });
        known.collect()
    }

    fn build(
        &self,
        view: &SignatureView<'_>,
        tensors: &[Tensor<'_>],
        factors: &[(String, i64)],
    ) -> Parsed<OpShardingRule> {
        let mut operands: Vec<_> = tensors.iter().map(|tensor| tensor.mapping(factors)).collect();
        let results = operands.split_off(view.num_operands());
        let mut builder = RuleBuilder::with_mappings(operands, results);
        for (index, (name, size)) in factors.iter().enumerate() {
            let is_in_result = builder.is_in_result(FactorId::from_index(index));
            let listed = self.kinds.iter().find(|(other, _)| other == name).map(|(_, kind)| *kind);
            let kind = match listed {
                None if !is_in_result => FactorKind::Reduction,
                Some(FactorKind::Reduction) if is_in_result => {
                    return Err(format!("{name} is a reduction and is in a result"));
                }
                _ => listed.unwrap_or(FactorKind::PassThrough),
            };
            let is_blocked = self.blocked.contains(name);
            builder.reserve(*size, kind);
            builder.blocked_if(is_blocked);
            let may_differ =
                is_blocked || matches!(kind, FactorKind::NeedReplication | FactorKind::Permutation);
            if !may_differ {
                check_sizes(name, tensors, factors)?;
            }
        }
        builder.build().ok_or_else(|| "it does not fit the shapes".into())
    }
}

/// Drops factors of size 1 that other factors leave no dim to.
fn drop_hidden(factors: &mut Vec<(String, i64)>, tensors: &[Tensor<'_>]) {
    let all = factors.clone();
    let is_one = |name: &String| all.iter().any(|(other, size)| other == name && *size == 1);
    let has_dim = |name: &String| {
        let mut dims = tensors.iter().flat_map(|tensor| &tensor.dims);
        dims.any(|dim| dim.first() == Some(name) && dim.iter().all(is_one))
    };
    factors.retain(|(name, size)| *size != 1 || has_dim(name));
}

/// A tensor whose dims are spelled out.
struct Tensor<'a> {
    name: String,
    dims: Vec<Vec<String>>,
    shape: &'a [i64],
}

impl Tensor<'_> {
    /// Its dims by the places of their factors in `factors`; in a dim of several factors those of
    /// size 1 are left out.
    fn mapping(&self, factors: &[(String, i64)]) -> TensorMapping {
        let place = |name: &String| factors.iter().position(|(other, _)| other == name);
        let dim = |names: &Vec<String>| {
            let places = names.iter().filter_map(place);
            let mut ids: Vec<usize> = places.collect();
            if ids.iter().any(|&id| factors[id].1 != 1) {
                ids.retain(|&id| factors[id].1 != 1);
            } else {
                ids.truncate(1);
            }
            ids.into_iter().map(FactorId::from_index).collect()
        };
        TensorMapping { dims: self.dims.iter().map(dim).collect() }
    }
}

/// Gives each dim under `...` a factor of its own, counted from the minor end.
fn expand<'a>(name: &str, dims: &[Dim], shape: &'a [i64]) -> Parsed<Tensor<'a>> {
    let num_named = dims.iter().filter(|dim| **dim != Dim::Rest).count();
    let has_rest = num_named < dims.len();
    let rank = shape.len();
    if rank < num_named || (rank > num_named && !has_rest) {
        return Err(format!("{name} has {num_named} dims in it, and {rank} in the op"));
    }
    let mut expanded = Vec::with_capacity(rank);
    for dim in dims {
        match dim {
            Dim::Factors(factors) => expanded.push(factors.clone()),
            Dim::Rest => {
                expanded
                    .extend((0..rank - num_named).rev().map(|place| vec![format!("...{place}")]));
            }
        }
    }
    for (at, factor) in expanded.iter().flatten().enumerate() {
        if expanded.iter().flatten().skip(at + 1).any(|other| other == factor) {
            return Err(format!("{factor} is twice in {name}"));
        }
    }
    Ok(Tensor { name: name.to_owned(), dims: expanded, shape })
}

/// Whether the dims that `factor` is in have the product of their factors' sizes.
fn check_sizes(factor: &String, tensors: &[Tensor<'_>], factors: &[(String, i64)]) -> Parsed<()> {
    let size_of = |name: &String| {
        factors.iter().find(|(other, _)| other == name).map_or(1, |(_, size)| *size)
    };
    for tensor in tensors {
        for (dim, &size) in tensor.dims.iter().zip(tensor.shape) {
            let product = dim.iter().map(size_of).fold(1_i64, i64::saturating_mul);
            if dim.contains(factor) && product != size {
                let list = dim.join(" ");
                return Err(format!(
                    "{list} has size {size} in {} and {product} elsewhere",
                    tensor.name
                ));
            }
        }
    }
    Ok(())
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
    use crate::rules::Shapes;

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
