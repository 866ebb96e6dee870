//! Ops that repeat the text of an earlier op are parsed like it, whatever is around them.

use super::{op, parse, parsed, print, uses, value};
use crate::error::Code;

/// A function of this body on two values.
fn in_function(body: &str) -> String {
    format!(
        "sdy.mesh @m = <[\"x\"=2]>\n\
         func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) {{\n{body}\nreturn\n}}\n"
    )
}

#[test]
fn repeated_ops_have_their_own_names_and_places() {
    let text = in_function(
        "%0 = stablehlo.add %a, %b {k = 1 : i32} : tensor<2xf32>\n\
         %long_name = stablehlo.add %b, %0 {k = 1 : i32} : tensor<2xf32> loc(\"here\")\n\
         %2 = stablehlo.add %long_name, %long_name {k = 1 : i32} : tensor<2xf32>  // loc(no)",
    );
    let program = parsed(&text);
    assert_eq!(print(&program), text);
    let [first, second, third] = ["%0", "%long_name", "%2"].map(|name| op(&program, name));
    assert_eq!(program.signature(first), program.signature(second));
    assert_eq!(program.signature(first), program.signature(third));
    for op in [first, second, third] {
        assert_eq!(program.attr(op, "k"), Some("1 : i32"));
        assert_eq!(program.text().get(program.printing().op(op).dict), "{k = 1 : i32}");
    }
    assert_eq!(program.text().get(program.loc(second)), "\"here\"");
    assert!(program.loc(third).is_empty());
    let twice = ("stablehlo.add".to_owned(), 1);
    assert_eq!(uses(&program, "%long_name"), [twice, ("stablehlo.add".to_owned(), 0)]);
}

#[test]
fn repeated_ops_have_shardings_regions_and_groups() {
    let sharding = "{sdy.sharding = #sdy.sharding_per_value<[<@m, [{\"x\"}]>]>}";
    let text = in_function(&format!(
        "%0 = stablehlo.abs %a {sharding} : tensor<2xf32>\n\
         %1 = stablehlo.abs %0 {sharding} : tensor<2xf32>\n\
         %c = stablehlo.constant dense<0.0> : tensor<f32>\n\
         %2 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n\
         %3 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n\
         %4:2 = \"x.y\"(%2) : (tensor<f32>) -> (tensor<f32>, tensor<2xf32>)\n\
         %5:2 = \"x.y\"(%3) : (tensor<f32>) -> (tensor<f32>, tensor<2xf32>)\n\
         %6 = stablehlo.abs %4#1 : tensor<2xf32>\n\
         %7 = stablehlo.abs %5#1 : tensor<2xf32>"
    ));
    let program = parsed(&text);
    assert_eq!(print(&program), text);
    let sharding = |name| program.sharding(value(&program, name));
    assert!(sharding("%0").is_some());
    assert_eq!(sharding("%0"), sharding("%1"));
    let second = op(&program, "%3");
    let body = program.region_terminator(second, 0).expect("it has a body");
    assert_eq!(program.op_name(body), "stablehlo.return");
    assert_eq!(program.operand(op(&program, "%7"), 0), value(&program, "%5#1"));
}

#[test]
fn what_follows_a_repeated_op_is_looked_at() {
    let text = in_function(
        "%0, %1 = \"x.y\"(%a) {s = \"%a\"} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n\
         %2, %3 = \"x.y\"(%b) {s = \"%b\"} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n\
         %4 = stablehlo.iota dim = 0 : tensor<2xf32>\n\
         %5 = stablehlo.iota dim = 0 : tensor<2xf32>\nloc(\"next line\")\n\
         stablehlo.optimization_barrier %0, %1 : tensor<2xf32>,\ntensor<2xf32>\n\
         stablehlo.optimization_barrier %2, %3 : tensor<2xf32>,\ntensor<2xf32>\n\
         %6 = stablehlo.add %0, %4 : tensor<2xf32>\n\
         %7 = stablehlo.add %0, %4 : tensor<2xf32> // no\n\
         // %8 = stablehlo.add %0, %4 : tensor<2xf32>",
    );
    let program = parsed(&text);
    assert_eq!(print(&program), text);
    assert_eq!(program.attr(op(&program, "%2"), "s"), Some("\"%b\""));
    assert_eq!(program.text().get(program.loc(op(&program, "%5"))), "\"next line\"");
    // The comma continues the op, but no type follows.
    let line = "%5 = stablehlo.iota dim = 0 : tensor<2xf32>\n";
    let longer = text.replace(line, &format!("{line}, "));
    let error = parse(longer.as_str().into()).expect_err("an op is no type");
    assert_eq!(error.diagnostics[0].code, Code::Syntax);
}

#[test]
fn mistakes_in_repeated_ops_are_found() {
    let cases = [
        ("%1 = stablehlo.abs %no : tensor<2xf32>", Code::UndefinedValue, "%no"),
        ("%0 = stablehlo.abs %a : tensor<2xf32>", Code::RedefinedValue, "%0"),
        ("%1 = stablehlo.abs %c : tensor<2xf32>", Code::TypeMismatch, "%c"),
        ("%1 = stablehlo.abs % : tensor<2xf32>", Code::Syntax, " "),
        ("%1 = stablehlo.abs %4294967296 : tensor<2xf32>", Code::UndefinedValue, "%4294967296"),
        ("%1 = stablehlo.abs %00 : tensor<2xf32>", Code::UndefinedValue, "%00"),
    ];
    for (line, code, place) in cases {
        let text = in_function(&format!(
            "%c = stablehlo.constant dense<0.0> : tensor<f32>\n\
             %0 = stablehlo.abs %a : tensor<2xf32>\n{line}"
        ));
        let error = parse(text.as_str().into()).expect_err(line);
        let span = error.diagnostics[0].span.expect("it has a place");
        let found = &text[span.start as usize..span.end as usize];
        assert_eq!((error.diagnostics[0].code, found), (code, place), "{line}");
    }
}
