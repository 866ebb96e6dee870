//! What each part of the engine knows of each op: one row an op, one column a part.
//!
//! A column asks the part itself, so that the table cannot say anything else than the code. Whoever adds an op
//! sees here what is still missing; `tests/contract/test_ops.py` adds the simulator's column, which is in Python,
//! and holds every hole against the reason given for it.

use crate::cost::work;
use crate::export::pad_for_divisibility::ShapeRule;
use crate::ir::{EdgeSpec, OpInfo, OpKind, Syntax, OPS};
use crate::propagation::has_identity_rule;
use crate::rules::{legalized_families, table};
use crate::spmd;
use crate::verify;
use std::collections::BTreeSet;

/// What is known of one op; `None` where a part of the engine knows nothing of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpRow {
    /// Full name.
    pub name: &'static str,
    /// Its traits, separated by commas.
    pub traits: Option<String>,
    /// Its assembly format; `None` if only the generic form is read.
    pub syntax: Option<String>,
    /// What it is checked against.
    pub verification: Option<&'static str>,
    /// Where its sharding rule comes from.
    pub rule: Option<String>,
    /// Where its cost comes from.
    pub cost: Option<&'static str>,
    /// How its types follow if it is padded.
    pub padding: Option<&'static str>,
    /// How it is partitioned.
    pub partitioning: Option<&'static str>,
}

/// All ops that some part of the engine knows, sorted by name.
pub fn rows() -> Vec<OpRow> {
    names().into_iter().map(row).collect()
}

fn names() -> BTreeSet<&'static str> {
    let rules = table::FAMILIES.iter().chain(legalized_families()).flat_map(|family| family.ops);
    let costs = work::Family::all().flat_map(|family| family.ops);
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
        cost: work::Family::of(name).map(|family| family.name),
        padding: ShapeRule::of(name).map(padding),
        partitioning: spmd::Treatment::name_of(name),
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

const fn padding(rule: ShapeRule) -> &'static str {
    match rule {
        ShapeRule::FromShardings => "as sharded",
        ShapeRule::Operands | ShapeRule::Operand(_) => "as operands",
        ShapeRule::Elementwise => "elementwise",
        ShapeRule::Attributes(_) => "own shapes",
        ShapeRule::Fixed => "refused",
    }
}
