//! Invariants of op sharding rules.
//!
//! 1. Factor sizes are at least 1; on an op with a dim of size 0 they may be 0.
//! 2. Every factor is in some mapping; no tensor has a factor twice.
//! 3. Every dim has a factor; where it has several, none has size 1.
//! 4. Lists of special factors are sorted and name no factor twice, and a factor is in at most one of
//!    reduction, need-replication and permutation.
//! 5. Reduction factors are in no result.
//! 6. There are a mapping for each operand and result, and at least one of each kind; a mapping has
//!    one entry for each dim, and its tensor has a static shape.
//! 7. The sizes of a dim's factors multiply to its size. A factor that needs communication anyway
//!    (need-replication, permutation) or is blocked may differ from the dim where it stands alone:
//!    padding and windows change sizes. Even so it has to fit some dim.
//!
//! The reference checks neither 1 nor 7, and its own rules for convolutions do not keep 7.

use super::problem::{unlocated, Part, Problem};
use super::rule::factor_symbol;
use crate::error::{Code, Diagnostic};
use crate::index::{FactorId, Id};
use crate::rule::{OpShardingRule, TensorMapping};

fn problem(part: Part, message: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidRule, part, message)
}

fn name(factor: FactorId) -> String {
    factor_symbol(factor.index())
}

/// Everything that is wrong with `rule` whatever op it is for, dims of size 0 aside.
pub fn verify_rule(rule: &OpShardingRule) -> Vec<Diagnostic> {
    unlocated(rule_problems(rule, 1))
}

/// The same by part, with factors of size `least` or more.
pub fn rule_problems(rule: &OpShardingRule, least: i64) -> Vec<Problem> {
    let num_factors = rule.num_factors();
    let mut problems = Vec::new();
    for (i, &size) in rule.factor_sizes.iter().enumerate() {
        if size < least {
            let symbol = factor_symbol(i);
            let message = format!("factor {symbol} has size {size}; it must be at least {least}");
            problems.push(problem(Part::Factor(i), message));
        }
    }
    let mut is_used = vec![false; num_factors];
    for (i, tensor) in rule.tensors().enumerate() {
        tensor_problems(rule, i, tensor, &mut is_used, &mut problems);
    }
    for (i, _) in is_used.iter().enumerate().filter(|(_, used)| !**used) {
        let message = format!("factor {} is in no mapping", factor_symbol(i));
        problems.push(problem(Part::Factor(i), message).with_hint("drop it from the sizes"));
    }
    special_problems(rule, &mut problems);
    problems
}

/// Invariants 2 and 3 of one tensor.
fn tensor_problems(
    rule: &OpShardingRule,
    index: usize,
    tensor: &TensorMapping,
    is_used: &mut [bool],
    problems: &mut Vec<Problem>,
) {
    let part = Part::Tensor(index);
    let mut seen = vec![false; rule.num_factors()];
    for (dim, factors) in tensor.dims.iter().enumerate() {
        if factors.is_empty() {
            problems.push(problem(part, format!("dim {dim} has no factor")));
        }
        for &factor in factors {
            let Some(&size) = rule.factor_sizes.get(factor.index()) else {
                problems.push(problem(part, format!("a factor of dim {dim} has no size")));
                continue;
            };
            if std::mem::replace(&mut seen[factor.index()], true) {
                let message = format!("factor {} is twice in one tensor", name(factor));
                problems.push(problem(part, message));
            }
            if size == 1 && factors.len() > 1 {
                let message =
                    format!("factor {} of size 1 shares dim {dim} with others", name(factor));
                problems.push(problem(part, message).with_hint("leave it out of that dim"));
            }
            is_used[factor.index()] = true;
        }
    }
}

/// Invariants 4 and 5.
fn special_problems(rule: &OpShardingRule, problems: &mut Vec<Problem>) {
    let lists = [
        ("reduction", &rule.reduction),
        ("need_replication", &rule.need_replication),
        ("permutation", &rule.permutation),
        ("blocked_propagation", &rule.blocked),
    ];
    let mut kind: Vec<Option<&str>> = vec![None; rule.num_factors()];
    for (list, factors) in lists {
        for pair in factors.windows(2).filter(|pair| pair[0] >= pair[1]) {
            let (a, b) = (name(pair[0]), name(pair[1]));
            let message = if a == b {
                format!("factor {a} is twice in {list}")
            } else {
                format!("the factors of {list} are not sorted: {a} stands before {b}")
            };
            problems.push(problem(Part::Whole, message));
        }
        for &factor in factors {
            let Some(kind) = kind.get_mut(factor.index()) else {
                problems.push(problem(Part::Whole, format!("a factor of {list} has no size")));
                continue;
            };
            if list == "blocked_propagation" {
                continue;
            }
            match kind.replace(list) {
                Some(other) if other != list => {
                    let message = format!("factor {} is in both {other} and {list}", name(factor));
                    problems.push(problem(Part::Factor(factor.index()), message));
                }
                _ => {}
            }
        }
    }
    for &factor in &rule.reduction {
        if rule.results.iter().any(|result| result.contains(factor)) {
            let message = format!("reduction factor {} is in a result", name(factor));
            problems.push(problem(Part::Factor(factor.index()), message));
        }
    }
}

/// Whether `rule`, which is sound by itself, fits an op with tensors of these shapes; `None` is a
/// type that is no ranked tensor of static shape.
pub fn verify_rule_shapes(
    rule: &OpShardingRule,
    operands: &[Option<Vec<i64>>],
    results: &[Option<Vec<i64>>],
) -> Vec<Diagnostic> {
    check_shapes(rule, operands, results, true)
}

/// The same without invariant 7.
pub fn verify_rule_ranks(
    rule: &OpShardingRule,
    operands: &[Option<Vec<i64>>],
    results: &[Option<Vec<i64>>],
) -> Vec<Diagnostic> {
    check_shapes(rule, operands, results, false)
}

fn check_shapes(
    rule: &OpShardingRule,
    operands: &[Option<Vec<i64>>],
    results: &[Option<Vec<i64>>],
    sizes_count: bool,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut fits = vec![!sizes_count; rule.num_factors()];
    let sides = [("operand", &rule.operands, operands), ("result", &rule.results, results)];
    for (side, mappings, shapes) in sides {
        if mappings.len() != shapes.len() || mappings.is_empty() {
            let (have, need) = (mappings.len(), shapes.len());
            let message =
                format!("the rule has {have} {side} mappings, and the op has {need} {side}s");
            problems.push(problem(Part::Whole, message));
            continue;
        }
        for (i, (mapping, shape)) in mappings.iter().zip(shapes).enumerate() {
            let what = format!("{side} {i}");
            match shape {
                Some(shape) if shape.len() != mapping.dims.len() => {
                    let (have, need) = (mapping.dims.len(), shape.len());
                    let message =
                        format!("the mapping of {what} has {have} dims, and the tensor has {need}");
                    problems.push(problem(Part::Whole, message));
                }
                Some(shape) if sizes_count => {
                    size_problems(rule, &what, mapping, shape, &mut fits, &mut problems);
                }
                Some(_) => {}
                None => {
                    let message = format!("{what} is not a ranked tensor of static shape");
                    problems.push(problem(Part::Whole, message));
                }
            }
        }
    }
    if problems.is_empty() {
        for (i, _) in fits.iter().enumerate().filter(|(_, fits)| !**fits) {
            let (symbol, size) = (factor_symbol(i), rule.factor_sizes[i]);
            let message =
                format!("factor {symbol} has size {size}, and no dim of it has that size");
            problems.push(problem(Part::Factor(i), message));
        }
    }
    unlocated(problems)
}

/// Invariant 7 of one tensor. Notes in `fits` which factors fit a dim.
fn size_problems(
    rule: &OpShardingRule,
    what: &str,
    mapping: &TensorMapping,
    shape: &[i64],
    fits: &mut [bool],
    problems: &mut Vec<Problem>,
) {
    for (dim, (factors, &size)) in mapping.dims.iter().zip(shape).enumerate() {
        let product = factors.iter().try_fold(1i64, |product, factor| {
            product.checked_mul(*rule.factor_sizes.get(factor.index())?)
        });
        if product == Some(size) {
            for factor in factors {
                fits[factor.index()] = true;
            }
            continue;
        }
        if let [factor] = factors[..] {
            let may_differ = rule.permutation.contains(&factor)
                || rule.need_replication.contains(&factor)
                || rule.blocked.contains(&factor);
            if may_differ {
                continue;
            }
        }
        let symbols: String = factors.iter().map(|&factor| name(factor)).collect();
        let product = product.map_or("too large a product".to_owned(), |p| p.to_string());
        let message = format!(
            "dim {dim} of {what} has size {size}, and its factors {symbols} have {product}"
        );
        problems.push(problem(Part::Whole, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{parse_lone_rule, parse_rule};

    fn messages(text: &str) -> Vec<String> {
        let error = parse_lone_rule(text).unwrap_err();
        error.diagnostics.into_iter().map(|d| d.message).collect()
    }

    #[test]
    fn every_mistake_is_found() {
        assert_eq!(
            messages("<([i, i])->([j]) {i=0, j=2, k=3}>"),
            [
                "factor i has size 0; it must be at least 1",
                "factor i is twice in one tensor",
                "factor k is in no mapping",
            ]
        );
        assert_eq!(
            messages("<([ij, k])->([k]) {i=1, j=2, k=3} reduction={k, j} permutation={k}>"),
            [
                "factor i of size 1 shares dim 0 with others",
                "the factors of reduction are not sorted: k stands before j",
                "factor k is in both reduction and permutation",
                "reduction factor k is in a result",
            ]
        );
    }

    #[test]
    fn sizes_have_to_fit_the_dims() {
        let check = |text: &str, operand: &[i64], result: &[i64]| -> Vec<String> {
            let rule = parse_rule(text, 0).unwrap();
            let found =
                verify_rule_shapes(&rule, &[Some(operand.to_vec())], &[Some(result.to_vec())]);
            found.into_iter().map(|d| d.message).collect()
        };
        assert!(check("<([ij])->([i, j]) {i=2, j=4}>", &[8], &[2, 4]).is_empty());
        assert_eq!(
            check("<([ij])->([i, j]) {i=2, j=4}>", &[8], &[2, 5]),
            ["dim 1 of result 0 has size 5, and its factors j have 4"]
        );
        assert!(check("<([i])->([i]) {i=0}>", &[0], &[0]).is_empty());
        assert_eq!(check("<([i])->([i]) {i=0}>", &[8], &[8]).len(), 2);
        assert!(check("<([i])->([i]) {i=8} permutation={i}>", &[8], &[6]).is_empty());
        assert_eq!(
            check("<([i])->([i]) {i=7} permutation={i}>", &[8], &[6]),
            ["factor i has size 7, and no dim of it has that size"]
        );
        assert_eq!(
            check("<([i])->([i]) {i=8}>", &[8, 2], &[8]),
            ["the mapping of operand 0 has 1 dims, and the tensor has 2"]
        );
    }
}
