//! Manual computations.
//!
//! 1. In-shardings are for the operands, out-shardings for the results, and all of them are over one
//!    mesh (empty meshes aside), which has the manual axes.
//! 2. In each dim, manual axes stand before free ones, and the manual axes divide its size.
//! 3. Inside, values have the shape that is left without the manual axes.
//! 4. Nothing inside uses an axis that is manual around it.

use super::Verifier;
use crate::attribute::{unknown_axis, write_axis};
use crate::error::{Code, Span};
use crate::index::{AxisId, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{OpKind, Payload, Type};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

impl Verifier<'_> {
    fn manual_axis_names(&self, op: OpId) -> &[StrId] {
        match self.program.payload(op) {
            Some(Payload::ManualComputation(names)) => names,
            _ => &[],
        }
    }
    /// Invariant 4: no axis of `sharding`, which `op` has, is manual around `op`.
    pub(super) fn bound_axes(&mut self, op: OpId, sharding: ShardingId) {
        let Some(sharding) = self.program.shardings.get(sharding) else { return };
        let mesh = self.program.mesh(sharding.mesh);
        let mut found = Vec::new();
        let mut around = self.program.parent_op(op);
        while let Some(parent) = around {
            if self.program.kind(parent) == OpKind::ManualComputation {
                for &name in self.manual_axis_names(parent) {
                    let axis = mesh.axis_by_name(self.program.strings.get(name));
                    if axis.is_some_and(|axis| sharding.axis_refs().any(|r| r.axis == axis)) {
                        found.push((name, parent));
                    }
                }
            }
            around = self.program.parent_op(parent);
        }
        for (name, parent) in found {
            let name = self.program.strings.get(name);
            let message = format!("axis \"{name}\" is manual around it");
            let related = self.attr_span(parent, "manual_axes");
            self.complain(op, Code::InvalidSharding, message);
            if let (Some(last), Some(span)) = (self.diagnostics.last_mut(), related) {
                last.related = Some((span, "made manual here".to_owned()));
            }
        }
    }
    pub(super) fn manual_computation(&mut self, op: OpId) {
        let names = self.manual_axis_names(op).to_vec();
        self.rebound_axes(op, &names);
        let operands: Vec<TypeId> = self
            .program
            .op_operands(op)
            .iter()
            .map(|slot| self.program.values[slot.value].ty)
            .collect();
        let results: Vec<ValueId> = self.program.op_results(op).collect();
        let result_types: Vec<TypeId> =
            results.iter().map(|&value| self.program.values[value].ty).collect();
        let args = self.body(op).map_or(Vec::new(), |b| self.program.block_args(b).collect());
        let returned = self.returned(op);
        let spans = [self.attr_span(op, "in_shardings"), self.sharding_span(op)];
        let sides = [
            Side { what: "operand", outer: &operands, inner: &args, owners: &args, span: spans[0] },
            Side {
                what: "result",
                outer: &result_types,
                inner: &returned,
                owners: &results,
                span: spans[1],
            },
        ];
        let sound = sides.iter().all(|side| self.side(op, side, &names));
        if sound && !(args.is_empty() && results.is_empty()) {
            self.manual_mesh(op, &[&args[..], &results[..]].concat(), &names);
        }
    }
    /// No axis is made manual twice.
    fn rebound_axes(&mut self, op: OpId, names: &[StrId]) {
        let span = self.attr_span(op, "manual_axes").or_else(|| self.name_span(op));
        let mut around = self.program.parent_op(op);
        while let Some(parent) = around {
            for name in self.manual_axis_names(parent).to_vec() {
                if names.contains(&name) {
                    let name = self.program.strings.get(name);
                    let message = format!("axis \"{name}\" is manual around it already");
                    self.complain_at(span, op, Code::InvalidOp, message);
                }
            }
            around = self.program.parent_op(parent);
        }
    }
    /// Invariant 1: one mesh, with the manual axes.
    fn manual_mesh(&mut self, op: OpId, owners: &[ValueId], names: &[StrId]) {
        let mut common = MeshId::NONE;
        let span = self.attr_span(op, "manual_axes").or_else(|| self.name_span(op));
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
                    let message = "its in_shardings and out_shardings are over different meshes";
                    self.complain_at(span, op, Code::InvalidOp, message);
                }
                return;
            }
        }
        let Some(common) = common.get() else { return };
        for &name in names {
            let name = self.program.strings.get(name);
            let mesh = self.program.mesh(common);
            if mesh.axis_by_name(name).is_none() {
                let mut diagnostic = unknown_axis(name, mesh);
                diagnostic.message = format!("manual axis \"{name}\" is not in the mesh");
                diagnostic.span = span;
                self.diagnostics.push(diagnostic);
            }
        }
    }
    /// Checks one side; false if it does not have what the rest is checked against.
    fn side(&mut self, op: OpId, side: &Side<'_>, names: &[StrId]) -> bool {
        let (what, span) = (side.what, side.span.or_else(|| self.name_span(op)));
        if side.outer.len() != side.inner.len() {
            let (outer, inner) = (side.outer.len(), side.inner.len());
            let message = format!("it has {outer} {what}s, and its body has {inner}");
            self.complain_at(span, op, Code::TypeMismatch, message);
            return false;
        }
        for (i, (&ty, &inner)) in side.outer.iter().zip(side.inner).enumerate() {
            let sharding = side.owners.get(i).map(|&owner| self.program.sharding(owner));
            let Some(sharding) = sharding.and_then(|id| self.program.shardings.get(id)) else {
                let message = format!("{what} {i} has no sharding");
                self.complain_at(span, op, Code::InvalidOp, message);
                return false;
            };
            let mesh = self.program.mesh(sharding.mesh);
            let axes = names.iter().filter_map(|&n| mesh.axis_by_name(self.program.strings.get(n)));
            let manual: Vec<AxisId> = axes.collect();
            let found = order_problem(sharding, mesh, &manual);
            let found = found.or_else(|| self.shape_problem(sharding, mesh, &manual, ty, inner));
            if let Some(message) = found {
                self.complain_at(span, op, Code::InvalidOp, format!("{what} {i}: {message}"));
            }
        }
        true
    }
    /// Invariants 2, second half, and 3.
    fn shape_problem(
        &self,
        sharding: &TensorSharding,
        mesh: &Mesh,
        manual: &[AxisId],
        outer: TypeId,
        inner: ValueId,
    ) -> Option<String> {
        let Type::RankedTensor { shape, element, .. } = &self.program.types[outer] else {
            return None;
        };
        if shape.len() != sharding.dims.len() {
            // Said elsewhere.
            return None;
        }
        let mut local = Vec::new();
        for (dim, (size, row)) in shape.iter().zip(&sharding.dims).enumerate() {
            let axes = row.axes.iter().filter(|axis| manual.contains(&axis.axis));
            let parts: i64 = axes.map(|axis| axis.size(mesh)).product();
            match *size {
                Some(size) if size % parts != 0 => {
                    return Some(format!(
                        "dim {dim} of size {size} does not divide by the manual axes' size {parts}"
                    ));
                }
                size => local.push(size.map(|size| size / parts)),
            }
        }
        let inner_type = self.program.values[inner].ty;
        let fits = matches!(&self.program.types[inner_type],
            Type::RankedTensor { shape, element: other, encoding: None }
                if *shape == local && other == element);
        if fits {
            return None;
        }
        let dims = local.iter().map(|size| size.map_or("?x".into(), |size| format!("{size}x")));
        let (dims, element) = (dims.collect::<String>(), self.program.strings.get(element.text));
        let have = self.program.text.get(self.program.types.text(inner_type));
        Some(format!(
            "inside it is {have}, and without the manual axes it is tensor<{dims}{element}>"
        ))
    }
}

/// Invariant 2, first half.
fn order_problem(sharding: &TensorSharding, mesh: &Mesh, manual: &[AxisId]) -> Option<String> {
    for (dim, row) in sharding.dims.iter().enumerate() {
        let is_manual: Vec<bool> = row.axes.iter().map(|a| manual.contains(&a.axis)).collect();
        let wrong = is_manual.windows(2).position(|pair| !pair[0] && pair[1]);
        if let Some(at) = wrong {
            let (mut free, mut bound) = (String::new(), String::new());
            write_axis(&mut free, row.axes[at], mesh);
            write_axis(&mut bound, row.axes[at + 1], mesh);
            return Some(format!(
                "manual axes stand before free ones, but in dim {dim} {bound} stands after {free}"
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
    /// The values that have the shardings.
    owners: &'a [ValueId],
    span: Option<Span>,
}
