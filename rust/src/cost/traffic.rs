//! The bytes that the collectives of a per-device program send, without the rest of its cost.

use super::collectives::{bytes_moved, CollectiveKind};
use super::groups::KnownGroups;
use super::local::Local;
use crate::inlining::call_inliner::Inlined;
use crate::ir::Program;
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Measure;
use rustc_hash::FxHashMap;

/// Collectives with equal kind, devices and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Traffic {
    /// Their kind.
    pub kind: CollectiveKind,
    /// The size of a replica group; 1 if it is not known.
    pub devices: i64,
    /// Bytes of the array on one device once it is gathered, for one run.
    pub bytes: u128,
    /// The number of runs.
    pub count: u128,
}

/// The traffic of the collectives of `program`, a per-device program, equal ones summed. Its meshes are those of its source.
pub fn traffic(program: &Program) -> Vec<Traffic> {
    let local = Local { program, source: program, originals: None };
    let mut works = Works::new(local.program);
    let execution = Execution::new(local.program, &mut works);
    // The trip count of a loop may depend on an argument of its function.
    let is_known = execution.loops.iter().all(|it| it.trips.is_some());
    if is_known || !execution.has_calls() {
        return of_execution(local, local.program, &mut works, &execution);
    }
    let inlined = Inlined::new(local.program);
    let mut works = Works::new(&inlined.program);
    let execution = Execution::new(&inlined.program, &mut works);
    of_execution(local, &inlined.program, &mut works, &execution)
}

/// The traffic of the collectives of `program`: that of `local`, or its copy with calls inlined.
fn of_execution(
    local: Local<'_>,
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
) -> Vec<Traffic> {
    let mut groups = KnownGroups::default();
    let mut rows: Vec<Traffic> = Vec::new();
    let mut places: FxHashMap<Traffic, usize> = FxHashMap::default();
    for &func in execution.functions.iter().rev() {
        for &op in works.ops_inside(program.func_op(func)).iter() {
            let count = execution.times(program.parent_block(op));
            let measure = works.family(op).map(|family| family.measure);
            if count == 0 || !matches!(measure, Some(Measure::Collective)) {
                continue;
            }
            let kind = CollectiveKind::of_name(program.op_name(op));
            let id = groups.of(program, op);
            let along = groups.axes(local, id, local.meshes(None));
            let devices = groups.num_devices(local, id, &along);
            let bytes = bytes_moved(program, works, op, kind, devices);
            let row = Traffic { kind, devices, bytes, count: 0 };
            let place = *places.entry(row).or_insert_with(|| {
                rows.push(row);
                rows.len() - 1
            });
            rows[place].count = rows[place].count.saturating_add(count);
        }
    }
    rows
}
