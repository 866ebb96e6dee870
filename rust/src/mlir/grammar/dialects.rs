//! The dialects that the reference knows, and how much of each the engine knows.

/// Whose ops are known to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mlir) enum Ops {
    /// All of a dialect.
    All,
    /// Some, or none.
    Some,
}

/// The dialects that are registered where the reference parses programs.
const DIALECTS: [(&str, Ops); 23] = [
    ("builtin", Ops::All),
    ("func", Ops::All),
    ("stablehlo", Ops::All),
    ("chlo", Ops::All),
    ("sdy", Ops::All),
    ("affine", Ops::Some),
    ("arith", Ops::Some),
    ("cf", Ops::Some),
    ("complex", Ops::Some),
    ("gpu", Ops::Some),
    ("llvm", Ops::Some),
    ("math", Ops::Some),
    ("memref", Ops::Some),
    ("mhlo", Ops::Some),
    ("mpmd", Ops::Some),
    ("nvgpu", Ops::Some),
    ("nvvm", Ops::Some),
    ("scf", Ops::Some),
    ("shape", Ops::Some),
    ("tensor", Ops::Some),
    ("ub", Ops::Some),
    ("vector", Ops::Some),
    ("vhlo", Ops::Some),
];

/// Which ops of the dialect `name` are known; `None` if the reference does not have it.
pub(in crate::mlir) fn known_dialect(name: &str) -> Option<Ops> {
    DIALECTS.iter().find(|(known, _)| *known == name).map(|&(_, ops)| ops)
}
