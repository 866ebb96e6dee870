//! The one error type of the engine.
//!
//! An [`Error`] is a list of [`Diagnostic`]s: one for each user mistake found. A diagnostic has a
//! stable [`Code`], a message in the user's words, the byte span in the source that it is about,
//! and a hint. Line, column and carets are computed only when it is shown.
//! A broken invariant of the engine itself is not a user mistake: it is reported as [`Error::internal`], never
//! ignored.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// The stable code of a user mistake.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The code as text, as in `error[axis-overlap]`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The text is not MLIR.
    Syntax = "syntax",
    /// The text is nested deeper than the limit.
    NestedTooDeeply = "nested-too-deeply",
    /// An SSA name is used and never defined.
    UndefinedValue = "undefined-value",
    /// An SSA name is defined twice.
    RedefinedValue = "redefined-value",
    /// A type in the text is not the type of the value.
    TypeMismatch = "type-mismatch",
    /// A symbol is defined twice.
    RedefinedSymbol = "redefined-symbol",
    /// A symbol is referred to and never defined.
    UnknownSymbol = "unknown-symbol",
    /// A mesh is malformed.
    InvalidMesh = "invalid-mesh",
    /// A sharding names a mesh that is not there.
    UnknownMesh = "unknown-mesh",
    /// A sharding names an axis that its mesh does not have.
    UnknownAxis = "unknown-axis",
    /// An axis, or parts of it that overlap, is used twice in one sharding.
    AxisOverlap = "axis-overlap",
    /// A sub-axis is malformed.
    InvalidSubAxis = "invalid-sub-axis",
    /// A sharding does not fit the tensor it is on, or breaks another rule of the representation.
    InvalidSharding = "invalid-sharding",
    /// An op sharding rule is malformed.
    InvalidRule = "invalid-rule",
    /// An op of the `sdy` dialect breaks a rule of its own.
    InvalidOp = "invalid-op",
    /// A sharding group has members that cannot be sharded alike.
    InvalidGroup = "invalid-group",
    /// Functions call each other in a circle.
    RecursiveCall = "recursive-call",
    /// The program, or what it flattens to, is larger than the limit.
    ProgramTooLarge = "program-too-large",
    /// A shape or type that propagation does not support.
    UnsupportedType = "unsupported-type",
    /// Propagation does not converge.
    NoConvergence = "no-convergence",
    /// A pass or pipeline that does not exist, or a malformed pipeline text.
    InvalidPipeline = "invalid-pipeline",
    /// A version of Shardy that is not known, or something that the version asked for does not have.
    ShardyVersion = "shardy-version",
    /// A problem of choosing strategies, or a choice, that is malformed.
    InvalidProblem = "invalid-problem",
    /// A place in the user's program that no value comes from.
    UnknownLocation = "unknown-location",
    /// An op or a program that cannot be split over devices.
    Unpartitionable = "unpartitionable",
    /// A file cannot be read or written.
    Io = "io",
    /// The user interrupted the work.
    Interrupted = "interrupted",
    /// Something is being run or computed already, and this call would wait for itself.
    Busy = "busy",
    /// An invariant of shardcore itself does not hold.
    Internal = "internal-error",
}

/// Where something stands in the text: bytes `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Bytes `start..end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }
    /// No bytes: there is no such text.
    pub const EMPTY: Self = Self { start: 0, end: 0 };
    /// Whether there is no such text.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
    /// Number of bytes.
    #[inline]
    pub const fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// One user mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// What kind of mistake.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where, if it is about a place in the text.
    pub span: Option<Span>,
    /// The part of the mistake that is wrong, if it is on another line than `span`.
    pub detail: Option<Span>,
    /// Another place to point at, with what it is: `(where, "first used here")`.
    pub related: Option<(Span, String)>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake at no particular place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), span: None, detail: None, related: None, hint: None }
    }
    /// Says where the mistake is.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }
    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Adds a second place that the mistake is about, and what stands there.
    #[must_use]
    pub fn with_related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some((span, label.into()));
        self
    }
}

/// All user mistakes found; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The mistakes in program order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Error {
    /// The error that an invariant of shardcore itself does not hold.
    pub fn internal(message: impl Into<String>) -> Self {
        Diagnostic::new(Code::Internal, message)
            .with_hint("this is a mistake in shardcore: please report it with the program")
            .into()
    }
    /// Whether it says that the work was interrupted.
    pub fn is_interruption(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::Interrupted)
    }
    /// `Ok` if there are no diagnostics.
    pub fn check(diagnostics: Vec<Diagnostic>) -> Result<()> {
        if diagnostics.is_empty() {
            Ok(())
        } else {
            Err(Self { diagnostics })
        }
    }
}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}error[{}]: {}", diagnostic.code.as_str(), diagnostic.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The engine's result type.
pub type Result<T> = std::result::Result<T, Error>;
