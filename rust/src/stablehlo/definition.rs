//! Definitions of ops: their operands, results, attributes, regions and traits, and the inference of result
//! types.

use super::attribute_kinds::Kind;
use super::constraint::Constraint;
use super::mistake::Mistake;
use super::result_types::ResultTypes;
use super::traits::Trait;
use super::view::OpView;
use crate::shardy::{Change, Version};

/// Checks the conditions on an op that its traits do not express.
pub type Verify = fn(&OpView<'_>) -> Result<(), Mistake>;
/// Infers the result types. Element types that cannot be inferred are those of the op's results.
pub type Infer = fn(&OpView<'_>) -> Result<ResultTypes, Mistake>;

/// A group of operands or results.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The types that they may have.
    pub takes: Constraint,
    /// Whether there may be any number of them, rather than one.
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

/// An attribute that an op has to have.
pub const fn required(name: &'static str, kind: Kind) -> AttributeDefinition {
    AttributeDefinition { name, kind, is_required: true }
}
/// An attribute that an op may have.
pub const fn optional(name: &'static str, kind: Kind) -> AttributeDefinition {
    AttributeDefinition { name, kind, is_required: false }
}

/// The regions of an op.
#[derive(Clone, Copy, Debug)]
pub enum Regions {
    /// These, of one block each.
    Named(&'static [&'static str]),
    /// Any number of regions of one block each, with this name in messages.
    Branches(&'static str),
    /// Any number of any regions.
    Any,
}

/// How result types are compared with the inferred ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compares {
    /// Whole types.
    Types,
    /// Shapes only.
    Shapes,
    /// Not at all: [`Definition::verify`] checks them.
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
    /// The number of operands if the op is *plain*: it is valid whenever operands and result have one admitted
    /// type and it has none of its attributes.
    pub is_plain: Option<usize>,
    /// Whether the checks depend on more than the signature: on the values of operands that are constants, or on
    /// the function that the op names.
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
    /// The change of Shardy that brought this definition, and the definition before it, if there was any.
    pub since: Option<(Change, Option<&'static Definition>)>,
}

impl Family {
    /// The family with a definition that came with `change`; `before` is the one before it.
    pub const fn since(self, change: Change, before: Option<&'static Definition>) -> Self {
        Self { since: Some((change, before)), ..self }
    }
    /// The definition in this version, if the ops are part of it.
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
