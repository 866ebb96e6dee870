//! A table of the parts of the engine that handle each op: one row per op, one column per part.
//!
//! Columns are computed by the parts themselves, so that the table always agrees with the code. It shows what is
//! missing for a new op. `tests/contract/test_ops.py` adds the column of the simulator, which is in Python, and
//! checks that a reason is given for every empty cell.

use crate::export::pad_for_divisibility::ShapeRule;
use crate::ir::{EdgeSpec, OpInfo, OpKind, Syntax, OPS};
use crate::propagation::has_identity_rule;
use crate::rules::{legalized_families, table};
use crate::spmd;
use crate::verify;
use crate::work::ops;
use std::collections::BTreeSet;

/// How the parts of the engine handle one op; `None` if a part does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpRow {
    /// Full name.
    pub name: &'static str,
    /// Its traits, separated by commas.
    pub traits: Option<String>,
    /// Its assembly format; `None` if only the generic form is read.
    pub syntax: Option<String>,
    /// What the op is verified against.
    pub verification: Option<&'static str>,
    /// The source of its sharding rule.
    pub rule: Option<String>,
    /// The source of its cost.
    pub cost: Option<&'static str>,
    /// How its types are inferred if it is padded.
    pub padding: Option<&'static str>,
    /// How the op is partitioned.
    pub partitioning: Option<&'static str>,
}

/// All ops that some part of the engine handles, sorted by name.
pub fn rows() -> Vec<OpRow> {
    names().into_iter().map(row).collect()
}

fn names() -> BTreeSet<&'static str> {
    let rules = table::FAMILIES.iter().chain(legalized_families()).flat_map(|family| family.ops);
    let costs = ops::Family::all().flat_map(|family| family.ops);
    let infos = OPS.iter().map(|info| info.name);
    infos.chain(rules.copied()).chain(costs.copied()).collect()
}

fn row(name: &'static str) -> OpRow {
    let info = OpInfo::by_name(name);
    OpRow {
        name,
        traits: info.map(|info| info.traits.names().join(", ")),
        syntax: info.and_then(|info| {
            (info.syntax != Syntax::Generic).then(|| format!("{:?}", info.syntax).to_lowercase())
        }),
        verification: verify::checks_of(name),
        rule: rule(name),
        cost: ops::Family::of(name).map(|family| family.name),
        padding: padding(name),
        partitioning: spmd::LoweringKind::name_of(name),
    }
}

fn rule(name: &str) -> Option<String> {
    let kind = OpKind::from_name(name);
    if let Some(family) = table::Family::of(name) {
        return Some(family.name.to_owned());
    }
    if let Some(family) = legalized_families().iter().find(|family| family.ops.contains(&name)) {
        return Some(format!("{}, where CHLO is legalized", family.name));
    }
    if EdgeSpec::of_kind(kind).is_some() {
        return Some("data-flow edges".to_owned());
    }
    has_identity_rule(kind).then(|| "identity".to_owned())
}

fn padding(name: &str) -> Option<&'static str> {
    match ShapeRule::of(name) {
        Some(ShapeRule::FromShardings) => Some("as sharded"),
        Some(ShapeRule::Operands | ShapeRule::Operand(_)) => Some("as operands"),
        Some(ShapeRule::Elementwise) => Some("elementwise"),
        Some(ShapeRule::Attributes(_) | ShapeRule::Own) => Some("own shapes"),
        Some(ShapeRule::Fixed) => Some("true size"),
        None => name.starts_with("stablehlo.").then_some("true size"),
    }
}
