//! The wording of error messages.

use crate::error::Error;

/// Rewords `error`, in the custom syntax of an op called `name`, as the reference does.
pub(in crate::mlir) fn in_own_syntax(name: &str, mut error: Error) -> Error {
    for problem in &mut error.diagnostics {
        // The reference leaves errors about expected tokens to MLIR's parser.
        let token = problem.message.strip_prefix("expected '");
        let is_of_tokens = token.is_some_and(|token| !token.starts_with(char::is_alphabetic))
            || problem.message == "unexpected character";
        if !is_of_tokens {
            problem.message = format!("custom op '{name}' {}", problem.message);
        }
    }
    error
}

/// `1 operand`, `2 operands`.
pub(in crate::mlir) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// MLIR's message for an op that needs `needs` operands, results or regions (`noun`) but has `has`;
/// `None` if the numbers are equal.
pub fn wrong_count(noun: &str, needs: usize, has: usize) -> Option<String> {
    if needs == has {
        return None;
    }
    Some(match (needs, noun) {
        (0, _) => format!("requires zero {noun}s"),
        (1, "operand") => "requires a single operand".to_owned(),
        (1, _) => format!("requires one {noun}"),
        (_, "operand") => format!("expected {needs} operands, but found {has}"),
        _ => format!("expected {needs} {noun}s"),
    })
}

/// MLIR's error if `text`, without quotes, is not a symbol visibility.
pub fn wrong_visibility(text: &str) -> Option<String> {
    let is_one = matches!(text, "public" | "private" | "nested");
    (!is_one).then(|| {
        format!(
            "visibility expected to be one of [\"public\", \"private\", \"nested\"], but got \"{text}\""
        )
    })
}
