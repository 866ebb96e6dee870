//! Parses command-line flags as a pipeline.

use super::{parse, Item, Passes, Pipeline, FUNC, MODULE};
use crate::error::{Code, Diagnostic, Result, Span};
use crate::shardy::Version;

/// The pipeline of `--name` and `--name=options` flags, in order. Each pass on functions is nested
/// in a pipeline on functions.
pub(super) fn pipeline(flags: &[String], shardy: Version) -> Result<Pipeline> {
    let mut items = Vec::new();
    let mut base = 0;
    for flag in flags {
        let dashes = flag.bytes().take(2).take_while(|&byte| byte == b'-').count();
        let span = (base, base + flag.len());
        if dashes == 0 {
            let place = Span::new(span.0 as u32, span.1 as u32);
            let message = format!("{flag:?} is not a flag");
            let diagnostic = Diagnostic::new(Code::InvalidPipeline, message).at(place);
            return Err(diagnostic.with_hint("flags start with --").into());
        }
        let body = &flag[dashes..];
        let (name, options) = body.split_once('=').unwrap_or((body, ""));
        let options_at = base + flag.len() - options.len();
        let name_span = (base + dashes, base + dashes + name.len());
        let (options, skipped) = unquoted(options);
        let options = (options, options_at + skipped);
        for item in parse::items((name, name_span), options, MODULE, shardy)? {
            items.push(match item {
                Item::Step(step) if step.spec.runs_on_functions() => {
                    Item::Nested(Passes { anchor: FUNC, items: vec![Item::Step(step)] })
                }
                item => item,
            });
        }
        base += flag.len() + 1;
    }
    Ok(Pipeline { passes: Passes { anchor: MODULE, items }, shardy })
}

/// `text` without enclosing quotes, and the number of bytes before the result.
fn unquoted(text: &str) -> (&str, usize) {
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return (inner, 1);
        }
    }
    (text, 0)
}
