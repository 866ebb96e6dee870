//! Finds the values of a line of the user's program, and the call stack of a value.
//!
//! A location is read as a list of frames: every `"file":line:column` in it, innermost first,
//! because a call site names its callee before its caller. An alias has the frames of its
//! definition. To find the values of a line, first the aliases that contain it are found, then all
//! that refer to those: in linear time in the text of the locations, and without recursion.

use super::call_sites::CallSites;
use super::installed::is_installed;
use crate::error::{Code, Diagnostic};
use crate::index::{OpId, ValueId};
use crate::ir::{Program, ValueDef};
use crate::mlir::cursor::Cursor;
use crate::mlir::escapes::unescaped;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::fmt;

/// The number of lines near the requested one that an error names.
const NEAR: usize = 6;

/// The most parts of a location that are visited for one traceback, since each alias may have twice
/// as many parts as the one before.
const MAX_STEPS: usize = 10_000;

/// A line of the user's program, as slices of the program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame<'p> {
    /// The file as the location names it.
    file: Cow<'p, str>,
    /// The line, from 1.
    line: u64,
    /// The last line, if the location is a range of lines.
    last_line: u64,
    /// The column in the location.
    column: u64,
}

/// One part of a location.
#[derive(Clone, Debug)]
enum Part<'p> {
    Frame(Frame<'p>),
    Alias(&'p str),
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Frame<'_> {
    /// Whether it is at `line` of a file whose path ends with `path`.
    fn is_at(&self, path: &str, line: u64, reach: Reach) -> bool {
        let lines = match reach {
            Reach::Start => self.line..=self.line,
            Reach::Range => self.line..=self.last_line,
        };
        lines.contains(&line) && is_path_suffix(&self.file, path)
    }
}

/// The lines of a frame.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// The line that it starts on.
    Start,
    /// All lines of its range.
    Range,
}

/// Whether `path` is `file`, or its last components.
fn is_path_suffix(file: &str, path: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    file.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']))
}

/// Parses `model.py:42`, or `model.py:42:8`, whose column is ignored.
fn parse_place(place: &str) -> Option<(&str, u64)> {
    let (rest, last) = place.trim().rsplit_once(':')?;
    let last = last.parse().ok()?;
    let with_column =
        rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = with_column.unwrap_or((rest, last));
    (!file.is_empty()).then_some((file, line))
}

/// The parts of the location `text`, in order.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut cursor = Cursor::new(text, 0);
    let mut parts = Vec::new();
    while !cursor.at_end() {
        match cursor.peek() {
            b'"' => {
                let Ok(file) = cursor.string() else { break };
                if let Some(frame) = frame(&mut cursor, file) {
                    parts.push(Part::Frame(frame));
                }
            }
            b'#' => {
                let start = cursor.pos;
                cursor.pos += 1;
                cursor.ssa_name();
                parts.push(Part::Alias(cursor.since(start)));
            }
            _ => cursor.pos += 1,
        }
    }
    parts
}

/// `:line:column`, and optionally `to line:column` or `to :column`, after the name of a file.
fn frame<'p>(cursor: &mut Cursor<'p>, file: &'p str) -> Option<Frame<'p>> {
    let number = |cursor: &mut Cursor<'p>| {
        cursor.skip_space();
        cursor.digits()
    };
    if !cursor.eat(b':') {
        return None;
    }
    let line = number(cursor)?;
    let column = if cursor.eat(b':') { number(cursor)? } else { 0 };
    let mut last_line = line;
    let end = cursor.pos;
    if cursor.eat_keyword("to") {
        last_line = number(cursor).unwrap_or(line);
    } else {
        cursor.pos = end;
    }
    Some(Frame { file: unescaped(file), line, last_line, column })
}

/// The locations that contain certain frames.
struct Reaching<'p, F> {
    aliases: FxHashSet<&'p str>,
    is_wanted: F,
}

impl<F: Fn(&Frame<'_>) -> bool> Reaching<'_, F> {
    /// Whether the location `text` contains such a frame.
    fn holds(&self, text: &str) -> bool {
        parts(text).into_iter().any(|part| match part {
            Part::Frame(frame) => (self.is_wanted)(&frame),
            Part::Alias(name) => self.aliases.contains(name),
        })
    }
}

impl Program {
    /// The text of the location of `value`; empty if it has none.
    pub(super) fn value_loc_text(&self, value: ValueId) -> &str {
        match self.def(value) {
            ValueDef::Result(op) => self.text().get(self.loc(op)),
            ValueDef::Arg(_) => {
                self.arg_location_text(value).map_or("", |span| self.text().get(span))
            }
        }
    }
    /// The frames of the location `text` as `file:line:column`, innermost first.
    pub(super) fn stack(&self, text: &str) -> Vec<String> {
        self.frames(text).map(|frame| frame.to_string()).collect()
    }
    /// The innermost frame of the location `text` that is not in an installed package.
    pub(super) fn own_frame(&self, text: &str) -> Option<String> {
        let own = self.frames(text).find(|frame| !is_installed(&frame.file));
        own.map(|frame| frame.to_string())
    }
    /// The frames of the location `text`, innermost first, of at most [`MAX_STEPS`] parts.
    fn frames<'p>(&'p self, text: &'p str) -> impl Iterator<Item = Frame<'p>> {
        let mut todo = parts(text);
        todo.reverse();
        let mut left = MAX_STEPS;
        std::iter::from_fn(move || loop {
            left = left.checked_sub(1)?;
            match todo.pop()? {
                Part::Frame(frame) => return Some(frame),
                Part::Alias(name) => {
                    let body = self.strings().find(name).and_then(|id| self.alias(id));
                    let body = body.map_or("", |span| self.text().get(span));
                    todo.extend(parts(body).into_iter().rev());
                }
            }
        })
    }
    /// The values of `place`, a file and a line; if there are none, an error that names lines
    /// nearby. Values without a line have those of the calls of their function.
    pub fn values_at_place(
        &self,
        place: &str,
        calls: &CallSites,
    ) -> Result<Vec<ValueId>, Diagnostic> {
        let unknown = |message: String| Diagnostic::new(Code::UnknownLocation, message);
        let Some((file, line)) = parse_place(place) else {
            let problem = unknown(format!("{place:?} is no place in a file"));
            return Err(problem.with_hint("write the file and the line: \"model.py:42\""));
        };
        let values = self.values_at(file, line, calls);
        if !values.is_empty() {
            return Ok(values);
        }
        let places = self.source_places();
        let problem = unknown(format!("no value comes from {file}:{line}"));
        if places.is_empty() {
            let hint = "the program has no source locations: write it with them, \
                        lowered.as_text(debug_info=True), or use shardcore.jax.lower";
            return Err(problem.with_hint(hint));
        }
        let near = places.iter().filter(|(known, _)| is_path_suffix(known, file));
        let mut lines: Vec<u64> = near.map(|&(_, line)| line).collect();
        lines.sort_unstable_by_key(|&known| (known.abs_diff(line), known));
        lines.dedup();
        if lines.is_empty() {
            let mut files: Vec<&str> = Vec::new();
            for (known, _) in &places {
                let name = known.rsplit(['/', '\\']).next().unwrap_or(known);
                if !files.contains(&name) {
                    files.push(name);
                }
            }
            let quote = |name: &str| format!("\"{name}\"");
            let hint = crate::suggest::hint(file, files, quote);
            return Err(match hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
        lines.truncate(NEAR);
        lines.sort_unstable();
        let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
        let hint =
            format!("the lines of {file} nearest to it that made values: {}", lines.join(", "));
        Err(problem.with_hint(hint))
    }
    /// The values with `line` of the file `path` in any frame of their call stacks: those with
    /// frames that start there, or else with frames whose range includes the line.
    fn values_at(&self, path: &str, line: u64, calls: &CallSites) -> Vec<ValueId> {
        let from_line = self.values_from(path, line, Reach::Start, calls);
        if from_line.is_empty() {
            return self.values_from(path, line, Reach::Range, calls);
        }
        from_line
    }
    fn values_from(&self, path: &str, line: u64, reach: Reach, calls: &CallSites) -> Vec<ValueId> {
        let at_line = self.reaching(|frame| frame.is_at(path, line, reach));
        let anywhere = self.reaching(|_| true);
        let is_at = |text: &str| at_line.holds(text);
        let loc = |op: OpId| self.text().get(self.loc(op));
        let called =
            calls.called_from(self, |call| is_at(loc(call)), |call| anywhere.holds(loc(call)));
        let values = self.values_of(self.module_op()).into_iter();
        let comes_from_there = |&value: &ValueId| {
            let text = self.value_loc_text(value);
            is_at(text)
                || (!called.is_empty()
                    && !anywhere.holds(text)
                    && called.contains(&self.function_of_value(value)))
        };
        values.filter(comes_from_there).collect()
    }
    /// The locations with a frame for which `is_wanted` holds.
    fn reaching<F: Fn(&Frame<'_>) -> bool>(&self, is_wanted: F) -> Reaching<'_, F> {
        let mut users: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        let mut todo = Vec::new();
        for (alias, text) in self.location_aliases() {
            for part in parts(text) {
                match part {
                    Part::Frame(frame) if is_wanted(&frame) => todo.push(alias),
                    Part::Frame(_) => {}
                    Part::Alias(used) => users.entry(used).or_default().push(alias),
                }
            }
        }
        let mut aliases: FxHashSet<&str> = FxHashSet::default();
        while let Some(alias) = todo.pop() {
            if aliases.insert(alias) {
                todo.extend(users.remove(alias).unwrap_or_default());
            }
        }
        Reaching { aliases, is_wanted }
    }
    /// The distinct lines of the program's locations, in the order of the text.
    fn source_places(&self) -> Vec<(Cow<'_, str>, u64)> {
        let of_values =
            self.values_of(self.module_op()).into_iter().map(|value| self.value_loc_text(value));
        let texts = self.location_aliases().map(|(_, text)| text).chain(of_values);
        let mut seen = FxHashSet::default();
        texts
            .flat_map(parts)
            .filter_map(|part| match part {
                Part::Frame(frame) => Some((frame.file, frame.line)),
                Part::Alias(_) => None,
            })
            .filter(|place| seen.insert(place.clone()))
            .collect()
    }
    /// The aliases of locations with their definitions, in the order of the text.
    fn location_aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.printing().definitions().iter().filter_map(|&span| {
            let (name, body) = self.text().get(span).split_once('=')?;
            let name = name.trim();
            let is_location = name.starts_with('#') && body.trim_start().starts_with("loc");
            is_location.then_some((name, body))
        })
    }
}
