//! Tests of pipelines: how they are printed, what they expand to, and errors in them.

use super::*;

fn parse(text: &str) -> Pipeline {
    Pipeline::parse(text, Version::NEWEST).unwrap()
}

fn mistake(text: &str) -> (String, String, String) {
    let diagnostic = Pipeline::parse(text, Version::NEWEST).unwrap_err().diagnostics.remove(0);
    let place = diagnostic.span.map_or("", |span| &text[span.start as usize..span.end as usize]);
    (diagnostic.message, place.to_owned(), diagnostic.hint.unwrap_or_default())
}

#[test]
fn prints_every_option_and_parses_what_it_prints() {
    for (text, printed) in [
        ("builtin.module()", "builtin.module()"),
        (
            " builtin.module( symbol-dce , func.func( sdy-drop-sharding-rules ) ) ",
            "builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules))",
        ),
        (
            "builtin.module(canonicalize{enable-patterns=sdy-reshard,sdy-collective})",
            "builtin.module(canonicalize{cse-between-iterations=false  \
             enable-patterns={sdy-reshard,sdy-collective}  max-iterations=10 \
             max-num-rewrites=-1 region-simplify=normal test-convergence=false top-down=true})",
        ),
        (
            "builtin.module(sdy-op-priority-propagate{propagation-strategy=basic \
             conservative-propagation run-op-priority-propagation=0})",
            "builtin.module(sdy-op-priority-propagate{conservative-propagation=true \
             debug-propagation-edge-sharding=false debug-sharding-origins=false \
             keep-sharding-rules=false module-dump-directory= propagation-strategy=basic \
             run-op-priority-propagation=false})",
        ),
        (
            "any(sdy-unflatten-call-graph{dedup-functions-fully=1})",
            "any(sdy-unflatten-call-graph{dedup-functions-fully=true})",
        ),
    ] {
        assert_eq!(parse(text).to_string(), printed);
        assert_eq!(parse(printed).to_string(), printed);
    }
}

#[test]
fn pipelines_expand_to_passes_of_the_table() {
    for pipeline in pipeline_table::PIPELINES {
        for shardy in Version::ALL {
            let options = Options::defaults(pipeline.options, shardy);
            let items = (pipeline.expand)(pipeline_table::Expansion { shardy }, &options).unwrap();
            let printed = Pipeline::on_module(items, shardy).to_string();
            assert_eq!(Pipeline::parse(&printed, shardy).unwrap().to_string(), printed);
        }
    }
    let whole = parse("builtin.module(sdy-propagation-pipeline)").to_string();
    assert_eq!(
        whole,
        Pipeline::propagation(Completion::default(), Version::NEWEST).unwrap().to_string()
    );
    let kept = Pipeline::propagation(
        Completion {
            up_to_priority: Some(3),
            keep_non_divisible_on_io: true,
            ..Completion::default()
        },
        Version::NEWEST,
    );
    let kept = kept.unwrap().to_string();
    assert!(kept.contains(" up-to-priority=3}"));
    assert!(!kept.contains("input-output-shardings"));
    let explicit =
        Pipeline::with_reshards(Completion::default(), Version::NEWEST).unwrap().to_string();
    assert!(explicit.contains("sdy-insert-explicit-reshards{enable-full-version=true"));
    assert!(!explicit.contains("sdy-reshard-to-collectives"));
}

#[test]
fn flags_make_a_pipeline_in_their_order() {
    let flags = ["--sdy-import-pipeline", "-sdy-basic-propagate='keep-sharding-rules=true'"];
    let flags: Vec<String> =
        flags.into_iter().chain(["--sdy-sink-data-flow-edges"]).map(str::to_owned).collect();
    let printed = Pipeline::from_flags(&flags, Version::V0_10).unwrap().to_string();
    assert!(printed.starts_with("builtin.module(symbol-dce,sdy-lift-inlined-meshes,"));
    assert!(printed.contains(
        "sdy-basic-propagate{conservative-propagation=false \
         debug-propagation-edge-sharding=false debug-sharding-origins=false \
         keep-sharding-rules=true module-dump-directory=},func.func(sdy-sink-data-flow-edges{"
    ));
    let error =
        Pipeline::from_flags(&["--sdy-basic-propagte".to_owned()], Version::NEWEST).unwrap_err();
    assert_eq!(error.diagnostics[0].span.map(|span| (span.start, span.end)), Some((2, 20)));
}

#[test]
fn mistakes_are_pointed_at() {
    let cases = [
        ("", "a pipeline starts with the op that it runs on", "", "write builtin.module(...)"),
        (
            "symbol-dce",
            "a pipeline starts with the op that it runs on",
            "symbol-dce",
            "write builtin.module(...)",
        ),
        (
            "builtin.module(sdy-close-sharding)",
            "no pass or pipeline is called sdy-close-sharding",
            "sdy-close-sharding",
            "did you mean sdy-close-shardings?",
        ),
        ("builtin.module(symbol-dce", "this parenthesis is never closed", "(", ""),
        ("builtin.module(symbol-dce,)", "expected a pass here", "", ""),
        (
            "builtin.module(sdy-unflatten-call-graph{dedup-functions-fuly=true})",
            "sdy-unflatten-call-graph has no option dedup-functions-fuly",
            "dedup-functions-fuly",
            "did you mean dedup-functions-fully?",
        ),
        (
            "builtin.module(sdy-unflatten-call-graph{dedup-functions-fully=maybe})",
            "\"maybe\" is not a value of option dedup-functions-fully",
            "maybe",
            "it is true or false",
        ),
        (
            "builtin.module(sdy-drop-sharding-rules)",
            "sdy-drop-sharding-rules runs on func.func, not on builtin.module",
            "sdy-drop-sharding-rules",
            "write func.func(sdy-drop-sharding-rules)",
        ),
        (
            "builtin.module(func.fun(symbol-dce))",
            "no pass runs on \"func.fun\"",
            "func.fun",
            "did you mean func.func?",
        ),
    ];
    for (text, message, place, hint) in cases {
        let found = mistake(text);
        assert_eq!((&*found.0, &*found.1, &*found.2), (message, place, hint), "{text}");
    }
}
