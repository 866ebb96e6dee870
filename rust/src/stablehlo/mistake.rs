//! Errors in ops, with MLIR's messages.

/// An error in an op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The message; empty if MLIR fails without one.
    pub text: String,
    /// Whether MLIR prefixes the message with the name of the op.
    pub names_op: bool,
}

impl Mistake {
    /// An error for which MLIR has no message.
    pub const fn silent() -> Self {
        Self { text: String::new(), names_op: false }
    }
    /// The message for the op called `name`.
    pub fn of(&self, name: &str) -> String {
        if self.names_op {
            format!("'{name}' op {}", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// An error whose message does not start with the name of the op.
pub fn bare(text: impl Into<String>) -> Mistake {
    Mistake { text: text.into(), names_op: false }
}

/// An error whose message starts with the name of the op.
pub fn of_op(text: impl Into<String>) -> Mistake {
    Mistake { text: text.into(), names_op: true }
}

/// `Err` of [`bare`] unless `holds`.
#[inline]
pub fn ensure(holds: bool, text: impl FnOnce() -> String) -> Result<(), Mistake> {
    if holds {
        Ok(())
    } else {
        Err(bare(text()))
    }
}
