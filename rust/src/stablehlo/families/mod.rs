//! The definitions, in families.

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
mod rooted;
mod scan;
mod scatter;
mod shape;
mod sort;
mod token;
mod window;

use super::definition::{Definition, Family};
use crate::shardy::Version;

/// All families.
static FAMILIES: [&[Family]; 22] = [
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
    rooted::FAMILIES,
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

/// The position of an op: the indices of its list of families, of its family, and of the op in it;
/// `None` is a free slot.
type Slot = Option<(u8, u8, u8)>;

/// At least twice as many as there are ops.
const NUM_SLOTS: usize = 512;

/// An open-addressing hash table of all ops: each is in the slot of its hash or in the next free
/// one.
static SLOTS: [Slot; NUM_SLOTS] = slots();

const fn slots() -> [Slot; NUM_SLOTS] {
    let mut slots: [Slot; NUM_SLOTS] = [None; NUM_SLOTS];
    let mut num_ops = 0;
    let mut list = 0;
    while list < FAMILIES.len() {
        let mut at = 0;
        while at < FAMILIES[list].len() {
            let family = &FAMILIES[list][at];
            let mut op = 0;
            while op < family.ops.len() {
                let mut slot = slot_of(family.dialect, family.ops[op]);
                while slots[slot].is_some() {
                    slot = (slot + 1) % NUM_SLOTS;
                }
                slots[slot] = Some((list as u8, at as u8, op as u8));
                num_ops += 1;
                op += 1;
            }
            at += 1;
        }
        list += 1;
    }
    assert!(2 * num_ops <= NUM_SLOTS);
    slots
}

/// The first slot to search for `op` of `dialect`.
const fn slot_of(dialect: &str, op: &str) -> usize {
    let mut hash = dialect.len();
    let mut at = 0;
    while at < op.len() {
        hash = hash.wrapping_mul(31).wrapping_add(op.as_bytes()[at] as usize);
        at += 1;
    }
    hash % NUM_SLOTS
}

/// The definition of the op called `name` in the version `shardy`; `None` if that version has no
/// such op of `StableHLO` or CHLO.
pub fn definition_of(name: &str, shardy: Version) -> Option<&'static Definition> {
    let dot = name.bytes().position(|byte| byte == b'.')?;
    let (dialect, op) = (&name[..dot], &name[dot + 1..]);
    let mut slot = slot_of(dialect, op);
    loop {
        let (list, at, place) = SLOTS[slot]?;
        let family = &FAMILIES[usize::from(list)][usize::from(at)];
        if family.ops[usize::from(place)] == op && family.dialect == dialect {
            return family.definition_in(shardy);
        }
        slot = (slot + 1) % NUM_SLOTS;
    }
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
