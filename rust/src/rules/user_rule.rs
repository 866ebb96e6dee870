//! Rules that users register, as strings or functions.

use super::answers::{self, Answer, Question, Record};
use super::notation::Notation;
use super::view::SignatureView;
use crate::attribute::{verify_rule, verify_rule_shapes};
use crate::error::{Error, Result};
use crate::op_sharding_rule::OpShardingRule;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A user's function from a signature to its rule.
pub type RuleFunction = dyn Fn(&SignatureView<'_>) -> Result<Option<OpShardingRule>> + Send + Sync;

/// The form in which a user gives the rule of an op.
#[derive(Clone)]
pub enum UserRule {
    /// A string, for any shape.
    Notation(Notation),
    /// A function, which is called once for each signature.
    Function(UserFunction),
}

/// A user's function, with a number that identifies it in cache keys.
#[derive(Clone)]
pub struct UserFunction {
    number: u64,
    function: Arc<RuleFunction>,
}

impl UserRule {
    /// A rule given by `function`.
    pub fn function(function: Arc<RuleFunction>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::Function(UserFunction { number, function })
    }
}

impl fmt::Debug for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notation(notation) => notation.fmt(f),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// Whether a run records or replays the answers of users' functions.
#[derive(Clone, Debug)]
pub(super) enum Recording {
    /// Neither, since the run is not repeated.
    Off,
    /// It records them, since the run may be repeated.
    On(Record),
    /// It uses those recorded by the first run and calls no function.
    Replayed(Record),
}

impl Recording {
    fn get(&self, question: &Question) -> Option<Answer> {
        match self {
            Self::Off => None,
            Self::On(record) | Self::Replayed(record) => record.get(question),
        }
    }
    fn keep(&self, question: Question, answer: &Answer) {
        if let Self::On(record) = self {
            record.keep(question, answer.clone());
        }
    }
    /// The mode that replays what this one has recorded.
    pub(super) fn replayed(&self) -> Self {
        match self {
            Self::Off => Self::Replayed(Record::default()),
            Self::On(record) | Self::Replayed(record) => Self::Replayed(record.clone()),
        }
    }
}

impl UserRule {
    /// The user's rule for a signature, after checks; the result of a function is cached.
    pub(super) fn ask(
        &self,
        view: &SignatureView<'_>,
        recording: &Recording,
    ) -> Result<Option<OpShardingRule>> {
        let rule = match self {
            Self::Notation(notation) => notation.instantiate(view).map(Some),
            Self::Function(function) => function.ask(view, recording),
        };
        rule.map_err(|error| at_op(view, "rule", error))
    }
}

impl UserFunction {
    /// The result of the function, from the cache or a call.
    fn ask(
        &self,
        view: &SignatureView<'_>,
        recording: &Recording,
    ) -> Result<Option<OpShardingRule>> {
        let rule_of = |answer: Answer| answer.map(|rule| OpShardingRule::clone(&rule));
        let question: Question = (self.number, signature_key(view).into());
        if let Some(answer) = recording.get(&question) {
            return Ok(rule_of(answer));
        }
        if matches!(recording, Recording::Replayed(_)) {
            return Err(Error::internal("a rule is asked for what it was not asked before"));
        }
        let answer = if let Some(answer) = answers::find(&question) {
            answer
        } else {
            // No lock is held here, because the function may use the engine.
            let rule = (self.function)(view).and_then(|rule| check(view, rule))?;
            let answer = rule.map(Arc::new);
            answers::keep(question.clone(), answer.clone());
            answer
        };
        recording.keep(question, &answer);
        Ok(rule_of(answer))
    }
}

/// Checks the rule returned by a function as the parser and the verifier check a rule in the text.
fn check(view: &SignatureView<'_>, rule: Option<OpShardingRule>) -> Result<Option<OpShardingRule>> {
    let Some(rule) = rule else { return Ok(None) };
    let mut problems = verify_rule(&rule);
    if problems.is_empty() {
        let shape = |shape: Option<&[i64]>| Ok(shape.unwrap_or(&[]).to_vec());
        let operands: Vec<_> = (0..view.num_operands()).map(|i| shape(view.operand(i))).collect();
        let results: Vec<_> = (0..view.num_results()).map(|i| shape(view.result(i))).collect();
        problems = verify_rule_shapes(&rule, &operands, &results);
    }
    Error::check(problems)?;
    Ok(Some(rule))
}

/// `error`, which is about `what` of an op, at the first op with the signature.
pub(super) fn at_op(view: &SignatureView<'_>, what: &str, mut error: Error) -> Error {
    let Some((program, id)) = view.source() else { return error };
    let span = program.op_span(program.signatures()[id].example);
    for diagnostic in &mut error.diagnostics {
        diagnostic.message = format!("{what} of {}: {}", view.name, diagnostic.message);
        diagnostic.span = span;
    }
    error
}

/// The cache key of a function's answer: all its arguments, as bytes that are independent of the
/// program.
pub(super) fn signature_key(view: &SignatureView<'_>) -> Vec<u8> {
    let mut key = view.name.as_bytes().to_vec();
    key.push(u8::from(view.conservative));
    if let Some((program, id)) = view.source() {
        let signature = &program.signatures()[id];
        for &ty in signature.operand_types.iter().chain(&signature.result_types) {
            key.extend_from_slice(program.type_text(ty).as_bytes());
            key.push(0);
        }
        key.extend_from_slice(&(signature.operand_types.len() as u32).to_le_bytes());
    }
    for (name, value) in view.attributes() {
        key.extend_from_slice(format!("{name}={value:?}\0").as_bytes());
    }
    key
}
