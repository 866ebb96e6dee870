//! Invariants of op sharding rules.
//!
//! 1. Factor sizes are at least 1; on an op with a dim of size 0 they may be 0.
//! 2. Every factor is in some mapping; no tensor has a factor twice.
//! 3. Every dim has a factor; if it has several, none has size 1.
//! 4. Lists of special factors are sorted and have no factor twice, and a factor is in at most one
//!    of reduction, need-replication and permutation.
//! 5. Reduction factors are in no result.
//! 6. There is a mapping for each operand and result, and at least one of each kind; a mapping has
//!    one entry for each dim, and its tensor has a static shape.
//! 7. The size of a dim is the product of its factors' sizes. A factor that needs communication
//!    anyway (need-replication, permutation) or is blocked may have another size than a dim of
//!    which it is the only factor, since padding and windows change sizes. Even so it has to fit
//!    some dim.
//!
//! The reference checks neither 1 nor 7, and its own rules for convolutions violate 7.

use super::problem::{unlocated, Part, Problem};
use super::rule::{factor_symbol, SPECIAL_LISTS};
use crate::error::{Code, Diagnostic};
use crate::index::{FactorId, Id};
use crate::ir::StaticShape;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};

fn problem(part: Part, message: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidRule, part, message)
}

fn name(factor: FactorId) -> String {
    factor_symbol(factor.index())
}

/// The reference's name of the `index`-th tensor of an op, operands first.
pub(super) fn tensor_name(index: usize, num_operands: usize, num_results: usize) -> String {
    let (side, at, count) = if index < num_operands {
        ("operand", index, num_operands)
    } else {
        ("result", index - num_operands, num_results)
    };
    if count == 1 {
        format!("{side} -")
    } else {
        format!("{side} {at} -")
    }
}

/// The error message that the factor `index` of the tensor `name` has no size.
pub(super) fn out_of_range(name: &str, index: i64, num_factors: usize) -> String {
    format!(
        "{name} expecting factor indices to be within 0<=...<num_factors; received: {index}, \
         num_factors: {num_factors}"
    )
}

/// All errors in `rule` that do not depend on the op, for an op without dims of size 0.
pub fn verify_rule(rule: &OpShardingRule) -> Vec<Diagnostic> {
    unlocated(rule_problems(rule, 1))
}

/// All errors in `rule` that do not depend on the op, by part; the smallest valid factor size is
/// `least`. Factors without a valid id were reported by the parser.
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
    // For each factor the last tensor that has it.
    let mut last_user: Vec<Option<usize>> = vec![None; num_factors];
    for (i, tensor) in rule.tensors().enumerate() {
        tensor_problems(rule, i, tensor, &mut last_user, &mut problems);
    }
    for (i, _) in last_user.iter().enumerate().filter(|(_, user)| user.is_none()) {
        let (symbol, size) = (factor_symbol(i), rule.factor_sizes[i]);
        let message =
            format!("has factor {symbol}={size} that isn't used in operand and result mappings");
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
    last_user: &mut [Option<usize>],
    problems: &mut Vec<Problem>,
) {
    let tensor_name = tensor_name(index, rule.operands.len(), rule.results.len());
    for (dim, factors) in tensor.dims.iter().enumerate() {
        let mut report = |message: String, hint: &str| {
            problems.push(problem(Part::TensorDim(index, dim), message).with_hint(hint));
        };
        if factors.is_empty() {
            let message = format!("{tensor_name} dim mapping must have at least one factor");
            report(message, "give it a factor of its own, of size 1 if the dim has size 1");
        }
        for &factor in factors.iter().filter(|factor| factor.is_some()) {
            let Some(&size) = rule.factor_sizes.get(factor.index()) else {
                let message = out_of_range(&tensor_name, factor.index() as i64, rule.num_factors());
                let hint = format!("give the size of {}: {{i=8, j=16}}", name(factor));
                report(message, &hint);
                continue;
            };
            if last_user[factor.index()].replace(index) == Some(index) {
                let message =
                    format!("{tensor_name} cannot reuse factors for the same tensor value");
                report(message, &format!("factor {} is twice in it", name(factor)));
            }
            if size == 1 && factors.len() > 1 {
                let message = format!(
                    "{tensor_name} dim mapping can't have a factor of size 1 if there are multiple \
                     factors"
                );
                report(message, &format!("leave factor {} out of that dim", name(factor)));
            }
        }
    }
}

/// Invariants 4 and 5.
fn special_problems(rule: &OpShardingRule, problems: &mut Vec<Problem>) {
    let lists = [&rule.reduction, &rule.need_replication, &rule.permutation, &rule.blocked];
    let mut kind: Vec<Option<usize>> = vec![None; rule.num_factors()];
    for (list, factors) in lists.into_iter().enumerate() {
        for (at, pair) in factors.windows(2).enumerate().filter(|(_, pair)| pair[0] >= pair[1]) {
            let (message, hint) = if pair[0] == pair[1] {
                let hint = format!("drop one {}", name(pair[1]));
                ("indices of special factors must be unique", hint)
            } else {
                let hint = format!("put {} before {}", name(pair[1]), name(pair[0]));
                ("indices of special factors must be sorted", hint)
            };
            problems.push(problem(Part::Special(list, at + 1), message).with_hint(hint));
        }
        for (at, &factor) in factors.iter().enumerate().filter(|(_, factor)| factor.is_some()) {
            let part = Part::Special(list, at);
            let Some(kind) = kind.get_mut(factor.index()) else {
                let (count, index) = (rule.num_factors(), factor.index());
                let message = format!("index must be less than {count}, got: {index}");
                let hint = format!("factor {} has no size", name(factor));
                problems.push(problem(part, message).with_hint(hint));
                continue;
            };
            if SPECIAL_LISTS[list] == "blocked_propagation" {
                continue;
            }
            if let Some(other) = kind.replace(list).filter(|&other| other != list) {
                let message = "a factor can only be in one of the reduction, need replication, or \
                               permutation factor sets";
                let lists = format!("{} and {}", SPECIAL_LISTS[other], SPECIAL_LISTS[list]);
                let hint = format!("factor {} is in both {lists}", name(factor));
                problems.push(problem(part, message).with_hint(hint));
            }
        }
    }
    let in_results =
        has_factor(rule, rule.results.iter().flat_map(|result| &result.dims).flatten());
    for (at, &factor) in rule.reduction.iter().enumerate() {
        if in_results.get(factor.index()) == Some(&true) {
            let message = "reduction factor cannot be in result mappings";
            let hint = format!("{} is in a result", name(factor));
            problems.push(problem(Part::Special(0, at), message).with_hint(hint));
        }
    }
}

/// For each factor of `rule`, whether it is in `factors`.
fn has_factor<'a>(
    rule: &OpShardingRule,
    factors: impl IntoIterator<Item = &'a FactorId>,
) -> Vec<bool> {
    let mut has = vec![false; rule.num_factors()];
    for factor in factors {
        if let Some(has) = has.get_mut(factor.index()) {
            *has = true;
        }
    }
    has
}

/// Whether `rule` fits an op with tensors of these shapes.
pub fn verify_rule_shapes(
    rule: &OpShardingRule,
    operands: &[StaticShape],
    results: &[StaticShape],
) -> Vec<Diagnostic> {
    check_shapes(rule, operands, results, true)
}

/// Whether `rule` fits an op with tensors of these ranks: [`verify_rule_shapes`] without invariant
/// 7.
pub fn verify_rule_ranks(
    rule: &OpShardingRule,
    operands: &[StaticShape],
    results: &[StaticShape],
) -> Vec<Diagnostic> {
    check_shapes(rule, operands, results, false)
}

fn check_shapes(
    rule: &OpShardingRule,
    operands: &[StaticShape],
    results: &[StaticShape],
    sizes_count: bool,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut fits = vec![!sizes_count; rule.num_factors()];
    let differing = rule.permutation.iter().chain(&rule.need_replication).chain(&rule.blocked);
    let may_differ = has_factor(rule, differing);
    let sides = [("operand", &rule.operands, operands), ("result", &rule.results, results)];
    for (side, mappings, shapes) in sides {
        if mappings.len() != shapes.len() {
            let (have, need) = (mappings.len(), shapes.len());
            let message = format!("number of {side}s and mappings must match: {need} != {have}");
            problems.push(problem(Part::Whole, message));
            continue;
        }
        if mappings.is_empty() {
            let message = format!(
                "number of {side}s mappings cannot be 0. Op sharding rules can only be defined on \
                 operations with at least one operand and result."
            );
            problems.push(problem(Part::Whole, message));
        }
        for (i, (mapping, shape)) in mappings.iter().zip(shapes).enumerate() {
            let name =
                if shapes.len() == 1 { format!("{side} -") } else { format!("{side} {i} -") };
            match shape {
                Ok(shape) if shape.len() != mapping.dims.len() => {
                    let (have, need) = (mapping.dims.len(), shape.len());
                    let message = format!("{name} mapping rank must match: {have} != {need}");
                    problems.push(problem(Part::Whole, message));
                }
                Ok(shape) if sizes_count => {
                    let what = format!("{side} {i}");
                    let checked = Sizes { rule, may_differ: &may_differ, what: &what };
                    size_problems(&checked, mapping, shape, &mut fits, &mut problems);
                }
                Ok(_) => {}
                Err(ty) => {
                    let message = format!(
                        "{name} expected a ranked tensor with a static shape. type: '{ty}'"
                    );
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

/// The data for checking the sizes of a tensor.
struct Sizes<'a> {
    rule: &'a OpShardingRule,
    /// For each factor, whether its size may differ from that of a dim of which it is the only
    /// factor.
    may_differ: &'a [bool],
    /// The name of the tensor in messages.
    what: &'a str,
}

/// Checks invariant 7 for one tensor. Records in `fits` the factors that fit a dim.
fn size_problems(
    &Sizes { rule, may_differ, what }: &Sizes<'_>,
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
            // The reference gives a dim without factors a factor of size 1.
            if rule.factor_sizes.get(factor.index()) == Some(&1) {
                fits[factor.index()] = true;
                continue;
            }
            if may_differ.get(factor.index()) == Some(&true) {
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
                "operand - cannot reuse factors for the same tensor value",
                "has factor k=3 that isn't used in operand and result mappings",
            ]
        );
        assert_eq!(
            messages("<([ij], [k])->([k]) {i=1, j=2, k=3} reduction={k, j} permutation={k}>"),
            [
                "operand 0 - dim mapping can't have a factor of size 1 if there are multiple factors",
                "indices of special factors must be sorted",
                "a factor can only be in one of the reduction, need replication, or permutation \
                 factor sets",
                "reduction factor cannot be in result mappings",
            ]
        );
    }

    #[test]
    fn sizes_have_to_fit_the_dims() {
        let check = |text: &str, operand: &[i64], result: &[i64]| -> Vec<String> {
            let rule = parse_rule(text, 0).unwrap();
            let found = verify_rule_shapes(&rule, &[Ok(operand.to_vec())], &[Ok(result.to_vec())]);
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
            ["operand - mapping rank must match: 1 != 2"]
        );
    }
}
