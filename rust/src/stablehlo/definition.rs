//! Definitions of ops: their operands, results, attributes, regions and traits, and the inference
//! of result types.

use super::attribute_kinds::Kind;
use super::constraint::Constraint;
use super::mistake::Mistake;
use super::result_types::ResultTypes;
use super::traits::Trait;
use super::view::OpView;
use crate::shardy::{Change, Version};

/// Checks conditions on an op that its traits do not express.
pub type Verify = fn(&OpView<'_>) -> Result<(), Mistake>;
/// Infers the result types. Element types that cannot be inferred are taken from the op's results.
pub type Infer = fn(&OpView<'_>) -> Result<ResultTypes, Mistake>;

/// A group of operands or results.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The types that they may have.
    pub takes: Constraint,
    /// Whether it is variadic; otherwise there is exactly one.
    pub is_variadic: bool,
}

/// One operand or result.
pub const fn one(takes: Constraint) -> Group {
    Group { takes, is_variadic: false }
}
/// Any number of operands or results.
pub const fn many(takes: Constraint) -> Group {
    Group { takes, is_variadic: true }
}

/// An attribute of an op.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDefinition {
    /// Its name.
    pub name: &'static str,
    /// The values that it may have.
    pub kind: Kind,
    /// Whether the op has to have it.
    pub is_required: bool,
}

/// A required attribute.
pub const fn required(name: &'static str, kind: Kind) -> AttributeDefinition {
    AttributeDefinition { name, kind, is_required: true }
}
/// An optional attribute.
pub const fn optional(name: &'static str, kind: Kind) -> AttributeDefinition {
    AttributeDefinition { name, kind, is_required: false }
}

/// The regions of an op.
#[derive(Clone, Copy, Debug)]
pub enum Regions {
    /// Regions with these names, with one block each.
    Named(&'static [&'static str]),
    /// Any number of regions with one block each, and their name in messages.
    Branches(&'static str),
    /// Any number of regions, without conditions.
    Any,
}

/// How result types are compared with the inferred ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compares {
    /// Whole types.
    Types,
    /// Shapes only.
    Shapes,
    /// They are not compared: [`Definition::verify`] checks them.
    Nothing,
}

/// The definition of an op.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its operands.
    pub operands: &'static [Group],
    /// Its results.
    pub results: &'static [Group],
    /// Its attributes.
    pub attributes: &'static [AttributeDefinition],
    /// Its regions.
    pub regions: Regions,
    /// Whether regions have to end with `stablehlo.return`.
    pub has_implicit_return: bool,
    /// The relations between its types, in the order in which MLIR checks them.
    pub traits: &'static [Trait],
    /// Checks further conditions.
    pub verify: Option<Verify>,
    /// Infers the result types.
    pub infer: Option<Infer>,
    /// How MLIR compares the result types with the inferred ones.
    pub compares: Compares,
    /// The number of operands if the op is *plain*: it is valid whenever operands and result have
    /// the same admitted type and none of its attributes is set.
    pub is_plain: Option<usize>,
    /// Whether validity depends on more than the signature: on operands that are constants, or on a
    /// function that the op refers to.
    pub looks_around: bool,
}

/// An empty definition.
pub const NOTHING: Definition = Definition {
    operands: &[],
    results: &[],
    attributes: &[],
    regions: Regions::Named(&[]),
    has_implicit_return: false,
    traits: &[],
    verify: None,
    infer: None,
    compares: Compares::Types,
    is_plain: None,
    looks_around: false,
};

/// Ops that have the same definition.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The dialect and the ops, without it.
    pub dialect: &'static str,
    /// The ops.
    pub ops: &'static [&'static str],
    /// The definition of each of the ops.
    pub definition: Definition,
    /// The change of Shardy that introduced this definition, and the earlier definition, if there
    /// was one.
    pub since: Option<(Change, Option<&'static Definition>)>,
}

impl Family {
    /// The family with a definition that `change` introduced; `before` is the earlier one.
    pub const fn since(self, change: Change, before: Option<&'static Definition>) -> Self {
        Self { since: Some((change, before)), ..self }
    }
    /// The definition in this version, if the version has the ops.
    pub const fn definition_in(&'static self, shardy: Version) -> Option<&'static Definition> {
        match self.since {
            Some((change, before)) if !shardy.has(change) => before,
            _ => Some(&self.definition),
        }
    }
}

/// Ops of `StableHLO` that have the same definition.
pub const fn stablehlo(ops: &'static [&'static str], definition: Definition) -> Family {
    Family { dialect: "stablehlo", ops, definition, since: None }
}
/// Ops of CHLO that have the same definition.
pub const fn chlo(ops: &'static [&'static str], definition: Definition) -> Family {
    Family { dialect: "chlo", ops, definition, since: None }
}
