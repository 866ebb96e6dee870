//! Parses textual pipelines.

use super::options::{closing_brace, with_hint, Options};
use super::{pass_table, pipeline_table, Item, Passes, Pipeline, Run, Step, ANY, FUNC, MODULE};
use crate::error::{Code, Diagnostic, Result, Span};
use crate::shardy::Version;

/// The deepest nesting of pipelines.
const MAX_DEPTH: usize = 32;

/// Parses `anchor(...)`.
pub(super) fn pipeline(text: &str, shardy: Version) -> Result<Pipeline> {
    let mut parser = Parser { text, at: 0, shardy };
    let name = parser.name();
    let wrap = || {
        problem("a pipeline starts with the op that it runs on", name)
            .with_hint("write builtin.module(...)")
    };
    if parser.peek() != Some(b'(') {
        return Err(wrap().into());
    }
    let anchor = anchor(parser.slice(name)).ok_or_else(wrap)?;
    let passes = parser.nested(anchor, 0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(problem("nothing may follow the pipeline", (parser.at, text.len())).into());
    }
    Ok(Pipeline { passes, shardy })
}

/// The items of `name` at `span`, a pass or a pipeline of `shardy` with options at `options`, in a
/// pipeline on `anchor`.
pub(super) fn items(
    (name, span): (&str, (usize, usize)),
    options: (&str, usize),
    anchor: &'static str,
    shardy: Version,
) -> Result<Vec<Item>> {
    if let Some(spec) = pass_table::passes_of(shardy).find(|pass| pass.name == name) {
        let options = Options::parse(spec.options, shardy, name, options)?;
        return Ok(vec![Item::Step(Step { spec, options })]);
    }
    if let Some(spec) = pipeline_table::PIPELINES.iter().find(|pipeline| pipeline.name == name) {
        let options = Options::parse(spec.options, shardy, name, options)?;
        if anchor == FUNC {
            return Err(problem(format!("{name} runs on modules, not on func.func"), span).into());
        }
        return (spec.expand)(pipeline_table::Expansion { shardy }, &options);
    }
    if name.is_empty() {
        return Err(problem("expected a pass here", span).into());
    }
    let unknown = problem(format!("no pass or pipeline is called {name}"), span);
    if let Some(version) = Version::ALL
        .into_iter()
        .find(|&version| pass_table::passes_of(version).any(|pass| pass.name == name))
    {
        return Err(unknown.with_hint(shardy.hint_for(version)).into());
    }
    Err(with_hint(unknown, name, Pipeline::pass_names(shardy)).into())
}

/// The anchor op called `name`.
fn anchor(name: &str) -> Option<&'static str> {
    [MODULE, FUNC, ANY].into_iter().find(|&anchor| anchor == name)
}

fn problem(message: impl Into<String>, (start, end): (usize, usize)) -> Diagnostic {
    let span = Span::new(start as u32, end as u32);
    Diagnostic::new(Code::InvalidPipeline, message).at(span)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    shardy: Version,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn slice(&self, (start, end): (usize, usize)) -> &'a str {
        &self.text[start..end]
    }
    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
    /// The span of the name at the current position.
    fn name(&mut self) -> (usize, usize) {
        self.skip_space();
        let start = self.at;
        while self.peek().is_some_and(|byte| !b",({})".contains(&byte)) {
            self.at += 1;
        }
        (start, start + self.text[start..self.at].trim_end().len())
    }
    /// The pipeline on `anchor` whose opening parenthesis is next.
    fn nested(&mut self, anchor: &'static str, depth: usize) -> Result<Passes> {
        let open = self.at;
        if depth == MAX_DEPTH {
            return Err(problem("nested too deeply", (open, open + 1)).into());
        }
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b')') {
            self.at += 1;
            return Ok(Passes { anchor, items });
        }
        loop {
            self.item(anchor, depth, &mut items)?;
            self.skip_space();
            let at = self.at;
            self.at += 1;
            match self.text.as_bytes().get(at) {
                Some(b',') => {}
                Some(b')') => return Ok(Passes { anchor, items }),
                Some(_) => return Err(problem("expected , or )", (at, at + 1)).into()),
                None => {
                    let unclosed = problem("this parenthesis is never closed", (open, open + 1));
                    return Err(unclosed.into());
                }
            }
        }
    }
    /// Parses one pass, pipeline, or pipeline on inner ops.
    fn item(&mut self, outer: &'static str, depth: usize, to: &mut Vec<Item>) -> Result<()> {
        let span = self.name();
        let name = self.slice(span);
        if self.peek() == Some(b'(') {
            let Some(anchor) = anchor(name) else {
                let unknown = problem(format!("no pass runs on {name:?}"), span);
                return Err(with_hint(unknown, name, [MODULE, FUNC, ANY]).into());
            };
            to.push(Item::Nested(self.nested(anchor, depth + 1)?));
            return Ok(());
        }
        let mut options = ("", self.at);
        if self.peek() == Some(b'{') {
            let start = self.at + 1;
            let Some(end) = closing_brace(self.text, start) else {
                return Err(problem("this brace is never closed", (self.at, self.at + 1)).into());
            };
            options = (&self.text[start..end], start);
            self.at = end + 1;
        }
        let items = items((name, span), options, outer, self.shardy)?;
        if let [Item::Step(step)] = &items[..] {
            check_anchor(step, span, outer)?;
        }
        to.extend(items);
        Ok(())
    }
}

/// Fails if the pass of `step` cannot run on `anchor`.
fn check_anchor(step: &Step, span: (usize, usize), anchor: &str) -> Result<()> {
    let name = step.spec.name;
    let (wanted, hint) = match step.spec.run {
        _ if step.spec.runs_on_functions() && anchor == MODULE => {
            (FUNC, format!("write func.func({name})"))
        }
        Run::Module(_) if anchor == FUNC => (MODULE, format!("move {name} out of func.func(...)")),
        _ => return Ok(()),
    };
    let message = format!("{name} runs on {wanted}, not on {anchor}");
    Err(problem(message, span).with_hint(hint).into())
}
