//! The error that an attribute is newer than the version of Shardy.

use crate::error::{Code, Diagnostic};
use crate::shardy::{Change, Version};

/// The error that `shardy` does not have `what`, if it lacks `change`.
pub fn too_new(what: &str, change: Change, shardy: Version) -> Option<Diagnostic> {
    if shardy.has(change) {
        return None;
    }
    let message = format!("{what} is not in the Shardy of jaxlib {}", shardy.name());
    let problem = Diagnostic::new(Code::ShardyVersion, message);
    Some(problem.with_hint(shardy.hint_for(change.since())))
}
