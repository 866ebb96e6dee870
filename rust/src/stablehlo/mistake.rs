//! What is wrong with an op, in MLIR's words.

/// Why an op is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// What is wrong; empty where MLIR does not say.
    pub text: String,
    /// Whether MLIR starts with the name of the op.
    pub names_op: bool,
}

impl Mistake {
    /// What MLIR refuses without a word.
    pub const fn silent() -> Self {
        Self { text: String::new(), names_op: false }
    }
    /// What is said of the op called `name`.
    pub fn of(&self, name: &str) -> String {
        if self.names_op {
            format!("'{name}' op {}", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// A mistake that MLIR reports without the name of the op.
pub fn bare(text: impl Into<String>) -> Mistake {
    Mistake { text: text.into(), names_op: false }
}

/// A mistake that MLIR reports with the name of the op in front.
pub fn of_op(text: impl Into<String>) -> Mistake {
    Mistake { text: text.into(), names_op: true }
}

/// `Err` of [`bare`] unless `holds`.
pub fn ensure(holds: bool, text: impl FnOnce() -> String) -> Result<(), Mistake> {
    if holds {
        Ok(())
    } else {
        Err(bare(text()))
    }
}
