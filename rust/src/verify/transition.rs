//! Checks how an op changes unreduced axes: which axes it adds or removes, and whether the
//! remaining ones keep their reduction.

use crate::axis::{any_overlap, difference, AxisRef};
use crate::index::{MeshId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mesh::Mesh;
use crate::sharding::{ReductionOp, TensorSharding};
use std::borrow::Cow;

/// The shardings before and after an op, and the changes of unreduced axes that it may make.
pub struct Transition<'a> {
    /// The shardings of the operands that have one.
    pub operands: &'a [Cow<'a, TensorSharding>],
    /// The shardings of the results that have one.
    pub results: &'a [Cow<'a, TensorSharding>],
    /// The reduction of axes that the op may add; `None` if it may not add axes.
    pub added: Option<ReductionOp>,
    /// The reduction of axes that the op may remove; `None` if it may not remove axes.
    pub removed: Option<ReductionOp>,
}

impl Transition<'_> {
    /// The error message for a change that the op may not make. Shardings over different meshes are
    /// not compared.
    pub fn problem(&self, program: &Program) -> Option<String> {
        let all = || self.operands.iter().chain(self.results);
        if all().all(|sharding| sharding.unreduced.is_empty()) {
            return None;
        }
        let mesh = common_mesh(program, all().map(|sharding| sharding.mesh))?;
        let [before, after] = [self.operands, self.results].map(|shardings| {
            shardings.iter().flat_map(|sharding| &sharding.unreduced).copied().collect::<Vec<_>>()
        });
        let added = difference(&after, &before, mesh);
        let removed = difference(&before, &after, mesh);
        let name = |axes: &[AxisRef]| Some(mesh.axis_name(axes.first()?.axis));
        if let Some(axis) = name(&added) {
            let Some(expected) = self.added else {
                return Some(format!("cannot add new unreduced axis '{axis}'."));
            };
            if let Some(found) = other_reduction(self.results, &added, expected) {
                let (found, expected) = (found.keyword(), expected.keyword());
                return Some(format!(
                    "cannot introduce '{found}' unreduced axes. Expected '{expected}'."
                ));
            }
        }
        if let Some(axis) = name(&removed) {
            let Some(expected) = self.removed else {
                return Some(format!(
                    "dropped unreduced axis '{axis}' without a blessed operation (e.g., sdy.reshard). This is an \
                     invalid transition from unreduced to reduced."
                ));
            };
            if let Some(found) = other_reduction(self.operands, &removed, expected) {
                let (found, expected) = (found.keyword(), expected.keyword());
                return Some(format!(
                    "cannot reduce '{found}' unreduced axes. Expected '{expected}'."
                ));
            }
        }
        self.changed_reduction()
    }
    /// The error message if a remaining unreduced axis has another reduction than before.
    fn changed_reduction(&self) -> Option<String> {
        for result in self.results {
            for axis in &result.unreduced {
                let other = self.operands.iter().find(|operand| {
                    operand.reduction_op != result.reduction_op
                        && any_overlap(&[*axis], &operand.unreduced)
                });
                if let Some(operand) = other {
                    let (before, after) = (operand.reduction_op, result.reduction_op);
                    return Some(format!(
                        "cannot change the reduction operator of kept unreduced axes from {} to {}.",
                        before.keyword(),
                        after.keyword()
                    ));
                }
            }
        }
        None
    }
}

/// The mesh that all of `meshes` are; `None` if they differ, or if there are none.
fn common_mesh(program: &Program, meshes: impl Iterator<Item = MeshId>) -> Option<&Mesh> {
    let mut common = None;
    for mesh in meshes.filter_map(MeshId::get) {
        let mesh = program.mesh(mesh);
        if *common.get_or_insert(mesh) != mesh {
            return None;
        }
    }
    common
}

/// The reduction, other than `expected`, of the first of `shardings` that is unreduced over some of
/// `axes`.
fn other_reduction(
    shardings: &[Cow<'_, TensorSharding>],
    axes: &[AxisRef],
    expected: ReductionOp,
) -> Option<ReductionOp> {
    let is_other = |sharding: &&Cow<'_, TensorSharding>| {
        sharding.reduction_op != expected && any_overlap(&sharding.unreduced, axes)
    };
    shardings.iter().find(is_other).map(|sharding| sharding.reduction_op)
}

impl Program {
    /// The value that propagation barriers pass on as `value`; `value` itself if no barrier defines
    /// it.
    pub fn behind_barriers(&self, mut value: ValueId) -> ValueId {
        while let Some(op) = self.defining_op(value) {
            if self.kind(op) != OpKind::PropagationBarrier {
                break;
            }
            value = self.operand(op, 0);
        }
        value
    }
    /// The sharding that `value` has for its users; inside a manual computation, without the manual
    /// axes.
    pub fn used_sharding(&self, value: ValueId) -> Option<Cow<'_, TensorSharding>> {
        let holder = self.shardable_value(value)?;
        let sharding = self.shardings().get(self.sharding(holder))?;
        Some(match self.manual_computation_of_arg(holder) {
            Some(op) => Cow::Owned(sharding.without_manual_axes(&self.manual_axes(op, sharding))),
            None => Cow::Borrowed(sharding),
        })
    }
    /// The sharding of the value that propagation barriers pass on as `value`.
    pub fn sharding_behind_barriers(&self, value: ValueId) -> Option<Cow<'_, TensorSharding>> {
        self.used_sharding(self.behind_barriers(value))
    }
    /// The error message for a change of unreduced axes that `op`, a constraint or a reshard, may
    /// not make: it may add and remove any axes, but not change a reduction.
    pub fn resharding_problem(&self, op: OpId) -> Option<String> {
        let operand = self.operands(op).next()?;
        let source = self.sharding_behind_barriers(operand)?;
        let target = self.shardings().get(self.sharding(self.op_results(op).next()?))?;
        let removed = Some(source.reduction_op);
        let (operands, results) = ([source], [Cow::Borrowed(target)]);
        let added = Some(target.reduction_op);
        Transition { operands: &operands, results: &results, added, removed }.problem(self)
    }
}
