//! Invariants of tensor shardings.
//!
//! 1. Every axis is one of the mesh.
//! 2. A sub-axis `(m)k` of an axis of size n has m at least 1, k at least 2 and less than n, and
//!    m·k divides n (so m·k does not overflow, which the reference does not check).
//! 3. No axis, or part of one, appears twice in one sharding.
//! 4. Neighbours in a list are not consecutive parts of one axis: those are written as one.
//! 5. Replicated and unreduced axes are in mesh order.
//! 6. A priority is not negative, and a dim that is closed and empty has none.
//! 7. A sharding over a maximal mesh has no dims and no axes.
//! 8. There is one dim sharding for each dim of the tensor; what is not a tensor has none.
//!
//! A mesh that is not known ([`super::LoneScope`]) has axes of size 0; then 5 and half of 2 cannot be
//! checked.
//!
//! Source: the constraints of Shardy's `TensorShardingAttr` and its verifier.

use super::axis::write_axis;
use super::problem::{unlocated, Part, Problem};
use crate::axis::{AxisRef, SubAxis};
use crate::error::{Code, Diagnostic};
use crate::index::{AxisId, Id};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use std::fmt::Write as _;

/// Everything that is wrong with `sharding` over `mesh`; with `shape` (`None` for a dynamic dim)
/// also whether it fits a tensor of that shape.
pub fn verify_sharding(
    sharding: &TensorSharding,
    mesh: &Mesh,
    shape: Option<&[Option<i64>]>,
) -> Vec<Diagnostic> {
    let mut problems = mesh_problems_of(sharding, mesh);
    if let Some(shape) = shape {
        problems.extend(rank_problem(sharding, mesh, shape.len()));
    }
    unlocated(problems)
}

/// Invariant 8 for a tensor of `rank` dims.
pub fn rank_problem(sharding: &TensorSharding, mesh: &Mesh, rank: usize) -> Option<Problem> {
    let num_dims = sharding.dims.len();
    if mesh.is_maximal() || num_dims == rank {
        return None;
    }
    let message = format!("the sharding has {num_dims} dims, and the tensor has {rank}");
    let hint = "one {...} for each dim, {} for a dim that is not sharded";
    Some(Problem::new(Code::InvalidSharding, Part::Whole, message).with_hint(hint))
}

/// Everything that is wrong with `sharding` whatever tensor it is for.
pub fn mesh_problems_of(sharding: &TensorSharding, mesh: &Mesh) -> Vec<Problem> {
    let mut check = Check { mesh, problems: Vec::new(), sound: Vec::new(), next: 0 };
    if mesh.is_maximal() {
        if !sharding.dims.is_empty() || !sharding.has_no_axes() {
            let message = "a sharding over a maximal mesh has no dims and no axes";
            let problem = Problem::new(Code::InvalidSharding, Part::Whole, message);
            check.problems.push(problem.with_hint("write [] for the dims"));
        }
        return check.problems;
    }
    for (i, dim) in sharding.dims.iter().enumerate() {
        check.priority(i, dim.priority, dim.is_closed && dim.axes.is_empty());
        check.list(&dim.axes, None);
    }
    check.list(&sharding.replicated, Some("replicated"));
    check.list(&sharding.unreduced, Some("unreduced"));
    check.overlaps();
    check.problems
}

/// Everything that is wrong with lists of axes, one after the other, as of one collective: unknown
/// and malformed axes, parts of an axis that appear twice, consecutive parts. `sorted` demands mesh
/// order and names the axes.
pub fn verify_axes(lists: &[Vec<AxisRef>], mesh: &Mesh, sorted: Option<&str>) -> Vec<Diagnostic> {
    let mut check = Check { mesh, problems: Vec::new(), sound: Vec::new(), next: 0 };
    for axes in lists {
        check.list(axes, sorted);
    }
    check.overlaps();
    unlocated(check.problems)
}

/// An axis ref that is sound by itself.
struct Sound {
    axis: AxisId,
    pre_size: i64,
    next_pre_size: i64,
    part: usize,
    text: AxisRef,
}

/// The verification of one sharding.
struct Check<'a> {
    mesh: &'a Mesh,
    problems: Vec<Problem>,
    sound: Vec<Sound>,
    /// How many axis refs were seen.
    next: usize,
}

impl Check<'_> {
    fn text(&self, axis: AxisRef) -> String {
        let mut out = String::new();
        write_axis(&mut out, axis, self.mesh);
        out
    }

    fn priority(&mut self, dim: usize, priority: Option<i64>, is_closed_and_empty: bool) {
        let Some(priority) = priority else { return };
        let mut complain = |message: String, hint: &str| {
            let problem = Problem::new(Code::InvalidSharding, Part::Dim(dim), message);
            self.problems.push(problem.with_hint(hint));
        };
        if priority < 0 {
            complain(format!("dim {dim} has the negative priority {priority}"), "0 comes first");
        } else if is_closed_and_empty {
            let message = format!("dim {dim} is closed and has no axes, but has a priority");
            complain(message, "drop the priority, or open the dim: {?}");
        }
    }

    /// Checks one list; `sorted` is the name of a list that has to be in mesh order.
    fn list(&mut self, axes: &[AxisRef], sorted: Option<&str>) {
        let mut before: Option<AxisRef> = None;
        for &axis in axes {
            let part = self.next;
            self.next += 1;
            if axis.axis.index() >= self.mesh.axes.len() {
                let message = "an axis that the mesh does not have";
                self.problems.push(Problem::new(Code::UnknownAxis, Part::Axis(part), message));
                before = None;
                continue;
            }
            if let Err((message, hint)) = self.sub_axis(axis) {
                let problem = Problem::new(Code::InvalidSubAxis, Part::Axis(part), message);
                self.problems.push(problem.with_hint(hint));
                before = None;
                continue;
            }
            if let Some(before) = before {
                self.neighbours(before, axis, part, sorted);
            }
            self.sound.push(Sound {
                axis: axis.axis,
                pre_size: axis.pre_size(),
                next_pre_size: match axis.next_pre_size(self.mesh) {
                    // Of unknown size, or of size 1: all of it, even so.
                    0 | 1 => i64::MAX,
                    next => next,
                },
                part,
                text: axis,
            });
            before = Some(axis);
        }
    }

    /// Invariant 2; the complaint and a hint if it does not hold.
    fn sub_axis(&self, axis: AxisRef) -> Result<(), (String, String)> {
        let Some(SubAxis { pre_size, size }) = axis.sub else { return Ok(()) };
        let full = self.mesh.axis_size(axis.axis);
        let name = self.mesh.axis_name(axis.axis);
        let text = self.text(axis);
        let mut hint = format!("a sub-axis is written \"{name}\":(pre-size)size");
        if full > 0 {
            let _ = write!(hint, "; \"{name}\" has size {full}");
        }
        if pre_size < 1 {
            return Err((
                format!("sub-axis {text} has pre-size {pre_size}; it must be at least 1"),
                hint,
            ));
        }
        if size < 2 {
            return Err((format!("sub-axis {text} has size {size}; it must be at least 2"), hint));
        }
        match pre_size.checked_mul(size) {
            Some(next) if full % next == 0 => {}
            Some(next) => {
                let message = format!(
                    "sub-axis {text} ends at {next}, which does not divide the axis size {full}"
                );
                return Err((message, hint));
            }
            None => {
                return Err((format!("sub-axis {text} is larger than any axis"), hint));
            }
        }
        if size == full {
            let message = format!("sub-axis {text} is all of the axis");
            return Err((message, format!("write \"{name}\"")));
        }
        Ok(())
    }

    /// Invariants 4 and 5 of two axes, one right after the other in a list.
    fn neighbours(&mut self, before: AxisRef, axis: AxisRef, part: usize, sorted: Option<&str>) {
        let texts = (self.text(before), self.text(axis));
        let invalid = |message| {
            Problem::new(Code::InvalidSharding, Part::Axis(part), message)
                .with_related(Part::Axis(part - 1), "it stands right before")
        };
        if before.can_merge(axis) {
            let message = format!("{} and {} are consecutive parts of one axis", texts.0, texts.1);
            let merged = self.text(before.merge(axis, self.mesh));
            self.problems.push(invalid(message).with_hint(format!("write {merged}")));
        }
        let order = |axis: AxisRef| axis.mesh_order(self.mesh);
        let is_known = self.mesh.axis_size(axis.axis) > 0;
        if let (Some(name), true) = (sorted, is_known && order(before) > order(axis)) {
            let message =
                format!("{name} axes are not in mesh order: {} stands before {}", texts.0, texts.1);
            self.problems.push(invalid(message).with_hint("swap them"));
        }
    }

    /// Invariant 3.
    fn overlaps(&mut self) {
        // By place in the axis; of what starts together the one that stands first in the text.
        self.sound.sort_by_key(|sound| (sound.axis, sound.pre_size, sound.part));
        let mut widest: Option<&Sound> = None;
        let mut found = Vec::new();
        for sound in &self.sound {
            let overlapped =
                widest.filter(|w| w.axis == sound.axis && w.next_pre_size > sound.pre_size);
            if let Some(other) = overlapped {
                let (first, second) =
                    if other.part < sound.part { (other, sound) } else { (sound, other) };
                found.push((first.part, second.part, first.text, second.text));
            }
            let replaces = widest
                .is_none_or(|w| w.axis != sound.axis || w.next_pre_size < sound.next_pre_size);
            if replaces {
                widest = Some(sound);
            }
        }
        found.sort_by_key(|&(first, second, ..)| (second, first));
        for (first, second, first_axis, second_axis) in found {
            let (a, b) = (self.text(first_axis), self.text(second_axis));
            let (message, hint) = if first_axis == second_axis {
                let hint = drop_hint(first_axis, self.mesh);
                (format!("{a} is used twice in one sharding"), hint)
            } else {
                (
                    format!("{b} overlaps {a} in one sharding"),
                    "parts of an axis must be disjoint".into(),
                )
            };
            let problem = Problem::new(Code::AxisOverlap, Part::Axis(second), message)
                .with_hint(hint)
                .with_related(Part::Axis(first), "first used here");
            self.problems.push(problem);
        }
    }
}

/// What to do about a second use of `axis`.
fn drop_hint(axis: AxisRef, mesh: &Mesh) -> String {
    let size = axis.size(mesh);
    let factor = (2..).take_while(|k| k * k <= size).take(1 << 16).find(|k| size % k == 0);
    let Some(factor) = factor else { return "drop one".to_owned() };
    let pre_size = axis.pre_size();
    let mut hint = "drop one, or split it, e.g. ".to_owned();
    write_axis(&mut hint, AxisRef::sub(axis.axis, pre_size, factor), mesh);
    hint.push_str(" and ");
    write_axis(&mut hint, AxisRef::sub(axis.axis, pre_size * factor, size / factor), mesh);
    hint
}
