//! Tests the rules of single ops, including malformed ones. `tests/shardy/test_rules.py` compares
//! every family with the reference on random shapes.

use super::table::{Family, FAMILIES};
use super::{Shapes, SignatureView};
use crate::attribute::print_rule;
use crate::ir::OpInfo;
use crate::mlir::AttrValue;
use crate::shardy::Version;
use std::collections::HashSet;

/// Shapes from text, `2x3, , 4`: an empty one is a scalar, `-` is not a tensor.
fn shapes(text: &str) -> Vec<Option<Vec<i64>>> {
    let dims = |text: &str| text.split('x').filter_map(|dim| dim.parse().ok()).collect();
    let tensor = |text: &str| (text.trim() != "-").then(|| dims(text.trim()));
    text.split(',').map(tensor).collect()
}

fn rule(op: &str, types: &str, attributes: &str, surroundings: bool) -> String {
    let (operands, results) = types.split_once("->").unwrap();
    let (operands, results) = (shapes(operands), shapes(results));
    let operands: Vec<_> = operands.iter().map(|shape| shape.as_deref()).collect();
    let results: Vec<_> = results.iter().map(|shape| shape.as_deref()).collect();
    let shapes = Shapes::new(&operands, &results);
    let dict = AttrValue::parse(attributes);
    let fields = dict.fields().unwrap_or(&[]).to_vec();
    let mut view = SignatureView::new(op, &shapes, fields);
    view.surroundings = surroundings;
    view.shardy = Version::V0_10;
    let rule = Family::of(op).and_then(|family| (family.build)(&view));
    rule.map_or("none".into(), |rule| print_rule(&rule).replace("#sdy.op_sharding_rule", ""))
}

#[test]
fn the_table_names_known_ops_once() {
    let mut seen = HashSet::new();
    for family in FAMILIES {
        for op in family.ops {
            assert!(OpInfo::by_name(op).is_some(), "{op}");
            assert!(seen.insert(op), "{op}");
            assert_eq!(Family::of(op).map(|found| found.name), Some(family.name));
        }
    }
    assert!(Family::of("stablehlo.while").is_none());
}

#[test]
fn pointwise_dims_are_factors() {
    assert_eq!(
        rule("stablehlo.add", "2x3, 2x3 -> 2x3", "", false),
        "<([i, j], [i, j])->([i, j]) {i=2, j=3}>"
    );
    assert_eq!(rule("stablehlo.select", ", 4, 4 -> 4", "", false), "<([], [i], [i])->([i]) {i=4}>");
    assert_eq!(rule("stablehlo.add", "- -> -", "", false), "none");
}

#[test]
fn reshapes_split_and_merge() {
    let cases = [
        ("8x4 -> 2x16", "<([ij, k])->([i, jk]) {i=2, j=4, k=4}>"),
        ("2x3 -> 3x2", "<([i, k])->([j, l]) {i=2, j=3, k=3, l=2}>"),
        ("2x1x3 -> 6", "<([i, j, k])->([ik]) {i=2, j=1, k=3}>"),
        ("6 -> 1x2x3", "<([jk])->([i, j, k]) {i=1, j=2, k=3}>"),
        ("0x2 -> 2x0", "none"),
        ("2 -> 3", "none"),
        (" -> 1x1", "<([])->([i, j]) {i=1, j=1}>"),
    ];
    for (types, expected) in cases {
        assert_eq!(rule("stablehlo.reshape", types, "", false), expected, "{types}");
    }
    let huge = format!("{max}x{max} -> {max}x{max}", max = i64::MAX);
    assert_eq!(rule("stablehlo.reshape", &huge, "", false), "none");
}

#[test]
fn contractions_reduce() {
    let numbers = "{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], \
                   rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], \
                   rhs_contracting_dimensions = [1]>}";
    assert_eq!(
        rule("stablehlo.dot_general", "2x3x4, 2x4x5 -> 2x3x5", numbers, false),
        "<([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=3, k=5, l=4} reduction={l}>"
    );
    assert_eq!(
        rule("stablehlo.reduce", "2x3, -> 3", "{dimensions = array<i64: 0>}", false),
        "<([i, j], [])->([j]) {i=2, j=3} reduction={i}>"
    );
}

#[test]
fn surroundings_decide_between_two_rules() {
    let concatenate = |are_slices| {
        rule("stablehlo.concatenate", "2, 2 -> 4", "{dimension = 0 : i64}", are_slices)
    };
    assert_eq!(concatenate(false), "<([i], [i])->([i]) {i=4} need_replication={i}>");
    assert_eq!(concatenate(true), "<([i], [i])->([i]) {i=4} permutation={i}>");
}

/// A pseudo-random number generator.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
    fn shapes(&mut self) -> Vec<Option<Vec<i64>>> {
        let sizes = [0, 1, 2, 3, 8, i64::MAX, -1];
        let count = self.below(4);
        let shape = |noise: &mut Self| {
            let rank = noise.below(4);
            Some((0..rank).map(|_| sizes[noise.below(7) as usize]).collect())
        };
        (0..count).map(|_| if self.below(9) == 0 { None } else { shape(self) }).collect()
    }
    fn attribute(&mut self) -> &'static str {
        let values = [
            "0",
            "1",
            "-1",
            "7",
            "array<i64: 0>",
            "array<i64: 1, 0>",
            "array<i64: -3>",
            "true",
            "#stablehlo.dot<lhs_contracting_dimensions = [5], rhs_contracting_dimensions = [0]>",
            "#stablehlo.gather<offset_dims = [0, 1], collapsed_slice_dims = [9]>",
            "#stablehlo.scatter<update_window_dims = [1], input_batching_dims = [-1]>",
            "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>",
            "dense<0> : tensor<2x2xi64>",
            "9223372036854775807",
            "dense<[[1]]> : tensor<1x1xi64>",
            "#stablehlo<transpose TRANSPOSE>",
            "\"Qr\"",
            "\"ApproxTopK\"",
        ];
        values[self.below(values.len() as u64) as usize]
    }
}

#[test]
fn malformed_ops_never_panic() {
    let names = [
        "permutation",
        "broadcast_dimensions",
        "dimensions",
        "feature_index",
        "dot_dimension_numbers",
        "dimension_numbers",
        "batch_group_count",
        "feature_group_count",
        "dimension",
        "window_dimensions",
        "window_strides",
        "padding",
        "scatter_dimension_numbers",
        "left_side",
        "transpose_a",
        "fft_length",
        "all_gather_dim",
        "split_dimension",
        "concat_dimension",
        "scatter_dimension",
        "call_target_name",
    ];
    let mut noise = Noise(7);
    for round in 0..400 {
        for family in FAMILIES {
            let (operands, results) = (noise.shapes(), noise.shapes());
            let operands: Vec<_> = operands.iter().map(|shape| shape.as_deref()).collect();
            let results: Vec<_> = results.iter().map(|shape| shape.as_deref()).collect();
            let shapes = Shapes::new(&operands, &results);
            let fields = names.map(|name| (name, AttrValue::parse(noise.attribute()))).to_vec();
            let mut view = SignatureView::new(family.ops[0], &shapes, fields);
            view.conservative = round % 2 == 0;
            view.surroundings = round % 3 == 0;
            if let Some(rule) = (family.build)(&view) {
                print_rule(&rule);
            }
        }
    }
}
