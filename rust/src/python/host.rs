//! The host of a device: values in host memory, and copies between host and device in schedules.

use super::rule_registry::registry;
use super::value::PyValue;
use crate::bitset::BitSet;
use crate::context::RuleSource;
use crate::cost::dataflow::Task;
use crate::cost::host::{HostCopy, Hosted};
use crate::cost::times::Transfer;
use crate::cost::ProgramCost;
use crate::index::{Id, ValueId};
use crate::inlining::call_inliner::Inlined;
use crate::ir::Program;
use crate::work::spaces::{Space, Spaces};
use pyo3::prelude::*;
use std::sync::Arc;

/// For each of `values`, which belong to one program, whether it is in host memory and not in
/// device memory.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python makes the list.
pub(super) fn values_on_host(py: Python<'_>, values: Vec<PyRef<'_, PyValue>>) -> Vec<bool> {
    let Some(first) = values.first() else { return Vec::new() };
    let (program, _) = first.parts();
    let ids: Vec<Option<ValueId>> = values.iter().map(|value| value.id_in(&program)).collect();
    drop(values);
    py.detach(|| {
        let found = on_host(program);
        ids.into_iter().map(|id| id.is_some_and(|id| found.contains(id))).collect()
    })
}

/// The values of `program` that are in host memory and not in device memory, at all calls of their
/// functions.
fn on_host(mut program: Arc<Program>) -> BitSet<ValueId> {
    if program.has_new_ops() {
        registry().legalizing_chlo().sign(Arc::make_mut(&mut program));
    }
    let mut found = BitSet::new(program.num_value_ids());
    let inlined = Inlined::new(&program);
    let spaces = Spaces::new(&inlined.program);
    for value in inlined.program.value_ids().filter(|&it| !spaces.takes(Space::Device, it)) {
        let value = inlined.originals.value(value);
        if value.index() < program.num_value_ids() {
            found.insert(value);
        }
    }
    found
}

/// Appends the copies of each group, combined, to `transfers`, which are those of collectives,
/// given the seconds of one run of each copy. Copies to the device and to the host use two
/// additional streams.
pub(super) fn add(transfers: &mut Vec<Transfer>, host: &Hosted, seconds: &[f64]) {
    let last = transfers.iter().map(|row| row.stream).max().unwrap_or(0);
    let transfer = |(seconds, to)| Transfer {
        seconds,
        stream: last + 1 + usize::from(to == Space::Host),
        chunks: 1.0,
        slows: 0.0,
        in_products: false,
    };
    transfers.extend(host.groups(seconds).into_iter().map(transfer));
}

/// The exposed seconds of each copy over all runs, given those of the groups. Also the seconds of
/// copies that are not in the schedule because their ops do other work too; nothing overlaps with
/// these.
pub(super) fn exposed(cost: &ProgramCost, seconds: &[f64], of_groups: &[f64]) -> (Vec<f64>, f64) {
    let groups = cost.host.groups(seconds);
    let is_alone = |task: &Task| {
        task.row.is_some() || task.collective.is_some() || !cost.flow.bodies(task).is_empty()
    };
    let mut left_out = vec![false; groups.len()];
    for task in cost.flow.tasks.iter().filter(|task| is_alone(task)) {
        if let Some(group) = task.copies {
            left_out[group as usize] = true;
        }
    }
    let mut rest = 0.0;
    let of_copy = |(copy, &seconds): (&HostCopy, &f64)| {
        let group = copy.group as usize;
        if left_out[group] {
            let all = seconds * copy.count as f64;
            rest += all;
            return all;
        }
        let (total, _) = groups[group];
        if total > 0.0 {
            of_groups[group] * (seconds / total)
        } else {
            0.0
        }
    };
    let exposed = cost.host.copies.iter().zip(seconds).map(of_copy).collect();
    (exposed, rest)
}
