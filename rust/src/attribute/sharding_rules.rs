//! Invariants of tensor shardings.
//!
//! 1. Every axis is an axis of the mesh.
//! 2. A sub-axis `(m)k` of an axis of size n has m at least 1, k at least 2 and less than n, and
//!    m·k divides n (so m·k does not overflow, which the reference does not check).
//! 3. No axis, or part of one, occurs twice in one sharding.
//! 4. Adjacent axes of a list are not consecutive parts of one axis; these are written as one.
//! 5. Replicated and unreduced axes are in mesh order.
//! 6. A priority is not negative, and a dim that is closed and empty has none.
//! 7. A sharding over a maximal mesh has no dims and no axes.
//! 8. There is one dim sharding for each dim of the tensor; a value that is not a tensor has none.
//!
//! If the mesh is not known ([`super::StandaloneScope`]), its axes have size 0; then 5 and half of
//! 2 are not checked.
//!
//! All invariants are checked, even if some do not hold. Messages are those of the reference, which
//! stops at the first error; hints say how to fix the error.
//!
//! Source: the constraints of Shardy's `TensorShardingAttr` and its verifier.

use super::axis::{unknown_axis, write_axis};
use super::problem::{unlocated, Part, Problem};
use crate::axis::{AxisRef, SubAxis};
use crate::error::{Code, Diagnostic};
use crate::index::Id;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use crate::shardy::{Change, Version};
use std::fmt::Write as _;

/// All errors of `sharding` over `mesh`, in the words of version `shardy`. With `shape` (`None` for
/// a dynamic dim), also the errors for a tensor of that shape.
pub fn verify_sharding(
    sharding: &TensorSharding,
    mesh: &Mesh,
    shape: Option<&[Option<i64>]>,
    shardy: Version,
) -> Vec<Diagnostic> {
    let mut problems = mesh_problems_of(sharding, mesh, &[], shardy);
    if let Some(shape) = shape {
        problems.extend(rank_problem(sharding.dims.len(), mesh, shape.len()));
    }
    unlocated(problems)
}

/// Invariant 8 for a sharding of `num_dims` dims and a tensor of `rank`.
pub fn rank_problem(num_dims: usize, mesh: &Mesh, rank: usize) -> Option<Problem> {
    if mesh.is_maximal() || num_dims == rank {
        return None;
    }
    let message = format!("sharding doesn't match tensor rank: {num_dims} != {rank}");
    let hint = "one {...} for each dim, {} for a dim that is not sharded";
    Some(Problem::new(Code::InvalidSharding, Part::Whole, message).with_hint(hint))
}

/// The message that a sharding over a maximal mesh has dims or axes.
pub fn not_maximal(shardy: Version) -> String {
    let kind = if shardy.has(Change::SingleDeviceWording) { "single-device" } else { "maximal" };
    format!(
        "a {kind} sharding can only have a sharding with rank 0 and no replicated or unreduced axes."
    )
}

/// All errors in `sharding` that do not depend on the tensor. Axis ids beyond those of the mesh
/// refer to the `unknown` names.
pub fn mesh_problems_of(
    sharding: &TensorSharding,
    mesh: &Mesh,
    unknown: &[String],
    shardy: Version,
) -> Vec<Problem> {
    let mut check = Check::new(mesh, unknown);
    if mesh.is_maximal() {
        if !sharding.dims.is_empty() || !sharding.has_no_axes() {
            let problem = Problem::new(Code::InvalidSharding, Part::Whole, not_maximal(shardy));
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

/// All errors of lists of axes, such as those of one collective: malformed axes, sub-axes that
/// overlap, consecutive sub-axes that are not merged. `sorted` is the name of a list that has to be
/// in mesh order.
pub fn verify_axes(lists: &[Vec<AxisRef>], mesh: &Mesh, sorted: Option<&str>) -> Vec<Diagnostic> {
    let mut check = Check::new(mesh, &[]);
    for axes in lists {
        check.list(axes, sorted);
    }
    check.overlaps();
    unlocated(check.problems)
}

/// An axis ref of the mesh.
struct Seen {
    axis: AxisRef,
    part: usize,
    is_sound: bool,
}

/// The verification of one sharding.
struct Check<'a> {
    mesh: &'a Mesh,
    unknown: &'a [String],
    problems: Vec<Problem>,
    seen: Vec<Seen>,
    /// The number of axis refs checked so far.
    next: usize,
}

impl<'a> Check<'a> {
    fn new(mesh: &'a Mesh, unknown: &'a [String]) -> Self {
        Self { mesh, unknown, problems: Vec::new(), seen: Vec::new(), next: 0 }
    }
    fn text(&self, axis: AxisRef) -> String {
        let mut out = String::new();
        write_axis(&mut out, axis, self.mesh);
        out
    }

    fn priority(&mut self, dim: usize, priority: Option<i64>, is_closed_and_empty: bool) {
        let Some(priority) = priority else { return };
        let mut report = |message: String, hint: &str| {
            let problem = Problem::new(Code::InvalidSharding, Part::Dim(dim), message);
            self.problems.push(problem.with_hint(hint));
        };
        if priority < 0 {
            report(format!("dim {dim} has a negative priority"), "0 comes first");
        } else if is_closed_and_empty {
            let message = format!("dim {dim} is empty and closed but has a priority");
            report(message, "drop the priority, or open the dim: {?}");
        }
    }

    /// Checks one list; `sorted` is the name of a list that has to be in mesh order.
    fn list(&mut self, axes: &[AxisRef], sorted: Option<&str>) {
        let mut before: Option<AxisRef> = None;
        for &axis in axes {
            let part = self.next;
            self.next += 1;
            if let (Some(before), Some(name)) = (before, sorted) {
                self.order(before, axis, part, name);
            }
            let num_axes = self.mesh.axes.len();
            if axis.axis.index() >= num_axes {
                let name = self.unknown.get(axis.axis.index() - num_axes);
                let diagnostic = unknown_axis(name.map_or("", |name| name), self.mesh);
                self.problems.push(Problem { diagnostic, part: Part::Axis(part), related: None });
                before = Some(axis);
                continue;
            }
            if let Some(before) = before {
                self.merge(before, axis, part);
            }
            let malformed = self.sub_axis(axis);
            let is_sound = malformed.is_none();
            self.seen.push(Seen { axis, part, is_sound });
            if let Some((message, hint)) = malformed {
                let problem = Problem::new(Code::InvalidSubAxis, Part::Axis(part), message);
                self.problems.push(problem.with_hint(hint));
            }
            before = Some(axis);
        }
    }

    /// Checks invariant 2; returns the message and a hint if it does not hold.
    fn sub_axis(&self, axis: AxisRef) -> Option<(String, String)> {
        let SubAxis { pre_size, size } = axis.sub?;
        let full = self.mesh.axis_size(axis.axis);
        let name = self.mesh.axis_name(axis.axis);
        let text = self.text(axis);
        let mut hint = format!("a sub-axis is written \"{name}\":(pre-size)size");
        if full > 0 {
            let _ = write!(hint, "; \"{name}\" has size {full}");
        }
        if pre_size < 1 {
            return Some((format!("sub-axis pre-size must be at least 1: {text}"), hint));
        }
        if size < 2 {
            return Some((format!("sub-axis sizes must be greater than 1: {text}"), hint));
        }
        let next = i128::from(pre_size) * i128::from(size);
        let is_known = full > 0;
        if next > i128::from(i64::MAX) || (is_known && i128::from(full) % next != 0) {
            let message = format!(
                "sub-axis next pre-size {next} doesn't divide the size of the full axis {full}: {text}"
            );
            return Some((message, hint));
        }
        (size == full).then(|| {
            let message = format!("sub-axis size is equal to the full axis size: {text}");
            (message, format!("write \"{name}\""))
        })
    }

    /// An error about two adjacent axes of a list.
    fn neighbours(part: usize, message: String, hint: Option<String>) -> Problem {
        let mut problem = Problem::new(Code::InvalidSharding, Part::Axis(part), message)
            .with_related(Part::Axis(part - 1), "it stands right before");
        problem.diagnostic.hint = hint;
        problem
    }

    /// Checks invariant 4 for adjacent axes.
    fn merge(&mut self, before: AxisRef, axis: AxisRef, part: usize) {
        let (Some(first), Some(second)) = (before.sub, axis.sub) else { return };
        let next = first.pre_size.checked_mul(first.size);
        if before.axis != axis.axis || next != Some(second.pre_size) {
            return;
        }
        let (a, b) = (self.text(before), self.text(axis));
        let message = format!("two consecutive sub-axes can be merged: {a}, {b}");
        let product = first.size.checked_mul(second.size);
        let merged = product.map(|_| self.text(before.merge(axis, self.mesh)));
        let hint = merged.map(|merged| format!("write {merged}"));
        self.problems.push(Self::neighbours(part, message, hint));
    }

    /// Checks invariant 5 for adjacent axes of the list called `name`.
    fn order(&mut self, before: AxisRef, axis: AxisRef, part: usize, name: &str) {
        // Sizes are 0 if the mesh is not known.
        let has_order = self.mesh.axes.first().is_some_and(|axis| axis.size > 0);
        let is_known = |axis: AxisRef| axis.axis.index() < self.mesh.axes.len();
        if !has_order || !is_known(axis) || !is_less(axis, before) {
            return;
        }
        let message = format!("{name} axes are not ordered w.r.t. mesh");
        let hint = is_known(before).then(|| {
            format!("swap them: {} stands before {} in it", self.text(axis), self.text(before))
        });
        self.problems.push(Self::neighbours(part, message, hint));
    }

    /// Checks invariant 3.
    fn overlaps(&mut self) {
        let mut seen = std::mem::take(&mut self.seen);
        // By axis and position in it, full axes first; equal ones in the order of the text.
        seen.sort_by_key(|seen| {
            (seen.axis.axis, seen.axis.sub.map(|sub| (sub.pre_size, sub.size)), seen.part)
        });
        let mut found = Vec::new();
        for group in seen.chunk_by(|a, b| a.axis.axis == b.axis.axis) {
            for pair in group.windows(2).filter(|pair| pair[0].axis == pair[1].axis) {
                let message = format!("duplicate axis ref: {}", self.text(pair[0].axis));
                let hint = drop_hint(pair[0].axis, self.mesh);
                found.push((pair[0].part, pair[1].part, message, hint));
            }
            let (full, parts) =
                group.split_at(group.partition_point(|seen| seen.axis.sub.is_none()));
            for (full, sub) in parts.iter().filter_map(|sub| Some((full.first()?, sub))) {
                let name = self.mesh.axis_name(full.axis.axis);
                let message =
                    format!("both sub-axis and full-axis are used for axis name: \"{name}\"");
                let (first, second) = (full.part.min(sub.part), full.part.max(sub.part));
                found.push((first, second, message, "parts of an axis must be disjoint".into()));
            }
            found.extend(self.overlapping_parts(parts));
        }
        found.sort_by_key(|&(first, second, ..)| (second, first));
        for (first, second, message, hint) in found {
            let problem = Problem::new(Code::AxisOverlap, Part::Axis(second), message)
                .with_hint(hint)
                .with_related(Part::Axis(first), "first used here");
            self.problems.push(problem);
        }
    }

    /// Parts of one axis that overlap and are not equal; `parts` are sorted.
    fn overlapping_parts(&self, parts: &[Seen]) -> Vec<(usize, usize, String, String)> {
        let mut widest: Option<(&Seen, i64)> = None;
        let mut found = Vec::new();
        for part in parts.iter().filter(|part| part.is_sound) {
            let next = part.axis.next_pre_size(self.mesh);
            if let Some((other, end)) = widest {
                if end > part.axis.pre_size() && other.axis != part.axis {
                    let (a, b) = (self.text(other.axis), self.text(part.axis));
                    let message = format!("overlapping sub-axes: {a}, {b}");
                    let (first, second) = (other.part.min(part.part), other.part.max(part.part));
                    let hint = "parts of an axis must be disjoint".to_owned();
                    found.push((first, second, message, hint));
                }
            }
            if widest.is_none_or(|(_, end)| end < next) {
                widest = Some((part, next));
            }
        }
        found
    }
}
/// Whether `a` is before `b` in mesh order, where a full axis is equal to its sub-axes of pre-size
/// 1.
fn is_less(a: AxisRef, b: AxisRef) -> bool {
    if a.axis != b.axis {
        return a.axis < b.axis;
    }
    match (a.sub, b.sub) {
        (None, None) => false,
        (None, Some(b)) => b.pre_size > 1,
        (Some(a), None) => a.pre_size == 1,
        (Some(a), Some(b)) => (a.pre_size, a.size) < (b.pre_size, b.size),
    }
}

/// The hint for a second use of `axis`.
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
