//! Checks Shardy's collectives: their axes, and whether the shardings of operand and result fit.
//!
//! The checks run in the order of the reference, with its messages.

use super::transition::Transition;
use super::Verifier;
use crate::attribute::{print_mesh, verify_axes, write_axes, write_axis};
use crate::axis::{any_overlap, push_or_merge, sort_and_merge, total_size, AxisRef};
use crate::error::Code;
use crate::index::OpId;
use crate::ir::{OpKind, Payload, ValueDef};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use std::borrow::Cow;

/// One collective.
struct Collective<'a> {
    op: OpId,
    kind: OpKind,
    mesh: &'a Mesh,
    /// The operand's sharding, or a replicated one if it has none.
    operand: TensorSharding,
    result: &'a TensorSharding,
}

/// `"x":(1)2`
fn axis_text(axis: AxisRef, mesh: &Mesh) -> String {
    let mut out = String::new();
    write_axis(&mut out, axis, mesh);
    out
}

/// `"x", "y":(1)2`
fn axes_text(axes: &[AxisRef], mesh: &Mesh) -> String {
    let mut out = String::new();
    write_axes(&mut out, axes, mesh);
    out
}

/// The axes of `dim` without its suffix `gathered`; fails with the first axis of `gathered` that is
/// not at the end.
fn gather(dim: &[AxisRef], gathered: &[AxisRef], mesh: &Mesh) -> Result<Vec<AxisRef>, AxisRef> {
    let mut left = dim.to_vec();
    for &axis in gathered.iter().rev() {
        let last = left.pop().filter(|last| axis.is_suffix_of(*last, mesh)).ok_or(axis)?;
        left.extend(last.prefix_without_overlap(axis));
    }
    Ok(left)
}

/// The axes of `dim` followed by `sliced`.
fn slice(dim: &[AxisRef], sliced: &[AxisRef], mesh: &Mesh) -> Vec<AxisRef> {
    let mut all = dim.to_vec();
    for &axis in sliced {
        push_or_merge(&mut all, axis, mesh);
    }
    all
}

impl Verifier<'_> {
    /// Whether the sharding of the operand of `op` is malformed.
    fn has_malformed_operand(&self, op: OpId) -> bool {
        let Some(operand) = self.program.operands(op).next() else { return false };
        let Some(holder) = self.program.shardable_value(operand) else { return false };
        let definition = match self.program.def(holder) {
            ValueDef::Result(definition) => definition,
            ValueDef::Arg(block) => self.program.block_parent_op(block),
        };
        self.malformed.contains(&definition)
    }
    pub(super) fn collective(&mut self, op: OpId) {
        let (program, kind) = (self.program, self.program.kind(op));
        let result = program.sharding(program.result(op, 0));
        let operand = program.operands(op).next().and_then(|value| program.used_sharding(value));
        let operand = operand.map(Cow::into_owned);
        let may_miss = matches!(kind, OpKind::AllSlice | OpKind::AllReduce | OpKind::ReduceScatter);
        let has_malformed_operand = self.has_malformed_operand(op);
        if operand.is_none() && !may_miss && !has_malformed_operand {
            let message = "collective on operand without sharding";
            let hint = "annotate the operand, or make it the result of a sdy.sharding_constraint";
            self.report_at_sharding_with_hint(op, Code::InvalidOp, message, hint);
            return;
        }
        let Some(result) = program.shardings().get(result) else { return };
        let mesh = program.mesh(result.mesh);
        let replicated = || TensorSharding::fully_replicated(result.mesh, result.dims.len(), true);
        let operand = operand.unwrap_or_else(replicated);
        if program.mesh(operand.mesh) != mesh && kind != OpKind::CollectivePermute {
            let message = "result mesh does not match operand mesh";
            let hint = format!("operand mesh: #sdy.mesh{}", print_mesh(program.mesh(operand.mesh)));
            self.report_at_sharding_with_hint(op, Code::InvalidOp, message, &hint);
            return;
        }
        if operand.dims.len() != result.dims.len() {
            let (have, need) = (result.dims.len(), operand.dims.len());
            let message =
                format!("result sharding has rank {have} but operand sharding has rank {need}");
            self.report_at_sharding(op, Code::InvalidOp, &message);
            return;
        }
        if !has_malformed_operand && !self.malformed.contains(&op) {
            self.axes(&Collective { op, kind, mesh, operand, result });
        }
    }

    fn axes(&mut self, collective: &Collective<'_>) {
        let op = collective.op;
        if let Some(message) = self.early_problem(collective) {
            self.report_at_sharding(op, Code::InvalidOp, &message);
            return;
        }
        let result = match (collective.kind, self.program.payload(op)) {
            (OpKind::CollectivePermute, _) => self.permute(collective),
            (kind, Some(Payload::AxesPerDim(lists, _))) => {
                self.bad_axes(op, lists, collective.mesh, None);
                per_dim(collective, lists, word_for_removed(kind))
            }
            (OpKind::AllReduce, Some(Payload::Axes(axes, _))) => {
                let lists = std::slice::from_ref(axes);
                self.bad_axes(op, lists, collective.mesh, Some("reduction"));
                reduce(collective, axes).and_then(|()| match self.transition_problem(collective) {
                    Some(message) => Err(Misfit::new(message)),
                    None => Ok(()),
                })
            }
            (_, Some(Payload::Axes(axes, _))) => {
                let lists = std::slice::from_ref(axes);
                self.bad_axes(op, lists, collective.mesh, Some("r2u"));
                to_unreduced(collective, axes)
            }
            (_, Some(Payload::AllToAll(params))) => {
                let lists: Vec<_> = params.iter().map(|(axes, ..)| axes.clone()).collect();
                self.bad_axes(op, &lists, collective.mesh, None);
                all_to_all(collective, params)
            }
            _ => Ok(()),
        };
        if let Err(Misfit { message, hint }) = result {
            let mut problem = self.problem(op, Code::InvalidOp, &message);
            problem.hint = hint;
            problem.span = self.sharding_span(op);
            self.report(op, problem);
        }
    }

    /// The error that is found before the axes of a collective are checked.
    fn early_problem(&self, collective: &Collective<'_>) -> Option<String> {
        match collective.kind {
            OpKind::ReduceScatter => self.transition_problem(collective),
            OpKind::ShardedToUnreduced | OpKind::ReplicatedToUnreduced => {
                let (before, after) = (&collective.operand, collective.result);
                let is_same =
                    before.unreduced.is_empty() || before.reduction_op == after.reduction_op;
                (!is_same)
                    .then(|| "cannot change reduction_op of existing unreduced axes".to_owned())
            }
            _ => None,
        }
    }
    /// The error in the unreduced axes of a collective that reduces.
    fn transition_problem(&self, collective: &Collective<'_>) -> Option<String> {
        if !self.program.shardy().has(Change::UnreducedTransitions) {
            return None;
        }
        let transition = Transition {
            operands: &[Cow::Borrowed(&collective.operand)],
            results: &[Cow::Borrowed(collective.result)],
            added: None,
            removed: self.program.payload(collective.op).map(Payload::reduction_op),
        };
        transition.problem(self.program)
    }

    /// Reports axes that are malformed by themselves.
    fn bad_axes(&mut self, op: OpId, lists: &[Vec<AxisRef>], mesh: &Mesh, sorted: Option<&str>) {
        for found in verify_axes(lists, mesh, sorted) {
            let mut problem = self.problem(op, found.code, &found.message);
            problem.hint = found.hint;
            self.report(op, problem);
        }
    }

    fn permute(&self, collective: &Collective<'_>) -> Result<(), Misfit> {
        let Collective { mesh, operand, result, .. } = collective;
        let operand_mesh = self.program.mesh(operand.mesh);
        let other = || format!("operand mesh: #sdy.mesh{}", print_mesh(operand_mesh));
        if mesh.axes != operand_mesh.axes {
            let message = "result mesh has different axes than operand mesh";
            return Err(Misfit::new(message).with_hint(other()));
        }
        if operand.mesh != result.mesh && mesh.device_ids == operand_mesh.device_ids {
            let message = "result mesh name is different but same device ids as operand";
            return Err(Misfit::new(message).with_hint(other()));
        }
        for (dim, (before, after)) in operand.dims.iter().zip(&result.dims).enumerate() {
            let size = |axes: &[AxisRef]| total_size(axes, mesh);
            let (before, after) = (size(&before.axes), size(&after.axes));
            if before != after {
                return Err(Misfit::new(format!(
                    "sharded size of result doesn't match operand on dimension {dim}: {after} != {before}"
                )));
            }
        }
        Ok(())
    }
}

/// The reason why operand, axes and result do not fit.
struct Misfit {
    message: String,
    hint: Option<String>,
}

impl Misfit {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
    fn with_hint(mut self, hint: String) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// The verb in messages for a collective of `kind` that removes axes from dims; `None` if it adds
/// axes to them.
fn word_for_removed(kind: OpKind) -> Option<&'static str> {
    match kind {
        OpKind::AllGather => Some("gathering"),
        OpKind::ShardedToUnreduced => Some("shard-to-unreduce"),
        _ => None,
    }
}

/// Checks that dim `dim` of the result is sharded over `expected`.
fn expect_dim(collective: &Collective<'_>, dim: usize, expected: &[AxisRef]) -> Result<(), Misfit> {
    let have = &collective.result.dims[dim].axes;
    if have == expected {
        return Ok(());
    }
    let [expected, have] = [expected, have].map(|axes| axes_text(axes, collective.mesh));
    let message =
        format!("result sharding doesn't match expected sharding [{expected}] on dimension {dim}");
    Err(Misfit::new(message).with_hint(format!("it is {{{have}}}, and should be {{{expected}}}")))
}

/// The axes of dim `dim` of the operand without the suffix `axes`, called `kind` in messages.
fn take(
    collective: &Collective<'_>,
    dim: usize,
    axes: &[AxisRef],
    kind: &str,
) -> Result<Vec<AxisRef>, Misfit> {
    let Collective { mesh, operand, .. } = collective;
    gather(&operand.dims[dim].axes, axes, mesh).map_err(|axis| {
        let name = axis_text(axis, mesh);
        let message =
            format!("can't apply {kind} axis {name} to operand sharding on dimension {dim}");
        let have = axes_text(&operand.dims[dim].axes, mesh);
        Misfit::new(message).with_hint(format!("that dim is {{{have}}}: take axes from its end"))
    })
}

/// Checks axes for each dim, which are removed from the operand's axes or added to them.
fn per_dim(
    collective: &Collective<'_>,
    lists: &[Vec<AxisRef>],
    removed: Option<&str>,
) -> Result<(), Misfit> {
    let Collective { mesh, operand, result, .. } = collective;
    if lists.len() != result.dims.len() {
        return Err(Misfit::new(format!(
            "result sharding has rank {} but collective axes has rank {}",
            result.dims.len(),
            lists.len()
        )));
    }
    for (dim, (before, axes)) in operand.dims.iter().zip(lists).enumerate() {
        let expected = match removed {
            Some(kind) => take(collective, dim, axes, kind)?,
            None => slice(&before.axes, axes, mesh),
        };
        expect_dim(collective, dim, &expected)?;
    }
    if collective.kind == OpKind::ShardedToUnreduced {
        return unreduced(collective, &lists.concat(), "sharded_to_unreduced_axes");
    }
    Ok(())
}

/// Checks that the unreduced axes of the result are those of the operand and `added`, called `name`
/// in messages.
fn unreduced(collective: &Collective<'_>, added: &[AxisRef], name: &str) -> Result<(), Misfit> {
    let Collective { mesh, operand, result, .. } = collective;
    let mut expected = operand.unreduced.clone();
    expected.extend(added);
    sort_and_merge(&mut expected, mesh);
    if expected == result.unreduced {
        return Ok(());
    }
    let message = format!("out_unreduced_axes should be in_unreduced_axes + {name}");
    let hint = format!("write unreduced={{{}}}", axes_text(&expected, mesh));
    Err(Misfit::new(message).with_hint(hint))
}

fn reduce(collective: &Collective<'_>, axes: &[AxisRef]) -> Result<(), Misfit> {
    let Collective { mesh, operand, result, .. } = collective;
    if !operand.shards_alike(Some(result)) {
        return Err(Misfit::new("operand and result shardings are not equivalent"));
    }
    let dims = operand.dims.iter().flat_map(|dim| &dim.axes);
    let used: Vec<AxisRef> = dims.chain(&operand.replicated).copied().collect();
    for &axis in axes {
        let subject = format!("reduction axis {}", axis_text(axis, mesh));
        if any_overlap(&[axis], &used) {
            return Err(Misfit::new(format!(
                "{subject} overlaps with operand dimension sharding or replicated axes"
            )));
        }
        if any_overlap(&[axis], &result.unreduced) {
            return Err(Misfit::new(format!("{subject} overlaps with result unreduced axes")));
        }
    }
    Ok(())
}

fn to_unreduced(collective: &Collective<'_>, axes: &[AxisRef]) -> Result<(), Misfit> {
    let Collective { mesh, operand, result, .. } = collective;
    if operand.dims != result.dims {
        return Err(Misfit::new("input and output must share the same dimension shardings"));
    }
    if axes.is_empty() {
        return Err(Misfit::new("r2u axes must not be empty"));
    }
    let dims: Vec<AxisRef> = operand.dims.iter().flat_map(|dim| &dim.axes).copied().collect();
    for &axis in axes {
        let subject = format!("r2u axis {}", axis_text(axis, mesh));
        if any_overlap(&[axis], &dims) {
            let message = format!("{subject} overlaps with operand dimension sharding");
            return Err(Misfit::new(message));
        }
        if any_overlap(&[axis], &operand.unreduced) {
            let message = format!("{subject} overlaps with operand unreduced axes");
            return Err(Misfit::new(message));
        }
    }
    unreduced(collective, axes, "r2u_axes")
}

fn all_to_all(
    collective: &Collective<'_>,
    params: &[(Vec<AxisRef>, i64, i64)],
) -> Result<(), Misfit> {
    let Collective { mesh, operand, .. } = collective;
    let rank = operand.dims.len();
    if params.is_empty() {
        return Err(Misfit::new("parameter list is empty"));
    }
    let mut seen = vec![false; rank];
    let mut last = -1;
    for &(_, source, target) in params {
        for (dim, name) in [(source, "source"), (target, "target")] {
            if usize::try_from(dim).is_err() || dim >= rank as i64 {
                return Err(Misfit::new(format!(
                    "{name} dimension {dim} is out of range [0, {rank})"
                )));
            }
        }
        for dim in [source, target] {
            if std::mem::replace(&mut seen[dim as usize], true) {
                return Err(Misfit::new(format!(
                    "overlapping source/target dimensions in all-to-all params: {dim}"
                )));
            }
        }
        if source <= last {
            return Err(Misfit::new(format!(
                "source dimensions are not sorted in ascending order: {source} appears after {last}"
            )));
        }
        last = source;
    }
    for (axes, source, target) in params {
        let (source, target) = (*source as usize, *target as usize);
        let left = take(collective, source, axes, "all-to-all")?;
        expect_dim(collective, source, &left)?;
        expect_dim(collective, target, &slice(&operand.dims[target].axes, axes, mesh))?;
    }
    let mut others = operand.dims.iter().enumerate().filter(|(dim, _)| !seen[*dim]);
    others.try_for_each(|(dim, row)| expect_dim(collective, dim, &row.axes))
}
