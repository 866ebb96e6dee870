//! Tests of valid and invalid shardings in text.

use super::sharding::{parse_sharding, read_sharding_per_value};
use crate::attribute::{parse_mesh, print_sharding, print_sharding_per_value, MeshScope};
use crate::error::{Code, Error, Result, Span};
use crate::ir::Program;
use crate::sharding::{ReductionOp, TensorSharding};
use crate::shardy::Version;

fn program() -> Program {
    let mut program = Program::default();
    for (symbol, mesh) in [
        ("mesh", r#"<["x"=8, "y"=4, "z"=2]>"#),
        ("maximal", "<[], device_ids=[3]>"),
        ("twelve", r#"<["a"=12, "data"=2]>"#),
    ] {
        let symbol = program.intern(symbol);
        program.add_mesh(symbol, parse_mesh(mesh, 0).unwrap());
    }
    program
}

fn problems(text: &str) -> Vec<(Code, String, Span)> {
    let error = parse_sharding(text, 0, &mut program()).unwrap_err();
    let list = error.diagnostics.into_iter();
    list.map(|d| (d.code, d.message, d.span.unwrap())).collect()
}

fn parse_sharding_per_value(
    text: &str,
    base: u32,
    scope: &mut dyn MeshScope,
) -> Result<Vec<TensorSharding>> {
    let read = read_sharding_per_value(text, base, scope)?;
    Error::check(read.iter().flat_map(|read| read.problems.clone()).collect())?;
    Ok(read.into_iter().map(|read| read.sharding).collect())
}

#[test]
fn shardings_print_as_they_are_parsed() {
    let mut program = program();
    for text in [
        "<@mesh, []>",
        "<@maximal, []>",
        r#"<@mesh, [{"x"}], unreduced=max{"y", "z"}>"#,
        r#"<@mesh, [{"x":(1)2, "y", ?}p1, {?}, {}], replicated={"x":(4)2}, unreduced={"z"}>"#,
        r#"<mesh<["a"=2, "b"=2], device_ids=[3, 2, 1, 0]>, [{"a"}p0]>"#,
        "<mesh<[]>, [{}]>",
    ] {
        let full = format!("#sdy.sharding{text}");
        for text in [text, &full, &format!("#sdy<sharding{text}>")] {
            let sharding = parse_sharding(text, 0, &mut program).unwrap();
            assert_eq!(format!("#sdy.sharding{}", print_sharding(&sharding, &program)), full);
        }
    }
    let text = r#"[<@mesh, [{"x"}]>, <mesh<["a"=2]>, []>]"#;
    for text in [text, &format!("#sdy.sharding_per_value<{text}>"), &format!("<{text}>")] {
        let shardings = parse_sharding_per_value(text, 0, &mut program).unwrap();
        let printed = print_sharding_per_value(&shardings, &program);
        assert!(text.contains(&printed));
    }
    let text = "#sdy.sharding < @mesh , [ { \"x\" : ( 2 ) 2 , ? } p3 // why\n ] , \
                unreduced = {\"z\"}, replicated={\"y\"}>";
    let sharding = parse_sharding(text, 0, &mut program).unwrap();
    let expected = r#"<@mesh, [{"x":(2)2, ?}p3], replicated={"y"}, unreduced={"z"}>"#;
    assert_eq!(print_sharding(&sharding, &program), expected);
}

#[test]
fn aliases_are_followed_once() {
    let mut program = program();
    for (name, text) in [("#a", r#"#sdy.sharding<@mesh, [{"x"}]>"#), ("#b", "#a")] {
        let name = program.intern(name);
        let span = program.add_text(text);
        program.define_alias(name, span);
    }
    let shardings = parse_sharding_per_value("[#a, #a]", 0, &mut program).unwrap();
    assert_eq!(print_sharding(&shardings[1], &program), r#"<@mesh, [{"x"}]>"#);
    assert!(parse_sharding_per_value("[#b]", 0, &mut program).is_err());
    assert!(parse_sharding_per_value("[#c]", 0, &mut program).is_err());
}

#[test]
fn names_that_are_not_there_are_reported() {
    let error = parse_sharding(r#"<@mehs, [{"x"}]>"#, 7, &mut program()).unwrap_err();
    let [problem] = &error.diagnostics[..] else { panic!("{error}") };
    assert_eq!((problem.code, problem.span), (Code::UnknownMesh, Some(Span::new(8, 13))));
    assert_eq!(problem.hint.as_deref(), Some("did you mean @mesh?"));
    assert_eq!(
        problems(r#"<@mesh, [{"w", "x"}, {"x"}]>"#),
        [
            (Code::UnknownAxis, "unknown axis name: \"w\"".into(), Span::new(10, 13)),
            (Code::AxisOverlap, "duplicate axis ref: \"x\"".into(), Span::new(22, 25)),
        ]
    );
    let mut program = program();
    let text = r#"[<@mesh, [{"q"}]>, <@nope, []>, <@mesh, [{"r"}]>]"#;
    let error = parse_sharding_per_value(text, 0, &mut program).unwrap_err();
    assert_eq!(error.diagnostics.len(), 3);
}

#[test]
fn malformed_sub_axes_are_refused() {
    let only = |text: &str| {
        let found = problems(&format!("<@mesh, [{{{text}}}]>"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Code::InvalidSubAxis);
        found[0].1.clone()
    };
    assert_eq!(only(r#""x":(0)2"#), "sub-axis pre-size must be at least 1: \"x\":(0)2");
    assert_eq!(only(r#""x":(2)1"#), "sub-axis sizes must be greater than 1: \"x\":(2)1");
    assert_eq!(
        only(r#""x":(2)8"#),
        "sub-axis next pre-size 16 doesn't divide the size of the full axis 8: \"x\":(2)8"
    );
    assert_eq!(only(r#""x":(1)8"#), "sub-axis size is equal to the full axis size: \"x\":(1)8");
    assert_eq!(
        only(r#""x":(9223372036854775807)2"#),
        "sub-axis next pre-size 18446744073709551614 doesn't divide the size of the full axis 8: \
         \"x\":(9223372036854775807)2"
    );
}

#[test]
fn axes_may_not_overlap() {
    let only = |text: &str| {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].0, found[0].1.clone())
    };
    let overlap = |text: &str| {
        let (code, message) = only(text);
        assert_eq!(code, Code::AxisOverlap);
        message
    };
    assert_eq!(
        overlap(r#"<@mesh, [{"x"}, {"x":(2)2}]>"#),
        "both sub-axis and full-axis are used for axis name: \"x\""
    );
    assert_eq!(
        overlap(r#"<@mesh, [{"x":(2)4}, {"x":(1)4}]>"#),
        "overlapping sub-axes: \"x\":(1)4, \"x\":(2)4"
    );
    assert_eq!(overlap(r#"<@mesh, [{"x"}], unreduced={"x"}>"#), "duplicate axis ref: \"x\"");
    // There are three refs, and each overlap is reported.
    let found = problems(r#"<@mesh, [{"x"}, {"x":(1)2}, {"x":(2)2}]>"#);
    assert_eq!(found.len(), 2);
    let one = r#"<mesh<["a"=1]>, [{"a"}, {"a"}]>"#;
    assert_eq!(overlap(one), "duplicate axis ref: \"a\"");
    let twelve = r#"<@twelve, [{"a":(1)2}, {"a":(3)2}]>"#;
    assert!(parse_sharding(twelve, 0, &mut program()).is_ok(), "the reference accepts it");
}

#[test]
fn lists_and_priorities_are_checked() {
    let only = |text: &str| {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Code::InvalidSharding);
        found[0].1.clone()
    };
    assert_eq!(
        only(r#"<@mesh, [{"x":(1)2, "x":(2)2}]>"#),
        "two consecutive sub-axes can be merged: \"x\":(1)2, \"x\":(2)2"
    );
    assert_eq!(
        only(r#"<@mesh, [], replicated={"y", "x"}>"#),
        "replicated axes are not ordered w.r.t. mesh"
    );
    assert_eq!(only("<@mesh, [{}p1]>"), "dim 0 is empty and closed but has a priority");
    assert_eq!(
        only("<@maximal, [{}]>"),
        "a single-device sharding can only have a sharding with rank 0 and no replicated or unreduced axes."
    );
}

#[test]
fn bad_text_is_refused_and_never_panics() {
    let good = r#"#sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {}], replicated={"y"}, unreduced={"z"}>"#;
    for end in 0..good.len() {
        assert!(parse_sharding(&good[..end], 0, &mut program()).is_err());
    }
    for bad in [
        r#"<@mesh, [{"x"}p01]>"#,
        r#"<@mesh, [{"x"}p]>"#,
        r#"<@mesh, [{"x"}q1]>"#,
        r#"<@mesh, [{"x"}p99999999999999999999]>"#,
        r#"<@mesh, [{?, "x"}]>"#,
        r#"<@mesh, [{"x" "y"}]>"#,
        r#"<@mesh, [{"x",}]>"#,
        "<@mesh, [], replicated={}>",
        r#"<@mesh, [], replicated={"x"}, replicated={"y"}>"#,
        r#"<@mesh, [], shuffled={"x"}>"#,
        "<@mesh::@x, []>",
        "<@mesh, []> x",
        "<#sdy.mesh<[]>, []>",
    ] {
        assert_eq!(problems(bad)[0].0, Code::Syntax, "{bad}");
    }
}

#[test]
fn reductions_are_those_of_newer_versions() {
    let parsed = |text: &str, shardy: Version| {
        let mut program = program();
        program.follow(shardy);
        parse_sharding(text, 0, &mut program)
    };
    for (text, expected) in [
        (r#"<@mesh, [], unreduced=sum{"x"}>"#, ReductionOp::Sum),
        (r#"<@mesh, [], unreduced{"x"}>"#, ReductionOp::Sum),
        (r#"<@mesh, [], unreduced = min {"x"}>"#, ReductionOp::Min),
    ] {
        assert_eq!(parsed(text, Version::NEWEST).unwrap().reduction_op, expected);
        let problem = parsed(text, Version::V0_10).unwrap_err().diagnostics.remove(0);
        let is_word = text.contains("sum") || text.contains("min");
        let code = if is_word { Code::ShardyVersion } else { Code::Syntax };
        assert_eq!(problem.code, code);
    }
    let problem = parsed(r#"<@mesh, [], unreduced=max{"x"}>"#, Version::V0_10).unwrap_err();
    let problem = &problem.diagnostics[0];
    assert_eq!(problem.message, "unreduced=max{...} is not in the Shardy of jaxlib 0.10");
    assert_eq!(problem.span, Some(Span::new(22, 25)));
    assert!(parsed(r#"<@mesh, [], unreduced=mean{"x"}>"#, Version::NEWEST).is_err());
}
