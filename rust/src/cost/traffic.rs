//! What the collectives of a program of one device move, and nothing else of its cost: enough to say what a device sends.

use super::collectives::{bytes_moved, collective, CollectiveKind};
use super::execution::Execution;
use super::groups::size_of_groups;
use super::inline::Inlined;
use super::work::Measure;
use super::works::Works;
use crate::context::RuleSource;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Collectives that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Traffic {
    /// Their kind.
    pub kind: CollectiveKind,
    /// How many devices talk to each other; 1 where that is not known.
    pub devices: i64,
    /// Bytes that each time a device has of the array once it is gathered.
    pub bytes: u128,
    /// How often such collectives run.
    pub count: u128,
}

/// What the collectives of `program`, one of one device, move: those that are alike as one, in order of first appearance.
pub fn traffic(program: &Program, rules: &mut dyn RuleSource) -> Result<Vec<Traffic>> {
    let mut program = Cow::Borrowed(program);
    if program.has_any(&[OpKind::Case, OpKind::If]) {
        // Which branch counts depends on the work of ops, which is looked up by their signatures.
        rules.prepare(program.to_mut(), false)?;
    }
    let inlined = Inlined::new(&program);
    let program = &*inlined.program;
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let mut sizes: FxHashMap<(bool, &str), Option<i64>> = FxHashMap::default();
    let mut rows: Vec<Traffic> = Vec::new();
    let mut places: FxHashMap<Traffic, usize> = FxHashMap::default();
    for &func in execution.functions.iter().rev() {
        for op in program.pre_order(program.func_op(func)).skip(1) {
            let count = execution.times(program.parent_block(op));
            let measure = works.family(op).map(|family| family.measure);
            if count == 0 || !matches!(measure, Some(Measure::Collective)) {
                continue;
            }
            let size =
                *sizes.entry(groups(program, op)).or_insert_with(|| size_of_groups(program, op));
            let row = match size {
                Some(devices) => {
                    let kind = CollectiveKind::of_name(program.op_name(op));
                    let bytes = bytes_moved(program, &mut works, op, kind, devices);
                    Traffic { kind, devices, bytes, count: 0 }
                }
                None => match collective(program, &mut works, &execution, op) {
                    Some(row) => {
                        Traffic { kind: row.kind, devices: row.devices, bytes: row.bytes, count: 0 }
                    }
                    None => continue,
                },
            };
            let place = *places.entry(row).or_insert_with(|| {
                rows.push(row);
                rows.len() - 1
            });
            rows[place].count = rows[place].count.saturating_add(count);
        }
    }
    Ok(rows)
}

/// What says which devices talk to each other: whether these are pairs, and the text; empty where there is none.
fn groups(program: &Program, op: OpId) -> (bool, &str) {
    match program.attr(op, "source_target_pairs") {
        Some(pairs) => (true, pairs),
        None => (false, program.attr(op, "replica_groups").unwrap_or_default()),
    }
}
