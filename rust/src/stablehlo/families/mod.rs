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
use rustc_hash::{FxBuildHasher, FxHashMap};
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

/// The definitions by dialect and name within it.
type Table = FxHashMap<(&'static str, &'static str), &'static Definition>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families = || FAMILIES.iter().copied().flatten();
        let count = families().map(|family| family.ops.len()).sum();
        let mut table = Table::with_capacity_and_hasher(count, FxBuildHasher);
        for Family { dialect, ops, definition } in families() {
            table.extend(ops.iter().map(|op| ((*dialect, *op), definition)));
        }
        table
    })
}

/// The definition of the op called `name`; `None` if it is none of `StableHLO` or CHLO.
pub fn definition_of(name: &str) -> Option<&'static Definition> {
    table().get(&name.split_once('.')?).copied()
}

/// The names of all ops that have a definition, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> =
        table().keys().map(|(dialect, op)| format!("{dialect}.{op}")).collect();
    names.sort_unstable();
    names
}
