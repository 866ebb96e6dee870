//! How errors are worded.

use crate::error::Error;

/// Rewords `error`, which is in the own syntax of an op called `name`, as the reference says it.
pub(in crate::mlir) fn in_own_syntax(name: &str, mut error: Error) -> Error {
    for problem in &mut error.diagnostics {
        // What token is expected is for MLIR's own parser to say.
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
