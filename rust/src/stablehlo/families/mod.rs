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
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// All families.
const FAMILIES: [&[Family]; 21] = [
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

type Table = FxHashMap<String, &'static Definition>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families = FAMILIES.iter().copied().flatten();
        let names = |family: &'static Family| {
            let name = |op: &&str| (format!("{}.{op}", family.dialect), &family.definition);
            family.ops.iter().map(name).collect::<Vec<_>>()
        };
        families.flat_map(names).collect()
    })
}

/// The definition of the op called `name`; `None` if it is none of `StableHLO` or CHLO.
pub fn definition_of(name: &str) -> Option<&'static Definition> {
    table().get(name).copied()
}

/// The names of all ops that have a definition, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = table().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}
