//! Errors in a text, and their spans.

use super::super::parse;
use crate::error::Code;

/// The code of the first error in `text`, and the text at its span.
fn mistake(text: &str) -> (Code, &str) {
    let error = parse(text.into()).map(|_| ()).expect_err(text);
    let span = error.diagnostics[0].span.expect("mistakes in text have places");
    (error.diagnostics[0].code, &text[span.start as usize..span.end as usize])
}

#[test]
fn mistakes_have_codes_and_places() {
    let in_function =
        |body: &str| format!("func.func @f(%a: tensor<2xf32>) {{\n{body}\nreturn\n}}");
    let cases = [
        ("%0 = stablehlo.add %b, %b : tensor<2xf32>", Code::UndefinedValue, "%b"),
        ("%0 = stablehlo.add %a, %a#1 : tensor<2xf32>", Code::UndefinedValue, "%a#1"),
        ("%a = stablehlo.abs %a : tensor<2xf32>", Code::RedefinedValue, "%a"),
        ("%0 = stablehlo.abs %a : tensor<3xf32>", Code::TypeMismatch, "%a"),
        ("%0, %1 = stablehlo.abs %a : tensor<2xf32>", Code::TypeMismatch, "%0, %1 = stablehlo.abs"),
        ("%0 = stablehlo.abs %a %1 = x", Code::Syntax, "%"),
        ("%0 = x.y %a : i32", Code::Syntax, "x.y"),
        ("%0 = stablehlo.iota %a : tensor<2xf32>", Code::Syntax, "%"),
        ("%0 = stablehlo.complex %a : tensor<2xcomplex<f32>>", Code::TypeMismatch, "stablehlo.complex"),
        ("%0 = stablehlo.select : tensor<2xi1>, tensor<2xf32>", Code::TypeMismatch, "stablehlo.select"),
        ("func.call @g() : () -> ()", Code::UnknownSymbol, "@g"),
        ("func.call @f() : () -> ()", Code::TypeMismatch, "@f"),
        ("\"x.y\"()[^no] : () -> ()", Code::UnknownSymbol, "^no"),
        ("\"x.y\"() {a = 1, a = 2} : () -> ()", Code::Syntax, "a"),
        ("\"x.y\"() {a = [1} : () -> ()", Code::Syntax, "}"),
        ("\"sdy.sharding_group\"() <{group_id = 1}> : () -> ()", Code::InvalidOp, "\"sdy.sharding_group\""),
        ("\"x.y\"(%l) : (i32) -> ()\n%l = \"x.z\"() : () -> i32", Code::UndefinedValue, "%l"),
        ("%0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[<@no, [{}]>]>} : tensor<2xf32>", Code::UnknownMesh, "@no"),
    ];
    for (body, code, place) in cases {
        let text = in_function(body);
        assert_eq!(mistake(&text), (code, place), "{body}");
    }
}

#[test]
fn mistakes_outside_of_functions_too() {
    let cases = [
        ("func.func @f() { return }\nfunc.func private @f()", Code::RedefinedSymbol, "@f"),
        ("func.func private @f(!t)", Code::UnknownSymbol, "!t"),
        ("module {", Code::Syntax, ""),
        ("#a = [", Code::Syntax, ""),
        ("\"unclosed", Code::Syntax, "\""),
        ("func.func @f(i32) { return }", Code::Syntax, "i"),
        ("func.func @f() -> i32 { return }", Code::TypeMismatch, "return"),
        ("func.func @f() { }", Code::InvalidOp, "func.func"),
        ("\"builtin.module\"() : () -> ()", Code::InvalidOp, "\"builtin.module\""),
        ("sdy.mesh @m = <[\"x\"=2]>\nfunc.func private @f(tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, []>})", Code::InvalidSharding, "#sdy.sharding<@m, []>"),
    ];
    for (text, code, place) in cases {
        assert_eq!(mistake(text), (code, place), "{text}");
    }
    let deep = "\"x.y\"() ({\n".repeat(20_000);
    assert_eq!(mistake(&deep).0, Code::NestedTooDeeply);
    let tuples = format!("func.func private @f({}i1{})", "tuple<".repeat(9999), ">".repeat(9999));
    assert_eq!(mistake(&tuples).0, Code::NestedTooDeeply);
}

#[test]
fn hints_name_what_was_meant() {
    let text = "func.func @main(%weights: i32) {\n\"x.y\"(%weight) : (i32) -> ()\nfunc.call @man() : () -> ()\nreturn\n}";
    let error = parse(text.into()).expect_err("a name is wrong");
    assert_eq!(error.diagnostics[0].hint.as_deref(), Some("did you mean %weights?"));
    let text = text.replace("%weight)", "%weights)");
    let error = parse(text.as_str().into()).expect_err("a symbol is wrong");
    assert_eq!(error.diagnostics[0].hint.as_deref(), Some("did you mean @main?"));
}

#[test]
fn values_from_outside_are_not_seen_in_isolated_regions() {
    let text = r#"func.func @f(%a: tensor<2xf32>) {
  %0 = sdy.named_computation<"n">(%a) (%b: tensor<2xf32>) {
    sdy.return %a : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return
}"#;
    assert_eq!(mistake(text), (Code::UndefinedValue, "%a"));
}
