//! Enumerations of `StableHLO` and CHLO: `#stablehlo<precision HIGHEST>`.

use super::position::Grammar;
use crate::error::Result;
use crate::mlir::cursor::syntax;
use crate::mlir::escapes::unescaped;

/// An enumeration: the name of its attribute, the name of its type, and its cases.
type Enumeration = (&'static str, &'static str, &'static [&'static str]);

const ENUMERATIONS: [Enumeration; 7] = [
    ("precision", "Precision", &["DEFAULT", "HIGH", "HIGHEST"]),
    ("comparison_direction", "ComparisonDirection", &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    ("comparison_type", "ComparisonType", &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
    ("fft_type", "FftType", &["FFT", "IFFT", "RFFT", "IRFFT"]),
    ("transpose", "Transpose", &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
    ("rng_algorithm", "RngAlgorithm", &["DEFAULT", "THREE_FRY", "PHILOX"]),
    ("rng_distribution", "RngDistribution", &["UNIFORM", "NORMAL"]),
];

/// The enumeration whose attribute is called `name`.
pub(super) fn enumeration(name: &str) -> Option<&'static Enumeration> {
    ENUMERATIONS.iter().find(|(other, ..)| *other == name)
}

/// The name and the cases of the enumeration whose attribute is called `name`.
pub(in crate::mlir) fn cases(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    enumeration(name).map(|&(_, own, cases)| (own, cases))
}

/// The modes of `#stablehlo.result_accuracy_mode`.
pub(super) const ACCURACY_MODES: [&str; 3] = ["DEFAULT", "HIGHEST", "TOLERANCE"];

/// The case of any enumeration that equals `word`.
pub(in crate::mlir) fn known_case(word: &str) -> Option<&'static str> {
    let cases = ENUMERATIONS.iter().flat_map(|(.., cases)| cases.iter());
    cases.chain(&ACCURACY_MODES).find(|case| **case == word).copied()
}

impl Grammar<'_, '_> {
    /// A case of `enumeration`.
    pub(super) fn enumeration(&mut self, enumeration: &Enumeration) -> Result<()> {
        self.case(enumeration.1, enumeration.2)
    }
    /// One of the `cases` of the enumeration called `name`, as a word or in quotes.
    pub fn case(&mut self, name: &str, cases: &[&str]) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let is_quoted = self.cursor.peek() == b'"';
        let word =
            if is_quoted { unescaped(self.cursor.string()?) } else { self.cursor.name().into() };
        let word = &*word;
        if cases.contains(&word) {
            return Ok(());
        }
        if word.is_empty() && !is_quoted {
            return Err(self.cursor.expected("valid keyword or string"));
        }
        let message = format!("expected {name} to be one of: {}", cases.join(", "));
        let hint = crate::suggest::hint(word, cases.iter().copied(), str::to_owned);
        let problem = syntax(self.cursor.span_since(start), message);
        Err(match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
        .into())
    }
}
