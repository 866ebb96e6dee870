//! What is said of an op: the operands, results, attributes and regions that it has, how its types hang
//! together, and which result types follow.

use super::constraint::Constraint;
use super::kinds::Kind;
use super::mistake::Mistake;
use super::traits::Trait;
use super::types::ValueType;
use super::view::OpView;

/// Checks what an op's traits do not say.
pub type Verify = fn(&OpView<'_>) -> Result<(), Mistake>;
/// Says which result types follow. Where element types do not follow, those of the results are taken.
pub type Infer = fn(&OpView<'_>) -> Result<Vec<ValueType>, Mistake>;

/// Operands or results that stand together.
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
    /// What it may be.
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
    /// Any number of regions of one block each, called this.
    Branches(&'static str),
    /// Any number of any regions.
    Any,
}

/// What of the result types is compared with those that follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compares {
    /// Whole types.
    Types,
    /// Shapes only.
    Shapes,
    /// Nothing: [`Definition::verify`] does.
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
    /// How its types hang together, in the order in which MLIR checks it.
    pub traits: &'static [Trait],
    /// What else is checked.
    pub verify: Option<Verify>,
    /// Which result types follow.
    pub infer: Option<Infer>,
    /// What of the result types MLIR compares with those that follow.
    pub compares: Compares,
    /// How many operands there are, if the op is right wherever they and the result have one type that is
    /// a right one, and none of the attributes below is there.
    pub is_plain: Option<usize>,
    /// Whether what is checked depends on the values of operands that are constants.
    pub reads_constants: bool,
}

/// A definition that says nothing.
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
    reads_constants: false,
};

/// Ops that have the same definition.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The dialect and the ops, without it.
    pub dialect: &'static str,
    /// The ops.
    pub ops: &'static [&'static str],
    /// What is said of each.
    pub definition: Definition,
}

/// Ops of `StableHLO` that have the same definition.
pub const fn stablehlo(ops: &'static [&'static str], definition: Definition) -> Family {
    Family { dialect: "stablehlo", ops, definition }
}
/// Ops of CHLO that have the same definition.
pub const fn chlo(ops: &'static [&'static str], definition: Definition) -> Family {
    Family { dialect: "chlo", ops, definition }
}
