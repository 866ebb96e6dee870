//! The ops of `StableHLO` and CHLO: what each takes, and which result types follow.
//!
//! A [`Definition`] says which operands, results, attributes and regions an op has, how their types hang
//! together, and how result types follow from operands and attributes. Definitions stand in one table,
//! by families: whoever makes ops ([`infer`]) and whoever checks them ([`Checker`]) read the same one.
//! Shape functions see types ([`types`]) and attributes ([`attributes`]) and no program, so that ops can
//! be typed before they exist; dimension numbers have one reader each ([`dims`]).
//!
//! What is wrong is said in the words of MLIR's verifier, of which only the first mistake of an op
//! counts.
//!
//! Assumes that attributes parse. Checking costs as much as there are different ops: those that are
//! written like one that was checked need no second look.
//!
//! Source: `StablehloOps.td`, `ChloOps.td` and `TypeInference.cpp` of `StableHLO`; MLIR's traits.

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
mod kinds;
mod last_attributes;
mod mistake;
mod read_types;
mod traits;
pub mod types;
mod view;

pub use attributes::Attributes;
pub use checker::Checker;
pub use definition::Definition;
pub use element::Element;
pub use families::{definition_of, names};
pub use mistake::Mistake;
pub use read_types::TypeCache;
pub use types::{Size, Tensor, ValueType};
pub use view::{OpView, RegionView};

/// The result types that follow for `op`, the types of whose results give the element types that do not
/// follow; `None` if the definition of the op does not say which follow.
pub fn infer(op: &OpView<'_>) -> Option<Result<Vec<ValueType>, Mistake>> {
    definition_of(op.name)?.infer(op)
}
