//! Runs a pipeline on a file without Python: `cargo run --release --example opt -- 'builtin.module(...)'
//! FILE` prints the program, `--time` the time of each pass.

use shardcore::context::{Context, Limits, Progress};
use shardcore::pipeline::Pipeline;
use shardcore::rules::Registry;
use shardcore::{mlir, Error};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let is_timed = args.iter().any(|arg| arg == "--time");
    args.retain(|arg| arg != "--time");
    let [pipeline, path] = &args[..] else {
        eprintln!("usage: opt [--time] PIPELINE FILE");
        return ExitCode::FAILURE;
    };
    let source = match std::fs::read_to_string(path) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(pipeline, &source, is_timed) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err((error, text)) => {
            show(&error, text);
            ExitCode::FAILURE
        }
    }
}

/// The text of the program after the pipeline, or an error and the text it is about.
fn run<'a>(pipeline: &'a str, source: &'a str, is_timed: bool) -> Result<String, (Error, &'a str)> {
    let pipeline = Pipeline::parse(pipeline).map_err(|error| (error, pipeline))?;
    let time = |what: &str, start: Instant| {
        if is_timed {
            eprintln!("{:>12.3?}  {what}", start.elapsed());
        }
    };
    let start = Instant::now();
    let mut program = mlir::parse(source.into()).map_err(|error| (error, source))?;
    time("parse", start);
    let mut running: Option<(String, Instant)> = None;
    let mut report = |state: Progress<'_>| {
        if running.as_ref().is_none_or(|(pass, _)| pass != state.pass) {
            if let Some((pass, start)) = running.take() {
                time(&pass, start);
            }
            running = Some((state.pass.to_owned(), Instant::now()));
        }
        true
    };
    let mut rules = Registry::default();
    let mut context = Context::new(&mut rules, Limits::default(), &mut report);
    pipeline.run(&mut program, &mut context).map_err(|error| (error, source))?;
    if let Some((pass, start)) = running {
        time(&pass, start);
    }
    let start = Instant::now();
    let text = mlir::print(&program);
    time("print", start);
    Ok(text)
}

/// Prints each mistake with the line that it is about.
fn show(error: &Error, text: &str) {
    for diagnostic in &error.diagnostics {
        eprintln!("error[{}]: {}", diagnostic.code.as_str(), diagnostic.message);
        if let Some(span) = diagnostic.span {
            let before = text.get(..span.start as usize).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let shown = text.lines().nth(line - 1).unwrap_or_default();
            eprintln!("  line {line}: {}", shown.trim());
        }
        if let Some(hint) = &diagnostic.hint {
            eprintln!("  help: {hint}");
        }
    }
}
