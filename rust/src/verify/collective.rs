//! Collectives: the axes they move, and that operand, axes and result fit.

use super::Verifier;
use crate::attribute::{verify_axes, write_axes, write_axis};
use crate::axis::{any_overlap, push_or_merge, sort_and_merge, AxisRef};
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{OpKind, Payload, ValueDef};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use std::borrow::Cow;

/// One collective.
struct Collective<'a> {
    op: OpId,
    kind: OpKind,
    mesh: &'a Mesh,
    /// The operand's sharding, or one without axes where it has none.
    operand: TensorSharding,
    result: &'a TensorSharding,
}

fn text(axes: &[AxisRef], mesh: &Mesh) -> String {
    let mut out = "{".to_owned();
    write_axes(&mut out, axes, mesh);
    out.push('}');
    out
}

/// `dim` without `gathered` at its end, or the first that is not there.
fn gather(dim: &[AxisRef], gathered: &[AxisRef], mesh: &Mesh) -> Result<Vec<AxisRef>, AxisRef> {
    let mut left = dim.to_vec();
    for &axis in gathered.iter().rev() {
        let last = left.pop().filter(|last| axis.is_suffix_of(*last, mesh)).ok_or(axis)?;
        left.extend(last.prefix_without_overlap(axis));
    }
    Ok(left)
}

/// `dim` with `sliced` after it.
fn slice(dim: &[AxisRef], sliced: &[AxisRef], mesh: &Mesh) -> Vec<AxisRef> {
    let mut all = dim.to_vec();
    for &axis in sliced {
        push_or_merge(&mut all, axis, mesh);
    }
    all
}

impl Verifier<'_> {
    /// The sharding that the operand of `op` has at `op`.
    fn operand_sharding(&self, op: OpId) -> Option<Cow<'_, TensorSharding>> {
        let program = self.program;
        let value = program.op_operands(op).first()?.value;
        let holder = program.shardable_value(value)?;
        let sharding = program.shardings.get(program.sharding(holder))?;
        if let ValueDef::Arg(block) = program.values[holder].def {
            let parent = program.block_parent_op(block);
            if program.kind(parent) == OpKind::ManualComputation {
                let manual = program.manual_axes(parent, sharding);
                return Some(Cow::Owned(sharding.without_manual_axes(&manual)));
            }
        }
        Some(Cow::Borrowed(sharding))
    }

    pub(super) fn collective(&mut self, op: OpId) {
        if !self.requires_sharding(op) {
            return;
        }
        let (program, kind) = (self.program, self.program.kind(op));
        let result = program.sharding(program.result(op, 0));
        let Some(result) = program.shardings.get(result) else { return };
        let mesh = program.mesh(result.mesh);
        let operand = self.operand_sharding(op).map(Cow::into_owned);
        let may_miss = matches!(kind, OpKind::AllSlice | OpKind::AllReduce | OpKind::ReduceScatter);
        let operand = match operand {
            None if !may_miss => {
                let message = "its operand has no sharding";
                self.complain(op, Code::InvalidOp, message);
                return;
            }
            None => TensorSharding::fully_replicated(result.mesh, result.dims.len(), true),
            Some(operand) => operand,
        };
        let same_mesh = program.mesh(operand.mesh) == mesh;
        if !same_mesh && kind != OpKind::CollectivePermute {
            let message = "the mesh of its result is not the mesh of its operand";
            self.complain(op, Code::InvalidOp, message);
            return;
        }
        if operand.dims.len() != result.dims.len() {
            let (have, need) = (result.dims.len(), operand.dims.len());
            let message = format!("its sharding has {have} dims, and that of its operand {need}");
            self.complain(op, Code::InvalidOp, message);
            return;
        }
        self.axes(&Collective { op, kind, mesh, operand, result });
    }

    fn axes(&mut self, collective: &Collective<'_>) {
        let op = collective.op;
        let problem = match (collective.kind, self.program.payload(op)) {
            (OpKind::CollectivePermute, _) => self.permute_problem(collective),
            (_, Some(Payload::AxesPerDim(lists))) => {
                if self.bad_axes(op, lists, collective.mesh, None) {
                    return;
                }
                per_dim_problem(collective, lists)
            }
            (_, Some(Payload::Axes(axes))) => {
                let kind = if collective.kind == OpKind::AllReduce { "reduction" } else { "its" };
                let lists = std::slice::from_ref(axes);
                if self.bad_axes(op, lists, collective.mesh, Some(kind)) {
                    return;
                }
                match collective.kind {
                    OpKind::AllReduce => reduce_problem(collective, axes),
                    _ => to_unreduced_problem(collective, axes),
                }
            }
            (_, Some(Payload::AllToAll(params))) => {
                let lists: Vec<_> = params.iter().map(|(axes, ..)| axes.clone()).collect();
                if self.bad_axes(op, &lists, collective.mesh, None) {
                    return;
                }
                all_to_all_problem(collective, params)
            }
            _ => Some("it has no axes".to_owned()),
        };
        if let Some(message) = problem {
            self.complain(op, Code::InvalidOp, message);
        }
    }

    /// Complains about axes that are malformed by themselves; whether there were any.
    fn bad_axes(
        &mut self,
        op: OpId,
        lists: &[Vec<AxisRef>],
        mesh: &Mesh,
        sorted: Option<&str>,
    ) -> bool {
        let found = verify_axes(lists, mesh, sorted);
        let is_bad = !found.is_empty();
        let name = self.program.op_name(op);
        let span = self.name_span(op);
        for mut diagnostic in found {
            diagnostic.message = format!("{name}: {}", diagnostic.message);
            diagnostic.span = span;
            self.diagnostics.push(diagnostic);
        }
        is_bad
    }

    fn permute_problem(&self, collective: &Collective<'_>) -> Option<String> {
        let Collective { mesh, operand, result, .. } = collective;
        let operand_mesh = self.program.mesh(operand.mesh);
        if mesh.axes != operand_mesh.axes {
            return Some("the mesh of its result has other axes than that of its operand".into());
        }
        if operand.mesh != result.mesh && mesh.device_ids == operand_mesh.device_ids {
            let message = "the meshes of its operand and result differ in name only";
            return Some(message.into());
        }
        let size = |axes: &[AxisRef]| crate::axis::total_size(axes, mesh);
        for (dim, (before, after)) in operand.dims.iter().zip(&result.dims).enumerate() {
            let (before, after) = (size(&before.axes), size(&after.axes));
            if before != after {
                return Some(format!("dim {dim} has {after} shards, and its operand {before}"));
            }
        }
        None
    }
}

/// The complaint unless dim `dim` of the result is sharded over `expected`.
fn dim_problem(collective: &Collective<'_>, dim: usize, expected: &[AxisRef]) -> Option<String> {
    let have = &collective.result.dims.get(dim)?.axes;
    (have != expected).then(|| {
        let (expected, have) = (text(expected, collective.mesh), text(have, collective.mesh));
        format!("dim {dim} of its sharding should be {expected}, not {have}")
    })
}

/// The complaint that `axis` cannot be taken from dim `dim` of the operand.
fn not_there(collective: &Collective<'_>, dim: usize, axis: AxisRef) -> String {
    let mut name = String::new();
    write_axis(&mut name, axis, collective.mesh);
    format!("dim {dim} of its operand's sharding does not end with {name}")
}

/// Axes for each dim: gathered from the operand, or sliced in addition.
fn per_dim_problem(collective: &Collective<'_>, lists: &[Vec<AxisRef>]) -> Option<String> {
    let Collective { mesh, operand, result, .. } = collective;
    if lists.len() != result.dims.len() {
        let (have, need) = (lists.len(), result.dims.len());
        return Some(format!("it has axes for {have} dims, and its sharding has {need}"));
    }
    let gathers = matches!(collective.kind, OpKind::AllGather | OpKind::ShardedToUnreduced);
    for (dim, (before, axes)) in operand.dims.iter().zip(lists).enumerate() {
        let expected = if gathers {
            match gather(&before.axes, axes, mesh) {
                Ok(expected) => expected,
                Err(axis) => return Some(not_there(collective, dim, axis)),
            }
        } else {
            slice(&before.axes, axes, mesh)
        };
        if let Some(problem) = dim_problem(collective, dim, &expected) {
            return Some(problem);
        }
    }
    if collective.kind == OpKind::ShardedToUnreduced {
        return unreduced_problem(collective, &lists.concat());
    }
    None
}

/// The complaint unless the result is unreduced over what the operand is, and `added`.
fn unreduced_problem(collective: &Collective<'_>, added: &[AxisRef]) -> Option<String> {
    let Collective { mesh, operand, result, .. } = collective;
    let mut expected = operand.unreduced.clone();
    expected.extend(added);
    sort_and_merge(&mut expected, mesh);
    (expected != result.unreduced).then(|| {
        let expected = text(&expected, mesh);
        format!("its sharding should be unreduced over {expected}: its operand's axes and its own")
    })
}

fn reduce_problem(collective: &Collective<'_>, axes: &[AxisRef]) -> Option<String> {
    let Collective { mesh, operand, result, .. } = collective;
    if !operand.is_equivalent(Some(result)) {
        return Some("its sharding is not that of its operand".into());
    }
    let dims = operand.dims.iter().flat_map(|dim| &dim.axes);
    let used: Vec<AxisRef> = dims.chain(&operand.replicated).copied().collect();
    for axis in axes {
        let one = std::slice::from_ref(axis);
        if any_overlap(one, &used) {
            let name = text(one, mesh);
            return Some(format!("its operand is sharded over, or replicated along, {name}"));
        }
        if any_overlap(one, &result.unreduced) {
            return Some(format!("its result is still unreduced over {}", text(one, mesh)));
        }
    }
    None
}

fn to_unreduced_problem(collective: &Collective<'_>, axes: &[AxisRef]) -> Option<String> {
    let Collective { mesh, operand, result, .. } = collective;
    if operand.dims != result.dims {
        return Some("its operand's dims are sharded in another way".into());
    }
    if axes.is_empty() {
        return Some("it has no axes".into());
    }
    let dims = operand.dims.iter().flat_map(|dim| &dim.axes);
    let used: Vec<AxisRef> = dims.chain(&operand.unreduced).copied().collect();
    if let Some(axis) = axes.iter().find(|axis| any_overlap(&[**axis], &used)) {
        let name = text(&[*axis], mesh);
        return Some(format!("its operand is sharded or unreduced over {name}"));
    }
    unreduced_problem(collective, axes)
}

fn all_to_all_problem(
    collective: &Collective<'_>,
    params: &[(Vec<AxisRef>, i64, i64)],
) -> Option<String> {
    let Collective { mesh, operand, .. } = collective;
    let rank = operand.dims.len();
    if params.is_empty() {
        return Some("it has no parameters".into());
    }
    let mut seen = vec![false; rank];
    let mut last = -1;
    for &(_, source, target) in params {
        for dim in [source, target] {
            let place = usize::try_from(dim).ok().and_then(|dim| seen.get_mut(dim));
            let Some(place) = place else {
                return Some(format!("there is no dim {dim}: its tensor has {rank}"));
            };
            if std::mem::replace(place, true) {
                return Some(format!("dim {dim} is in two places of its parameters"));
            }
        }
        if source <= last {
            return Some(format!("source dim {source} stands after source dim {last}"));
        }
        last = source;
    }
    for (axes, source, target) in params {
        let (source, target) = (usize::try_from(*source).ok()?, usize::try_from(*target).ok()?);
        let left = match gather(&operand.dims[source].axes, axes, mesh) {
            Ok(left) => left,
            Err(axis) => return Some(not_there(collective, source, axis)),
        };
        let grown = slice(&operand.dims[target].axes, axes, mesh);
        let problem = dim_problem(collective, source, &left);
        if let Some(problem) = problem.or_else(|| dim_problem(collective, target, &grown)) {
            return Some(problem);
        }
    }
    let others = operand.dims.iter().enumerate().filter(|(dim, _)| !seen[*dim]);
    others.into_iter().find_map(|(dim, row)| dim_problem(collective, dim, &row.axes))
}
