//! Text of op sharding rules:
//! `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom>`.
//!
//! Factors are called `i` to `z`, then `z_1`, `z_2` and so on; a dim of several factors writes them
//! without a gap, `ij`. `rule_reader.rs` reads them.

use crate::index::Id;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use std::fmt::Write as _;

/// The number of factors with a one-letter symbol.
pub(super) const NUM_LETTERS: u8 = b'z' - b'i' + 1;

/// The four lists of special factors, in the order in which they are written.
pub(super) const SPECIAL_LISTS: [&str; 4] =
    ["reduction", "need_replication", "permutation", "blocked_propagation"];

/// The symbol of the `index`-th factor: `i` to `z`, `z_1`, ...
pub fn factor_symbol(index: usize) -> String {
    if index < usize::from(NUM_LETTERS) {
        return char::from(b'i' + index as u8).to_string();
    }
    format!("z_{}", index + 1 - usize::from(NUM_LETTERS))
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
    use crate::attribute::{parse_rule, print_rule};
    use crate::error::{Code, Span};

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
            "<([i j])->([i]) {i=2}>",
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
        assert_eq!(
            error.diagnostics[0].message,
            "result - expecting factor indices to be within 0<=...<num_factors; \
             received: 9223372036854775017, num_factors: 1"
        );
        assert_eq!(error.diagnostics[0].span, Some(Span::new(10, 31)));
    }
}
