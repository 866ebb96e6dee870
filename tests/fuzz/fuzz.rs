//! Two targets: mutated programs against the parser and printer, and against propagation.
//!
//! Whatever the bytes are, the outcome is a program or an error: never a panic, never a hang. What
//! parses has to print as text that parses to the same text again; a pipeline gives a program that
//! does, or an error. `cargo test --test fuzz` tries a fixed number of inputs;
//! `SHARDCORE_FUZZ_SECONDS=600 cargo test --release --test fuzz` goes on for as long with each target,
//! from a seed of its own. An input that fails is left in the temporary folder.
//!
//! `corpus/` holds the programs that are mutated, `refused.mlir` pieces of text that are no program,
//! findings among them. `make coverage` says how much of the parser the two reach by themselves.

use shardcore::context::{Context, Limits, Progress};
use shardcore::pipeline::Pipeline;
use shardcore::rules::Registry;
use shardcore::verify::verify;
use shardcore::{attribute, mlir, Error, Program};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Inputs of a run without a time limit.
const INPUTS: u64 = 200;
/// What one input may take; far more than any of this size needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A small generator of random numbers (xorshift*), so that a seed says everything.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// The folder of this file.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz");
/// What stands between the pieces of `refused.mlir`.
const SEPARATOR: &str = "// -----\n";

fn corpus() -> Vec<String> {
    let entries = std::fs::read_dir(format!("{FOLDER}/corpus")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn refused() -> Vec<String> {
    let text = std::fs::read_to_string(format!("{FOLDER}/refused.mlir")).unwrap();
    text.split(SEPARATOR).map(str::to_owned).collect()
}

/// Splits at the borders of words, so that mutations keep most of the text well formed.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let is_word = |char: char| char.is_alphanumeric() || "%@#!._\"$".contains(char);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|char| !is_word(char)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(len);
        tokens.push(token);
        rest = tail;
    }
    tokens
}

/// One to six edits, mostly few: drop, repeat, swap, replace, cut, or damage a character.
fn mutate(random: &mut Random, corpus: &[String]) -> String {
    let base = &corpus[random.below(corpus.len())];
    let other = tokens(&corpus[random.below(corpus.len())]);
    let mut list: Vec<String> = tokens(base).into_iter().map(str::to_owned).collect();
    let most = random.below(6) + 1;
    for _ in 0..=random.below(most) {
        let at = random.below(list.len());
        let to = random.below(list.len());
        match random.below(9) {
            0 => drop(list.drain(at..(at + 1 + random.below(4)).min(list.len()))),
            1 => list.insert(at, list[to].clone()),
            2 => list.swap(at, to),
            3 => other[random.below(other.len())].clone_into(&mut list[at]),
            4 => list.truncate(at + 1),
            5 => {
                let odd = ["", "0", "-1", "9223372036854775807", "\"", "{", ">", "é"];
                odd[random.below(odd.len())].clone_into(&mut list[at]);
            }
            6 => list[at] = list[at].chars().rev().collect(),
            7 => {
                let piece: Vec<String> =
                    list[at.min(to)..at.max(to)].iter().take(40).cloned().collect();
                let place = random.below(list.len());
                list.splice(place..place, piece);
            }
            _ => list[at].push(char::from(random.below(128) as u8)),
        }
        if list.is_empty() {
            break;
        }
    }
    list.concat()
}

/// What propagation targets run; each input gets some of them.
const PIPELINES: [&str; 12] = [
    "sdy-propagation-pipeline",
    "sdy-propagation-pipeline{dedup-functions-fully=true}",
    "sdy-basic-propagate{conservative-propagation=true}",
    "sdy-aggressive-propagate{propagation-strategy=basic-then-aggressive}",
    "sdy-op-priority-propagate{keep-sharding-rules=true}",
    "sdy-user-priority-propagate{debug-sharding-origins=true debug-propagation-edge-sharding=true}",
    "sdy-import-pipeline,sdy-user-priority-propagate,sdy-export-pipeline{enable-insert-explicit-collectives=true}",
    "sdy-add-data-flow-edges,sdy-aggressive-propagate,func.func(sdy-sink-data-flow-edges)",
    "sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives),canonicalize",
    "func.func(sdy-explicit-gather-scatter-batching),sdy-pad-for-divisibility",
    "symbol-dce,sdy-flatten-call-graph,sdy-import-func-calls,sdy-unflatten-call-graph",
];

/// Reads and verifies a program.
fn load(text: &str) -> Result<Program, Error> {
    let program = mlir::parse(text.into())?;
    Error::check(verify(&program)).map(|()| program)
}

fn print_and_parse(program: &Program) {
    let printed = mlir::print(program);
    let again = mlir::parse(printed.as_str().into()).expect("what was printed parses");
    assert_eq!(mlir::print(&again), printed, "printing is a fixed point");
}

/// Runs a pipeline on a copy of `program`, and prints what comes of it.
fn propagate(program: &Program, passes: &str) {
    let mut program = program.clone();
    let mut rules = Registry::builtin();
    let mut report = |_: Progress<'_>| true;
    let limits = Limits { max_ops: 100_000 };
    let mut context = Context::new(&mut rules, limits, &mut report);
    let pipeline = Pipeline::parse(&format!("builtin.module({passes})"), program.shardy()).unwrap();
    if pipeline.run(&mut program, &mut context).is_ok() {
        std::hint::black_box(mlir::print(&program));
    }
}

/// Reads what is only read when somebody asks: locations, names, attributes of ops.
fn look_up(program: &Program) {
    let calls = mlir::CallSites::new(program);
    for value in program.values_of(program.module_op()) {
        std::hint::black_box((calls.value_location(program, value), program.value_name(value)));
        for frame in calls.traceback(program, value) {
            let _ = program.values_at_place(&frame, &calls);
        }
    }
    let _ = program.values_at_place("nowhere", &calls);
    for op in program.pre_order(program.module_op()) {
        std::hint::black_box(mlir::op_attribute(program, op, "dimensions"));
    }
}

/// Reads what stands in angle brackets by itself, as `TensorSharding.parse` and its like do.
fn read_alone(text: &str) {
    let known = |_: &str| Some(attribute::StandaloneScope::mesh_of_names(text).into());
    for (at, _) in text.match_indices('<').take(8) {
        let alone = &text[at..];
        let alone = alone.split_inclusive('>').next().unwrap_or(alone);
        let _ = attribute::parse_mesh(alone, 0);
        let _ = attribute::parse_lone_rule(alone);
        let mut scope =
            attribute::StandaloneScope::new(&known, &[], shardcore::shardy::Version::NEWEST);
        if let Ok(sharding) = attribute::parse_sharding(alone, 0, &mut scope) {
            std::hint::black_box(attribute::print_sharding(&sharding, &scope));
        }
    }
}

/// The target of the parser; whether `text` is a program.
fn check_syntax(text: &str, _: &mut Random) -> bool {
    read_alone(text);
    let Ok(program) = mlir::parse(text.into()) else { return false };
    print_and_parse(&program);
    look_up(&program);
    true
}

/// The target of propagation; whether `text` is a program.
fn check_passes(text: &str, random: &mut Random) -> bool {
    let Ok(program) = load(text) else { return false };
    propagate(&program, PIPELINES[0]);
    for _ in 0..2 {
        propagate(&program, PIPELINES[random.below(PIPELINES.len())]);
    }
    true
}

/// Feeds mutated programs to `check`, for as long as the environment says.
fn fuzz(name: &str, check: impl Fn(&str, &mut Random) -> bool) {
    let seconds = std::env::var("SHARDCORE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let seed = match seconds {
        None => 1,
        Some(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1,
    };
    let limit = Duration::from_secs(seconds.unwrap_or(0));
    // A hang or a kill leaves no trace but this file.
    let file = format!("shardcore-fuzz-{name}-{}.mlir", std::process::id());
    let path = std::env::temp_dir().join(file);
    let (corpus, start) = (corpus(), Instant::now());
    let (mut random, mut tried, mut parsed) = (Random(seed), 0u64, 0u64);
    while if seconds.is_some() { start.elapsed() < limit } else { tried < INPUTS } {
        let text = mutate(&mut random, &corpus);
        let begin = Instant::now();
        std::fs::write(&path, &text).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&text, &mut random)));
        let is_fine = outcome.is_ok() && begin.elapsed() <= PATIENCE;
        assert!(is_fine, "{name}, seed {seed}, input {tried}: see {}", path.display());
        tried += 1;
        parsed += u64::from(outcome.unwrap_or(false));
    }
    std::fs::remove_file(&path).unwrap();
    println!("{name}: {tried} inputs, {parsed} of them programs");
    assert!(parsed * 40 > tried, "too few mutations leave a program: {parsed} of {tried}");
}

#[test]
fn parser() {
    fuzz("parser", check_syntax);
}

#[test]
fn propagation() {
    fuzz("propagation", check_passes);
}

/// The corpus alone, through everything; what coverage is measured with.
#[test]
fn corpus_is_valid() {
    for text in corpus() {
        let program = load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        check_syntax(&text, &mut Random(1));
        for passes in PIPELINES {
            propagate(&program, passes);
        }
    }
}

#[test]
fn refused_texts_are_refused() {
    for text in refused() {
        let error = load(&text).map(|_| ()).expect_err(&text);
        assert!(!error.to_string().is_empty());
        check_syntax(&text, &mut Random(1));
    }
}
