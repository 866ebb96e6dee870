//! Verifies the ops of `StableHLO` and CHLO, and infers their result types.
//!
//! A [`Definition`] has the operands, results, attributes and regions of an op, the relations
//! between their types, and the inference of result types from operands and attributes. The same
//! definitions, grouped in families, are used to make ops ([`infer`]) and to check them
//! ([`Checker`]). Shape functions depend on types ([`types`]) and attributes ([`attributes`]) but
//! not on a program, so that result types can be inferred before an op is made. Dimension numbers
//! are parsed in one place ([`dims`]), and so are windows ([`windows`]). Trip counts of loops are
//! computed from their conditions and bodies ([`trips`]).
//!
//! Messages are those of MLIR's verifier; as in MLIR, only the first error of an op is reported.
//!
//! Assumes that attributes can be parsed. Takes linear time in the number of distinct signatures,
//! since an op whose signature was checked in any program of the process is not checked again
//! ([`verified`]).
//!
//! Source: `StablehloOps.td`, `ChloOps.td` and `TypeInference.cpp` of `StableHLO`; MLIR's traits.

mod attribute_kinds;
pub mod attributes;
mod check;
mod checker;
mod compatible;
mod constraint;
mod definition;
mod dim_checks;
pub mod dims;
pub mod element;
mod families;
mod last_ops;
mod mistake;
mod read_types;
mod result_types;
mod traits;
pub mod trips;
pub mod types;
pub mod verified;
mod view;
pub mod windows;

use crate::shardy::Version;
pub use attributes::{Attribute, Attributes};
pub use checker::{constant_ints, Checker};
pub use definition::Definition;
pub use element::Element;
pub use families::{definition_of, names};
pub use mistake::Mistake;
pub use read_types::TypeCache;
pub use result_types::ResultTypes;
pub use types::{Size, Tensor, ValueType};
pub use view::{OpView, RegionView};

/// The inferred result types of `op`; element types that cannot be inferred are taken from the
/// types of its results. `None` if the definition of the op has no inference.
pub fn infer(op: &OpView<'_>) -> Option<Result<ResultTypes, Mistake>> {
    definition_of(op.name, Version::NEWEST)?.infer(op)
}
