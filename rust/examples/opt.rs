//! Runs a pipeline on a file without Python: `cargo run --release --example opt -- 'builtin.module(...)'
//! FILE` prints the program, `--time` the time of each pass, `--time=20` the shortest of 20 runs, all but
//! the first of which find the rules of ops made; `--shardy=0.10` follows that version of Shardy.

use shardcore::context::{Context, Limits, Progress};
use shardcore::pipeline::Pipeline;
use shardcore::rules::Registry;
use shardcore::shardy::Version;
use shardcore::verify::verify_read;
use shardcore::{mlir, Error};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let runs = args.iter().find_map(|arg| match arg.strip_prefix("--time")? {
        "" => Some(1),
        runs => runs.strip_prefix('=')?.parse().ok(),
    });
    let shardy = args.iter().find_map(|arg| arg.strip_prefix("--shardy="));
    let Some(shardy) = shardy.map_or(Some(Version::NEWEST), Version::named) else {
        eprintln!("--shardy takes one of {:?}", Version::ALL.map(Version::name));
        return ExitCode::FAILURE;
    };
    args.retain(|arg| !arg.starts_with("--"));
    let [pipeline, path] = &args[..] else {
        eprintln!("usage: opt [--time[=RUNS]] [--shardy=VERSION] PIPELINE FILE");
        return ExitCode::FAILURE;
    };
    let source = match std::fs::read_to_string(path) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(pipeline, &source, runs, shardy) {
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
fn run<'a>(
    pipeline: &'a str,
    source: &'a str,
    runs: Option<usize>,
    shardy: Version,
) -> Result<String, (Error, &'a str)> {
    let pipeline = Pipeline::parse(pipeline, shardy).map_err(|error| (error, pipeline))?;
    let mut shortest: Vec<(String, Duration)> = Vec::new();
    let mut text = String::new();
    let mut rules = Registry::default();
    for run in 0..runs.unwrap_or(1) {
        let mut times = Vec::new();
        text =
            run_once(&pipeline, source, &mut rules, &mut times).map_err(|error| (error, source))?;
        if run == 0 {
            shortest = times;
        } else {
            for ((_, shortest), (_, time)) in shortest.iter_mut().zip(times) {
                *shortest = time.min(*shortest);
            }
        }
    }
    if runs.is_some() {
        for (what, time) in &shortest {
            eprintln!("{time:>12.3?}  {what}");
        }
        let passes = &shortest[1..shortest.len() - 1];
        let total: Duration = passes.iter().map(|(_, time)| *time).sum();
        eprintln!("{total:>12.3?}  all passes");
    }
    Ok(text)
}

/// The same, once, with the times of parsing, of each pass, and of printing.
fn run_once(
    pipeline: &Pipeline,
    source: &str,
    rules: &mut Registry,
    times: &mut Vec<(String, Duration)>,
) -> Result<String, Error> {
    let start = Instant::now();
    let mlir::Parsed { mut program, findings } =
        mlir::read(Arc::new(source.to_owned()), pipeline.shardy())?;
    Error::check(verify_read(&program, findings))?;
    times.push(("parse".to_owned(), start.elapsed()));
    let mut running: Option<(String, Instant)> = None;
    let mut report = |state: Progress<'_>| {
        if running.as_ref().is_none_or(|(pass, _)| pass != state.pass) {
            times.extend(running.take().map(|(pass, start)| (pass, start.elapsed())));
            running = Some((state.pass.to_owned(), Instant::now()));
        }
        true
    };
    let mut context = Context::new(rules, Limits::default(), &mut report);
    pipeline.run(&mut program, &mut context)?;
    times.extend(running.map(|(pass, start)| (pass, start.elapsed())));
    let start = Instant::now();
    let text = mlir::print(&program);
    times.push(("print".to_owned(), start.elapsed()));
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
