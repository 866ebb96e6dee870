//! Writes rules as the short strings that [`super::notation`] reads.

use crate::attribute::factor_symbol;
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use std::fmt::Write as _;

/// `rule` in short notation, `"i k, k j -> i j"`, without sizes, which follow from the shapes of an
/// op.
pub fn notation(rule: &OpShardingRule) -> String {
    let mut out = format!("{} -> {}", tensors(&rule.operands).trim_end(), tensors(&rule.results));
    out.truncate(out.trim_end().len());
    let is_in_result = |factor| rule.results.iter().any(|result| result.contains(factor));
    let hidden: Vec<FactorId> = (0..rule.num_factors())
        .map(FactorId::from_index)
        .filter(|&factor| rule.is_pass_through(factor) && !is_in_result(factor))
        .collect();
    // A factor that is in no result is a reduction by default.
    let lists = [
        ("pass_through", &hidden),
        ("need_replication", &rule.need_replication),
        ("permutation", &rule.permutation),
        ("blocked_propagation", &rule.blocked),
    ];
    for (name, factors) in lists.into_iter().filter(|(_, factors)| !factors.is_empty()) {
        let names: Vec<String> = factors.iter().map(|&factor| symbol(factor)).collect();
        let _ = write!(out, " {name}={{{}}}", names.join(", "));
    }
    out
}

fn symbol(factor: FactorId) -> String {
    factor_symbol(factor.index())
}

fn tensors(mappings: &[TensorMapping]) -> String {
    let texts: Vec<String> = mappings.iter().map(tensor).collect();
    texts.join(", ")
}

fn tensor(mapping: &TensorMapping) -> String {
    let dim = |factors: &Vec<FactorId>| {
        let names: Vec<String> = factors.iter().map(|&factor| symbol(factor)).collect();
        match &names[..] {
            [] => "_".to_owned(),
            [only] => only.clone(),
            _ => format!("({})", names.join(" ")),
        }
    };
    mapping.dims.iter().map(dim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::notation;
    use crate::attribute::parse_rule;

    #[test]
    fn rules_print_in_short_notation() {
        let short = |text: &str| notation(&parse_rule(text, 0).unwrap());
        assert_eq!(
            short("<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>"),
            "i k, k j -> i j"
        );
        assert_eq!(
            short("<([ij], [])->([i, j]) {i=8, j=16} permutation={j}>"),
            "(i j), -> i j permutation={j}"
        );
        assert_eq!(short("<([i, j])->([]) {i=8, j=2} reduction={i}>"), "i j -> pass_through={j}");
    }
}
