//! Textual pipelines, as in MLIR's pass manager.
//!
//! `builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules),canonicalize{enable-patterns=sdy-reshard})`
//! names an op to run on and passes in order; a pass may have options, and an op name in place of a
//! pass is a nested pipeline, which runs on each such op. The name of a pipeline is replaced by its
//! passes.
//!
//! [`table`] has every pass, [`option_specs`] every option, [`expand`] every pipeline. The engine refers to
//! them as items; their names are for text alone.
//!
//! Source: MLIR's pass infrastructure, "Textual Pass Pipeline Specification".

mod display;
mod expand;
mod flags;
mod option_specs;
mod options;
mod parse;
mod propagate;
mod stage;
mod table;

pub use options::{OptionKind, OptionSpec, Options, Specs};
pub use table::{PassSpec, Run};

use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::OpId;
use crate::ir::Program;
use crate::memory;
use crate::propagation::explain::Explanation;
use crate::propagation::replay::{Recorded, Recording};
use crate::propagation::{propagate_explained, Strategy};
use crate::rules::write_stored;
use crate::shardy::Version;
use crate::verify::{too_new_for, verify_after_pass};
use expand::Expansion;

/// The op that a pipeline for modules runs on.
const MODULE: &str = "builtin.module";
/// The op that a pipeline for functions runs on.
const FUNC: &str = "func.func";
/// The anchor for ops of any kind.
const ANY: &str = "any";

/// A pass with the options that it runs with.
#[derive(Clone, Debug)]
struct Step {
    spec: &'static PassSpec,
    options: Options,
}

/// A pass, or passes on inner ops.
#[derive(Clone, Debug)]
enum Item {
    Step(Step),
    Nested(Passes),
}

/// How the shardings of a module are completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// Propagate through calls as a whole.
    pub dedup_functions_fully: bool,
    /// Only user priorities up to this one take part.
    pub up_to_priority: Option<i64>,
    /// Keep axes of inputs and outputs that do not divide their dims, and sub-axes, instead of trimming them.
    pub keep_non_divisible_on_io: bool,
    /// How conflicts between axes are resolved.
    pub strategy: Strategy,
    /// Insert all reshards, as collectives.
    pub collectives: bool,
}

/// Passes to run in order on ops of one kind.
#[derive(Clone, Debug)]
struct Passes {
    anchor: &'static str,
    items: Vec<Item>,
}

/// The passes of a version of Shardy to run in order.
#[derive(Clone, Debug)]
pub struct Pipeline {
    passes: Passes,
    shardy: Version,
}

impl Pipeline {
    /// Parses `builtin.module(...)` as `shardy`. Spans in errors are into `text`.
    pub fn parse(text: &str, shardy: Version) -> Result<Self> {
        memory::ensure_for_text(text)?;
        parse::pipeline(text, shardy)
    }
    /// The pipeline of flags as `sdy_opt` takes them: `--sdy-propagation-pipeline`,
    /// `--sdy-basic-propagate=keep-sharding-rules=true`. Spans in errors are into the flags joined by
    /// single spaces.
    pub fn from_flags(flags: &[String], shardy: Version) -> Result<Self> {
        flags::pipeline(flags, shardy)
    }
    fn on_module(items: Vec<Item>, shardy: Version) -> Self {
        Self { passes: Passes { anchor: MODULE, items }, shardy }
    }
    /// The version of Shardy whose passes these are.
    pub fn shardy(&self) -> Version {
        self.shardy
    }
    /// The pipeline that completes the shardings of a module: `sdy-propagation-pipeline` with `options`.
    pub fn propagation(options: Completion, shardy: Version) -> Result<Self> {
        Ok(Self::on_module(Expansion { shardy }.propagation(options)?, shardy))
    }
    /// The pipeline that completes the shardings of a module and inserts all reshards, none as collectives.
    pub fn with_reshards(how: Completion, shardy: Version) -> Result<Self> {
        let mut pipeline = Self::propagation(Completion { collectives: true, ..how }, shardy)?;
        pipeline.passes.remove(table::RESHARD_TO_COLLECTIVES.name);
        Ok(pipeline)
    }
    /// Completes the shardings of `program` as [`Pipeline::propagation`] does, without the passes after propagation,
    /// and keeps what it takes to explain them.
    pub fn explain(
        how: Completion,
        program: &mut Program,
        context: &mut Context<'_>,
    ) -> Result<Explanation> {
        Self::before_propagation(how, program.shardy()).run(program, context)?;
        let expansion = Expansion { shardy: program.shardy() };
        let options = propagate::with_user_priority(&expansion.user_priority(how)?)?;
        propagate_explained(program, context, &options)
    }
    /// Completes the shardings of `program` as [`Pipeline::propagation`] does, without the passes after propagation,
    /// and records how, if replays cover the program; see [`Recording::new`].
    pub fn record(
        how: Completion,
        mut program: Program,
        context: &mut Context<'_>,
    ) -> Result<Option<Recorded>> {
        Self::before_propagation(how, program.shardy()).run(&mut program, context)?;
        let expansion = Expansion { shardy: program.shardy() };
        let options = propagate::with_user_priority(&expansion.user_priority(how)?)?;
        Recording::new(program, context, &options)
    }
    /// The passes before propagation of the pipeline that completes the shardings of a module.
    fn before_propagation(how: Completion, shardy: Version) -> Self {
        Self::on_module(Expansion { shardy }.before_propagation(how.dedup_functions_fully), shardy)
    }
    /// The passes after propagation of the pipeline that completes the shardings of a module.
    pub fn after_propagation(how: Completion, shardy: Version) -> Result<Self> {
        Ok(Self::on_module(Expansion { shardy }.after_propagation(how)?, shardy))
    }
    /// The names of all passes and pipelines of a version of Shardy, sorted.
    pub fn pass_names(shardy: Version) -> Vec<&'static str> {
        let mut names: Vec<&str> = table::passes_of(shardy).map(|pass| pass.name).collect();
        names.extend(expand::PIPELINES.iter().map(|pipeline| pipeline.name));
        names.sort_unstable();
        names
    }
    /// Runs all passes on `program`, which follows their version of Shardy from then on. It is in an unknown state if one fails, or if the program does not make sense
    /// after it and the context verifies.
    pub fn run(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        if self.passes.anchor == FUNC {
            let message = "a pipeline for func.func cannot run on a module";
            return Err(Diagnostic::new(Code::InvalidPipeline, message)
                .with_hint("write builtin.module(func.func(...))")
                .into());
        }
        memory::ensure_for_program(program.num_op_ids())?;
        if let Some(problem) = too_new_for(program, self.shardy) {
            return Err(problem.into());
        }
        program.follow(self.shardy);
        let total = self.passes.num_steps();
        let mut done = 0;
        self.passes.run_on_module(program, context, &mut done, total)?;
        write_stored(program);
        Ok(())
    }
}

impl Passes {
    /// Removes the pass called `name`.
    fn remove(&mut self, name: &str) {
        self.items.retain_mut(|item| match item {
            Item::Step(step) => step.spec.name != name,
            Item::Nested(inner) => {
                inner.remove(name);
                !inner.items.is_empty()
            }
        });
    }
    /// The number of passes.
    fn num_steps(&self) -> usize {
        let count = |item: &Item| match item {
            Item::Step(_) => 1,
            Item::Nested(inner) => inner.num_steps(),
        };
        self.items.iter().map(count).sum()
    }
    fn run_on_module(
        &self,
        program: &mut Program,
        context: &mut Context<'_>,
        done: &mut usize,
        total: usize,
    ) -> Result<()> {
        for item in &self.items {
            match item {
                Item::Step(step) => {
                    context.begin(step.spec.name, *done, total)?;
                    step.run_on_module(program, context)?;
                    step.verify(program, context)?;
                    *done += 1;
                }
                Item::Nested(inner) => {
                    // Passes do not run on modules in modules; any other anchor is a function.
                    if inner.anchor != MODULE {
                        inner.run_on_functions(program, context, *done, total)?;
                    }
                    *done += inner.num_steps();
                }
            }
        }
        Ok(())
    }
    fn run_on_functions(
        &self,
        program: &mut Program,
        context: &mut Context<'_>,
        done: usize,
        total: usize,
    ) -> Result<()> {
        for (index, item) in self.items.iter().enumerate() {
            if let Item::Step(step) = item {
                context.begin(step.spec.name, done + index, total)?;
                step.run_on_functions(program, context)?;
                step.verify(program, context)?;
            }
        }
        Ok(())
    }
}

impl Step {
    /// Verifies what the pass has left, if that was asked for.
    fn verify(&self, program: &Program, context: &Context<'_>) -> Result<()> {
        if !context.verifies_each {
            return Ok(());
        }
        let pass = self.spec.name;
        let mut problems = verify_after_pass(program);
        for problem in &mut problems {
            problem.hint = Some(format!("{pass} has left the program like this"));
        }
        Error::check(problems)
    }
    fn run_on_module(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        match self.spec.run {
            Run::Module(run) | Run::Any(run) => run(program, context, &self.options),
            Run::Function(_) | Run::Functions(_) => Ok(()),
        }
    }
    /// Runs the pass on each function in order. Functions are isolated, so all passes on one and then
    /// all on the next would give the same.
    fn run_on_functions(&self, program: &mut Program, context: &mut Context<'_>) -> Result<()> {
        let ops = |program: &Program| -> Vec<OpId> {
            let functions = program.functions_in_order();
            functions.into_iter().map(|func| program.func_op(func)).collect()
        };
        match self.spec.run {
            Run::Function(run) => {
                let ops = ops(program);
                ops.into_iter().try_for_each(|op| run(program, context, op, &self.options))
            }
            Run::Functions(run) => {
                let ops = ops(program);
                run(program, context, &ops, &self.options)
            }
            Run::Any(run) => run(program, context, &self.options),
            Run::Module(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Pipeline {
        Pipeline::parse(text, Version::NEWEST).unwrap()
    }

    fn mistake(text: &str) -> (String, String, String) {
        let diagnostic = Pipeline::parse(text, Version::NEWEST).unwrap_err().diagnostics.remove(0);
        let place =
            diagnostic.span.map_or("", |span| &text[span.start as usize..span.end as usize]);
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
        for pipeline in expand::PIPELINES {
            for shardy in Version::ALL {
                let options = Options::defaults(pipeline.options, shardy);
                let items = (pipeline.expand)(Expansion { shardy }, &options).unwrap();
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
        let printed = Pipeline::from_flags(&flags, Version::NEWEST).unwrap().to_string();
        assert!(printed.starts_with("builtin.module(symbol-dce,sdy-lift-inlined-meshes,"));
        assert!(printed.contains(
            "sdy-basic-propagate{conservative-propagation=false \
             debug-propagation-edge-sharding=false debug-sharding-origins=false \
             keep-sharding-rules=true module-dump-directory=},func.func(sdy-sink-data-flow-edges{"
        ));
        let error = Pipeline::from_flags(&["--sdy-basic-propagte".to_owned()], Version::NEWEST)
            .unwrap_err();
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
}
