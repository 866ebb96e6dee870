//! Options of passes: their declarations and values.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::shardy::{Change, Version};
use crate::suggest;

/// The type of an option.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// `true` or `false`; the name alone means `true`.
    Flag,
    /// An integer.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of these words; if there are none, a list of any words.
    List(&'static [&'static str]),
}

/// One option of a pass or pipeline.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: OptionKind,
    /// The text of its default value.
    pub default: &'static str,
    /// The default value since a later version, if it changed.
    pub later_default: Option<(Version, &'static str)>,
    /// The first version that has it.
    pub since: Version,
    /// Whether it is printed only if it differs from the default, since MLIR does not have it.
    pub is_extra: bool,
}

impl OptionSpec {
    /// The option, available since `version`.
    pub(super) const fn since(self, version: Version) -> Self {
        Self { since: version, ..self }
    }
    /// The option, whose default is `value` since `version`.
    pub(super) const fn with_default_since(self, version: Version, value: &'static str) -> Self {
        Self { later_default: Some((version, value)), ..self }
    }
    /// The text of the default value in `shardy`.
    pub fn default_in(&self, shardy: Version) -> &'static str {
        let later = self.later_default.filter(|(version, _)| *version <= shardy);
        later.map_or(self.default, |(_, value)| value)
    }
}

/// The options that a pass declares.
pub type Specs = &'static [&'static OptionSpec];

/// The options of a pass, with a value for each declared one.
#[derive(Clone, Debug)]
pub struct Options {
    specs: Specs,
    shardy: Version,
    /// The text of each value; elements of lists are separated by commas.
    values: Vec<String>,
}

impl Options {
    /// All defaults in `shardy`.
    pub fn defaults(specs: Specs, shardy: Version) -> Self {
        let values = specs.iter().map(|spec| spec.default_in(shardy).to_owned());
        Self { specs, shardy, values: values.collect() }
    }
    /// Sets some options, which must be declared, to values that must be valid.
    pub fn with(mut self, settings: &[(&'static OptionSpec, &str)]) -> Result<Self> {
        for (spec, value) in settings {
            let index = self.index(spec)?;
            self.values[index] = check(spec, self.shardy, value).map_err(|hint| {
                let message = format!("{value:?} is not a value of option {}: {hint}", spec.name);
                Error::internal(message)
            })?;
        }
        Ok(self)
    }
    /// The index of the value of `spec`; an error if the pass does not declare that option.
    fn index(&self, spec: &'static OptionSpec) -> Result<usize> {
        let index = self.specs.iter().position(|&declared| std::ptr::eq(declared, spec));
        index.ok_or_else(|| {
            Error::internal(format!("a pass uses option {}, which it does not declare", spec.name))
        })
    }
    /// The text of the value of `spec`.
    pub fn text(&self, spec: &'static OptionSpec) -> Result<&str> {
        Ok(&self.values[self.index(spec)?])
    }
    /// The value of flag `spec`.
    pub fn flag(&self, spec: &'static OptionSpec) -> Result<bool> {
        Ok(self.text(spec)? == "true")
    }
    /// The value of number `spec`; `None` if it is empty.
    pub fn number(&self, spec: &'static OptionSpec) -> Result<Option<i64>> {
        Ok(self.text(spec)?.parse().ok())
    }
    /// The elements of list `spec`.
    pub fn list(&self, spec: &'static OptionSpec) -> Result<Vec<&str>> {
        Ok(self.text(spec)?.split(',').filter(|element| !element.is_empty()).collect())
    }
    /// The options that are printed, with their values, sorted by name.
    pub(super) fn shown(&self) -> Vec<(&'static OptionSpec, &str)> {
        let all = self.specs.iter().copied().zip(self.values.iter().map(String::as_str));
        let is_shown = |(spec, value): &(&OptionSpec, &str)| {
            let is_changed = *value != spec.default_in(self.shardy);
            spec.since <= self.shardy && (!spec.is_extra || is_changed)
        };
        let mut shown: Vec<_> = all.filter(is_shown).collect();
        shown.sort_by_key(|(spec, _)| spec.name);
        shown
    }

    /// Parses `name=value name=value`, at byte `base` of the pipeline, as options of `owner` in
    /// version `shardy`.
    pub(super) fn parse(
        specs: Specs,
        shardy: Version,
        owner: &str,
        (text, base): (&str, usize),
    ) -> Result<Self> {
        let mut options = Self::defaults(specs, shardy);
        let mut given = vec![false; specs.len()];
        let mut at = 0;
        while let Some(setting) = next_setting(text, &mut at) {
            let span = |(start, end): (usize, usize)| {
                Span::new((base + start) as u32, (base + end) as u32)
            };
            let name = &text[setting.name.0..setting.name.1];
            let problem = |message: String, place| {
                Diagnostic::new(Code::InvalidPipeline, message).at(span(place))
            };
            let Some(index) = specs.iter().position(|spec| spec.name == name) else {
                let unknown = problem(format!("{owner} has no option {name}"), setting.name);
                return Err(with_hint(unknown, name, specs.iter().map(|spec| spec.name)).into());
            };
            if specs[index].since > shardy {
                let unknown = problem(format!("{owner} has no option {name}"), setting.name);
                return Err(unknown.with_hint(shardy.hint_for(specs[index].since)).into());
            }
            if std::mem::replace(&mut given[index], true) {
                return Err(problem(format!("option {name} is given twice"), setting.name).into());
            }
            let (start, end) = setting.value.unwrap_or((setting.name.1, setting.name.1));
            let value = text[start..end].trim();
            options.values[index] = match check(specs[index], shardy, value) {
                Ok(value) => value,
                Err(hint) => {
                    let place = if start == end { setting.name } else { (start, end) };
                    let message = format!("{value:?} is not a value of option {name}");
                    return Err(problem(message, place).with_hint(hint).into());
                }
            };
        }
        Ok(options)
    }
}

/// `diagnostic`, with the known name that is close to `name` as a hint.
pub(super) fn with_hint<'a>(
    diagnostic: Diagnostic,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    match suggest::hint(name, candidates, str::to_owned) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}

/// The value to store for `text`; a hint if `text` is invalid.
fn check(spec: &OptionSpec, shardy: Version, text: &str) -> std::result::Result<String, String> {
    match spec.kind {
        OptionKind::Flag => match text {
            "" | "true" | "1" => Ok("true".to_owned()),
            "false" | "0" => Ok("false".to_owned()),
            "TRUE" | "True" if !shardy.has(Change::LowerCaseFlags) => Ok("true".to_owned()),
            "FALSE" | "False" if !shardy.has(Change::LowerCaseFlags) => Ok("false".to_owned()),
            _ => Err("it is true or false".to_owned()),
        },
        OptionKind::Number => match text.parse::<i64>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err("it is a whole number".to_owned()),
        },
        OptionKind::Text => Ok(text.to_owned()),
        OptionKind::Choice(words) if words.contains(&text) => Ok(text.to_owned()),
        OptionKind::Choice(words) => Err(format!("it is one of {}", words.join(", "))),
        OptionKind::List(words) => {
            let elements: Vec<&str> =
                text.split(',').map(str::trim).filter(|element| !element.is_empty()).collect();
            let is_known = |element: &&str| words.is_empty() || words.contains(element);
            if elements.iter().all(is_known) {
                Ok(elements.join(","))
            } else {
                Err(format!("its elements are {}", words.join(", ")))
            }
        }
    }
}

/// The spans of the name and the value of one setting.
struct Setting {
    name: (usize, usize),
    value: Option<(usize, usize)>,
}

/// The setting at `at`, which is advanced past it.
fn next_setting(text: &str, at: &mut usize) -> Option<Setting> {
    let bytes = text.as_bytes();
    while bytes.get(*at).is_some_and(u8::is_ascii_whitespace) {
        *at += 1;
    }
    let start = *at;
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'=';
    while bytes.get(*at).is_some_and(|byte| !is_end(byte)) {
        *at += 1;
    }
    let name = (start, *at);
    if bytes.get(*at) == Some(&b'=') {
        *at += 1;
        let start = *at;
        skip_value(bytes, at);
        return Some(Setting { name, value: Some(without_wrapping(text, start, *at)) });
    }
    (name.0 < name.1).then_some(Setting { name, value: None })
}

/// Advances `at` to the white space after a value, which may be quoted or in braces.
fn skip_value(bytes: &[u8], at: &mut usize) {
    let mut depth = 0_usize;
    while let Some(&byte) = bytes.get(*at) {
        match byte {
            b'\'' | b'"' => {
                let rest = &bytes[*at + 1..];
                *at += rest.iter().position(|&other| other == byte).map_or(0, |skip| skip + 1);
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ if byte.is_ascii_whitespace() && depth == 0 => break,
            _ => {}
        }
        *at += 1;
    }
}

/// The span of the value at `start..end` without enclosing quotes or braces.
fn without_wrapping(text: &str, start: usize, end: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let is_wrapped = end - start >= 2
        && match (bytes[start], bytes[end - 1]) {
            (b'\'', b'\'') | (b'"', b'"') => true,
            (b'{', b'}') => closing_brace(text, start + 1) == Some(end - 1),
            _ => false,
        };
    if is_wrapped {
        (start + 1, end - 1)
    } else {
        (start, end)
    }
}

/// The position of the brace that closes the one right before `start`.
pub(super) fn closing_brace(text: &str, start: usize) -> Option<usize> {
    let mut depth = 1_usize;
    for (index, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::option_specs as option;
    use super::*;

    /// The message of the internal error for a pass that reads an option in a wrong way.
    fn message_of<T>(result: Result<T>) -> String {
        let Err(error) = result else { return "no error".to_owned() };
        assert_eq!(error.diagnostics[0].code, Code::Internal);
        error.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    #[test]
    fn options_that_are_not_declared_are_errors() {
        let options = Options::defaults(option::RULES, Version::NEWEST);
        assert_eq!(options.flag(&option::CONSERVATIVE), Ok(false));
        let message = "a pass uses option top-down, which it does not declare";
        assert_eq!(message_of(options.flag(&option::TOP_DOWN)), message);
        assert_eq!(message_of(options.text(&option::TOP_DOWN)), message);
        assert_eq!(message_of(options.number(&option::TOP_DOWN)), message);
        assert_eq!(message_of(options.list(&option::TOP_DOWN)), message);
        assert_eq!(message_of(options.with(&[(&option::TOP_DOWN, "true")])), message);
    }

    #[test]
    fn values_that_an_option_does_not_have_are_errors() {
        let options = Options::defaults(option::RULES, Version::NEWEST);
        let message =
            "\"maybe\" is not a value of option conservative-propagation: it is true or false";
        assert_eq!(message_of(options.with(&[(&option::CONSERVATIVE, "maybe")])), message);
    }
}
