//! Checks manual computations:
//!
//! 1. In-shardings match the operands, out-shardings match the results, and all of them are over
//!    one mesh (empty meshes aside), which has the manual axes.
//! 2. In each dim, manual axes come before free ones, and their total size divides the size of the
//!    dim.
//! 3. Inside, values have the local shape with respect to the manual axes.
//! 4. No op inside uses an axis that is manual around it.

use super::Verifier;
use crate::attribute::{unknown_axis, write_axis};
use crate::axis::AxisRef;
use crate::bitset::BitSet;
use crate::error::{Code, Diagnostic};
use crate::index::{AxisId, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{OpKind, Payload, Type};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashSet;

impl Verifier<'_> {
    fn manual_axis_names(&self, op: OpId) -> &[StrId] {
        match self.program.payload(op) {
            Some(Payload::ManualComputation(names)) => names,
            _ => &[],
        }
    }
    /// Checks invariant 4: no axis of `sharding`, of the `index`-th of `count` results of `op` or
    /// of its operands, is manual around `op`.
    pub(super) fn bound_axes(
        &mut self,
        op: OpId,
        sharding: ShardingId,
        is_input: bool,
        index: usize,
        count: usize,
    ) {
        let Some(sharding) = self.program.shardings().get(sharding) else { return };
        let mesh = self.program.mesh(sharding.mesh);
        let mut used = BitSet::new(mesh.axes.len());
        for axis in sharding.axis_refs() {
            used.insert(axis.axis);
        }
        let mut found = Vec::new();
        let mut around = self.program.parent_op(op);
        while let Some(parent) = around {
            if self.program.kind(parent) == OpKind::ManualComputation {
                for &name in self.manual_axis_names(parent) {
                    let axis = mesh.axis_by_name(self.program.str(name));
                    if axis.is_some_and(|axis| used.contains(axis)) {
                        found.push((name, parent));
                    }
                }
            }
            around = self.program.parent_op(parent);
        }
        for (name, parent) in found {
            let subject = self.program.sharding_subject(op, is_input, index, count);
            let message = format!("{subject}{}", bound(self.program.str(name)));
            let mut problem = Diagnostic::new(Code::InvalidSharding, message);
            problem.span = if is_input {
                self.program.attr_span(op, "in_shardings")
            } else {
                self.sharding_span(op)
            };
            self.report_bound(op, parent, problem);
        }
    }
    /// Reports that `op` uses an axis that is manual in `parent`.
    fn report_bound(&mut self, op: OpId, parent: OpId, mut problem: Diagnostic) {
        if let Some(span) = self.program.attr_span(parent, "manual_axes") {
            problem = problem.with_related(span, "made manual here");
        }
        if problem.hint.is_none() {
            problem =
                problem.with_hint("values in there are local along that axis: shard by others");
        }
        self.report(op, problem);
    }
    pub(super) fn manual_computation(&mut self, op: OpId) {
        self.body_args(op);
        let names = self.manual_axis_names(op).to_vec();
        self.rebound_axes(op, &names);
        if self.malformed.contains(&op) {
            return;
        }
        let operands: Vec<TypeId> =
            self.program.operands(op).map(|value| self.program.type_of(value)).collect();
        let results: Vec<ValueId> = self.program.op_results(op).collect();
        let result_types: Vec<TypeId> =
            results.iter().map(|&value| self.program.type_of(value)).collect();
        let args = self.body(op).map_or(Vec::new(), |b| self.program.block_args(b).collect());
        let returned = self.returned(op);
        let sides = [
            Side { what: "operand", outer: &operands, inner: &args, owners: &args },
            Side { what: "result", outer: &result_types, inner: &returned, owners: &results },
        ];
        let sound = sides.iter().all(|side| self.side(op, side));
        if sound && !(args.is_empty() && results.is_empty()) {
            self.manual_mesh(op, &[&args[..], &results[..]].concat(), &names);
        }
    }
    /// Checks that no axis in `names` is already manual around `op`.
    fn rebound_axes(&mut self, op: OpId, names: &[StrId]) {
        let mut own: Option<FxHashSet<StrId>> = None;
        let mut around = self.program.parent_op(op);
        while let Some(parent) = around {
            for name in self.manual_axis_names(parent).to_vec() {
                let own = own.get_or_insert_with(|| names.iter().copied().collect());
                if own.contains(&name) {
                    let message = bound(self.program.str(name));
                    let mut problem = self.problem(op, Code::InvalidOp, &message);
                    problem.span = self.program.attr_span(op, "manual_axes");
                    self.report_bound(op, parent, problem);
                }
            }
            around = self.program.parent_op(parent);
        }
    }
    /// Checks invariant 1: one mesh, with the manual axes.
    fn manual_mesh(&mut self, op: OpId, owners: &[ValueId], names: &[StrId]) {
        let mut common = MeshId::NONE;
        for &owner in owners {
            let Some(mesh) = self.program.mesh_of(self.program.sharding(owner)).get() else {
                continue;
            };
            if common.is_none() || self.program.mesh(common).is_empty() {
                common = mesh;
            } else if !self.program.mesh(mesh).is_empty()
                && self.program.mesh(mesh) != self.program.mesh(common)
            {
                if !names.is_empty() {
                    let message = "all in and out shardings must be bound to the same mesh or an \
                                   empty mesh.";
                    let span = self.program.attr_span(op, "manual_axes");
                    self.report_at(span, op, Code::InvalidOp, message);
                }
                return;
            }
        }
        let Some(common) = common.get() else { return };
        for &name in names {
            let name = self.program.str(name);
            let mesh = self.program.mesh(common);
            if mesh.axis_by_name(name).is_none() {
                let message = format!("unknown manual axis: \"{name}\"");
                let mut problem = self.problem(op, Code::UnknownAxis, &message);
                problem.hint = unknown_axis(name, mesh).hint;
                problem.span = self.program.attr_span(op, "manual_axes");
                self.report(op, problem);
            }
        }
    }
    /// Checks the operands or the results; returns false if the numbers of block arguments or
    /// shardings do not match, so that no further check is possible.
    fn side(&mut self, op: OpId, side: &Side<'_>) -> bool {
        let what = side.what;
        let mut last: Option<(MeshId, BitSet<AxisId>)> = None;
        if side.outer.len() != side.inner.len() {
            return false;
        }
        for (i, (&ty, &inner)) in side.outer.iter().zip(side.inner).enumerate() {
            let sharding = side.owners.get(i).map(|&owner| self.program.sharding(owner));
            let Some(sharding) = sharding.and_then(|id| self.program.shardings().get(id)) else {
                return false;
            };
            let mesh_id = sharding.mesh;
            let mesh = self.program.mesh(mesh_id);
            let known = last.take().filter(|known| known.0 == mesh_id);
            let manual =
                known.map_or_else(|| self.program.manual_axes(op, sharding), |known| known.1);
            let found = order_problem(sharding, mesh, &manual, what, i);
            let found = found
                .or_else(|| self.shape_problem(sharding, mesh, &manual, (ty, inner), (what, i)));
            if let Some(message) = found {
                let span = match what {
                    "operand" => self.program.attr_span(op, "in_shardings"),
                    _ => self.sharding_span(op),
                };
                self.report_at(span, op, Code::InvalidOp, &message);
            }
            last = Some((mesh_id, manual));
        }
        true
    }
    /// Checks the second half of invariant 2, and invariant 3.
    fn shape_problem(
        &self,
        sharding: &TensorSharding,
        mesh: &Mesh,
        manual: &BitSet<AxisId>,
        (outer, inner): (TypeId, ValueId),
        (what, index): (&str, usize),
    ) -> Option<String> {
        let Type::RankedTensor { shape, element, .. } = &self.program.types()[outer] else {
            return None;
        };
        if shape.len() != sharding.dims.len() {
            // Another check reports this.
            return None;
        }
        let mut local = Vec::new();
        for (size, row) in shape.iter().zip(&sharding.dims) {
            let axes = row.axes.iter().filter(|axis| manual.contains(axis.axis));
            let parts: i64 = axes.map(|axis| axis.size(mesh)).product();
            match *size {
                Some(size) if size % parts != 0 => {
                    return Some(format!(
                        "{what} dimension size {size} is not divisible by the manual axes size {parts}"
                    ));
                }
                size => local.push(size.map(|size| size / parts)),
            }
        }
        let inner_type = self.program.type_of(inner);
        let fits = matches!(&self.program.types()[inner_type],
            Type::RankedTensor { shape, element: other, encoding: None }
                if *shape == local && other == element);
        if fits {
            return None;
        }
        let dims = local.iter().map(|size| size.map_or("?x".into(), |size| format!("{size}x")));
        let (dims, element) = (dims.collect::<String>(), self.program.str(element.text));
        let have = self.program.value_type_text(inner);
        Some(format!(
            "{what} shape, corresponding sharding, and region {what} shape at index {index} must \
             match. Expected local shape 'tensor<{dims}{element}>', actual local shape '{have}'"
        ))
    }
}

/// The error message that axis `name` is manual around an op that uses it.
fn bound(name: &str) -> String {
    format!(
        "operates on axis \"{name}\" which is already bound by a parent sdy.manual_computation op"
    )
}

/// Checks the first half of invariant 2.
fn order_problem(
    sharding: &TensorSharding,
    mesh: &Mesh,
    manual: &BitSet<AxisId>,
    what: &str,
    index: usize,
) -> Option<String> {
    for (dim, row) in sharding.dims.iter().enumerate() {
        let is_manual = |axis: AxisRef| manual.contains(axis.axis);
        let wrong = row.axes.windows(2).position(|pair| !is_manual(pair[0]) && is_manual(pair[1]));
        if let Some(at) = wrong {
            let (mut free, mut bound) = (String::new(), String::new());
            write_axis(&mut free, row.axes[at], mesh);
            write_axis(&mut bound, row.axes[at + 1], mesh);
            return Some(format!(
                "{what} sharding at index {index} must have all manual axes come before free axes in \
                 its dimension sharding at index {dim}. Saw manual axis {bound} after free axis {free}"
            ));
        }
    }
    None
}

/// The operands or the results of a manual computation.
struct Side<'a> {
    what: &'static str,
    /// Types outside.
    outer: &'a [TypeId],
    /// Values inside.
    inner: &'a [ValueId],
    /// The values that store the shardings.
    owners: &'a [ValueId],
}
