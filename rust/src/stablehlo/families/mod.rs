//! The definitions, by families.

mod broadcast;
mod call;
mod chlo;
mod collective;
mod contract;
mod control_flow;
mod convolution;
mod dynamic;
mod elementwise;
mod gather;
mod linalg;
mod movement;
mod normalization;
mod ragged_dot;
mod reducer;
mod reduction;
mod replica_groups;
mod scan;
mod scatter;
mod shape;
mod sort;
mod token;
mod window;

use super::definition::{Definition, Family};

/// All families.
static FAMILIES: [&[Family]; 21] = [
    elementwise::FAMILIES,
    shape::FAMILIES,
    movement::FAMILIES,
    contract::FAMILIES,
    ragged_dot::FAMILIES,
    convolution::FAMILIES,
    gather::FAMILIES,
    scatter::FAMILIES,
    reduction::FAMILIES,
    window::FAMILIES,
    sort::FAMILIES,
    control_flow::FAMILIES,
    call::FAMILIES,
    collective::FAMILIES,
    token::FAMILIES,
    linalg::FAMILIES,
    normalization::FAMILIES,
    dynamic::FAMILIES,
    broadcast::FAMILIES,
    chlo::FAMILIES,
    scan::FAMILIES,
];

fn families() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().copied().flatten()
}

/// The definition of the op called `name`; `None` if it is none of `StableHLO` or CHLO. It compares all names, so
/// callers keep what it returns.
pub fn definition_of(name: &str) -> Option<&'static Definition> {
    let (dialect, op) =
        name.split_once('.').filter(|(it, _)| matches!(*it, "stablehlo" | "chlo"))?;
    let mut of_dialect = families().filter(|family| family.dialect == dialect);
    of_dialect.find(|family| family.ops.contains(&op)).map(|family| &family.definition)
}

/// The names of all ops that have a definition, sorted.
pub fn names() -> Vec<String> {
    let all = families().flat_map(|Family { dialect, ops, .. }| {
        ops.iter().map(move |op| format!("{dialect}.{op}"))
    });
    let mut names: Vec<String> = all.collect();
    names.sort_unstable();
    names
}
