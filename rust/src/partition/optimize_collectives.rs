//! `sdy-optimize-collectives`: removes collective permutes of axes within a dim before all-to-alls.
//!
//! A permute that reorders the axes of one dim, so that the all-to-alls after it find the axes to
//! move at the end of the dim, sends all data. Instead the dim is split into one dim for each axis,
//! and each axis is moved separately: first those that the all-to-alls move, then the remaining
//! ones to their places in the result. From `[{"x", "y"}, {}]` to `[{"y"}, {"x"}]`, for a tensor of
//! shape `8x8`:
//!
//! | | shape | sharding |
//! | --- | --- | --- |
//! | reshape | `2x2x2x8` | `[{"x"}, {"y"}, {}, {}]` |
//! | all-to-all of `x`, 0 to 3 | | `[{}, {"y"}, {}, {"x"}]` |
//! | all-to-all of `y`, 1 to 0 | | `[{"y"}, {}, {}, {"x"}]` |
//! | reshape | `8x8` | `[{"y"}, {"x"}]` |
//!
//! Deviations, for cases in which the reference makes an invalid all-to-all:
//!
//! 1. if an all-to-all moves several axes at once, its parameters would have a common target dim:
//!    nothing changes;
//! 2. if an axis moves behind its own other part, which shards the target already, the two are
//!    merged.
//!
//! Source: not public; this is the behaviour of the pass in jaxlib 0.12.0.1.

use super::canonicalize::{apply_greedily, Config, Driver, Patterns};
use super::reshard_to_collectives::{align, sorted};
use crate::axis::{push_or_merge, AxisRef};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ShardingId};
use crate::ir::{NewOp, OpKind, Payload, Program};
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, TensorSharding};

/// Runs the pass on `func`.
pub fn run(program: &mut Program, context: &mut Context, func: OpId) -> Result<()> {
    if !program.has_any(&[OpKind::CollectivePermute]) {
        return Ok(());
    }
    let config = Config { top_down: true, ..Config::default() };
    apply_greedily(program, context, func, &mut SplitPermutes, config)?;
    Ok(())
}

/// The pattern on permutes.
struct SplitPermutes;

impl Patterns for SplitPermutes {
    fn kinds(&self) -> Option<Vec<OpKind>> {
        Some(vec![OpKind::CollectivePermute])
    }
    fn apply(&mut self, driver: &mut Driver<'_>, op: OpId) -> bool {
        if driver.program.kind(op) != OpKind::CollectivePermute {
            return false;
        }
        let Some(split) = Split::plan(driver.program, op) else { return false };
        split.rewrite(driver, op);
        true
    }
}

/// An all-to-all of one axis.
type Move = (AxisRef, usize, usize);

/// The replacement of a permute and the all-to-alls after it.
struct Split {
    /// The all-to-alls that are replaced.
    chain: Vec<OpId>,
    /// The shape with one dim for each axis.
    shape: Vec<i64>,
    /// The sharding of that shape before the moves.
    sharding: TensorSharding,
    /// The new all-to-alls.
    moves: Vec<Move>,
}

impl Split {
    /// The plan for `permute`; `None` if it does not reorder the axes of exactly one dim, or if
    /// axes of its result would have to move to places that are not free.
    fn plan(program: &mut Program, permute: OpId) -> Option<Self> {
        let input = program.operand(permute, 0);
        let (from, to) = (program.sharding_of(input), program.sharding(program.result(permute, 0)));
        let (from, to) = (program.shardings().get(from)?, program.shardings().get(to)?);
        let mesh = program.mesh(from.mesh);
        let shape = program.value_type(input).static_shape()?;
        let dim = only_difference(from, to).filter(|&dim| dim < shape.len())?;
        let mut before = vec![from.dims[dim].axes.clone()];
        let after = vec![to.dims[dim].axes.clone()];
        align(&mut before, &sorted(&after, mesh), mesh);
        let before = before.pop()?;
        let (chain, moved) = chain(program, permute, dim, &before)?;
        let (mut sizes, rest) = sizes(&before, shape[dim], mesh)?;
        let place = |axis: AxisRef| before.iter().position(|other| *other == axis);
        let last = program.sharding(program.result(*chain.last()?, 0));
        let kept = program.shardings().get(last)?.dims.get(dim)?.axes.clone();
        let is_same = kept.iter().all(|axis| before.contains(axis))
            && kept.len() + moved.len() == before.len();
        if !is_same {
            return None;
        }
        if !fits(&kept, &sizes, mesh) {
            return None;
        }
        sizes.extend(rest);
        let num_split = sizes.len();
        let mut occupied: Vec<Option<AxisRef>> = before.iter().copied().map(Some).collect();
        let mut moves = Vec::new();
        for (axis, target) in moved {
            let source = place(axis)?;
            occupied[source] = None;
            let target = if target < dim { target } else { target + num_split - 1 };
            moves.push((axis, dim + source, target));
        }
        move_to_places(&kept, &mut occupied, |axis, source, target| {
            moves.push((axis, dim + source, dim + target));
        })?;
        let split = before.iter().map(|&axis| vec![axis]).chain(rest.map(|_| Vec::new()));
        let split = split.map(|axes| DimSharding { axes, is_closed: true, priority: None });
        let mut sharding = from.clone();
        sharding.dims.splice(dim..=dim, split);
        let mut split_shape = shape;
        split_shape.splice(dim..=dim, sizes);
        Some(Self { chain, shape: split_shape, sharding, moves })
    }
    /// Makes the new ops in place of `permute`.
    fn rewrite(self, driver: &mut Driver<'_>, permute: OpId) {
        let input = driver.program.operand(permute, 0);
        let Some(&last) = self.chain.last() else { return };
        let last = driver.program.result(last, 0);
        let (ty, final_sharding) = (driver.program.type_of(last), driver.program.sharding(last));
        let split_type = driver.program.tensor_type(&self.shape, ty);
        let at = driver.program.before(permute);
        let mesh = driver.program.meshes()[self.sharding.mesh].mesh.clone();
        let mut sharding = self.sharding;
        let mut id: ShardingId = driver.program.intern_sharding(sharding.clone());
        let reshape = NewOp::of_kind(OpKind::Reshape, &[input], &[split_type]).sharding(id);
        let mut op = driver.build(reshape, at, permute);
        for (axis, source, target) in self.moves {
            sharding.dims[source].axes.clear();
            push_or_merge(&mut sharding.dims[target].axes, axis, &mesh);
            id = driver.program.intern_sharding(sharding.clone());
            let payload = Payload::AllToAll(vec![(vec![axis], source as i64, target as i64)]);
            let value = driver.program.result(op, 0);
            let all_to_all = NewOp::of_kind(OpKind::AllToAll, &[value], &[split_type]);
            op = driver.build(all_to_all.sharding(id).payload(payload), at, permute);
            note_cause(driver.program, op, permute);
        }
        let value = driver.program.result(op, 0);
        let reshape = NewOp::of_kind(OpKind::Reshape, &[value], &[ty]).sharding(final_sharding);
        let reshape = driver.build(reshape, at, permute);
        let result = driver.program.result(reshape, 0);
        for &replaced in self.chain.iter().rev() {
            driver.replace(replaced, &[result]);
        }
        driver.erase(permute);
    }
}

/// Records the cause of `permute` as that of `op`.
fn note_cause(program: &mut Program, op: OpId, permute: OpId) {
    if let Some(cause) = program.cause(permute) {
        program.set_cause(op, cause);
    }
}

/// The only dim in which the two shardings differ; `None` if there is none or several, or if the
/// meshes differ.
fn only_difference(from: &TensorSharding, to: &TensorSharding) -> Option<usize> {
    let are_alike = from.mesh == to.mesh && from.dims.len() == to.dims.len();
    let dims = from.dims.iter().zip(&to.dims).enumerate();
    let mut different = dims.filter(|(_, (from, to))| from != to).map(|(dim, _)| dim);
    let dim = different.next()?;
    (are_alike && different.next().is_none()).then_some(dim)
}

/// The all-to-alls after `permute` that each move one of `axes` out of `dim`, with the axis and the
/// target of each. `None` if there are none, or if one moves several axes.
#[allow(clippy::type_complexity)] // It is a pair of lists.
fn chain(
    program: &Program,
    permute: OpId,
    dim: usize,
    axes: &[AxisRef],
) -> Option<(Vec<OpId>, Vec<(AxisRef, usize)>)> {
    let (mut chain, mut moved) = (Vec::new(), Vec::new());
    let mut value = program.result(permute, 0);
    while program.has_one_use(value) {
        let Some(user) = program.users(value).next() else { break };
        let Some(Payload::AllToAll(parameters)) = program.payload(user) else { break };
        let [(of_user, source, target)] = &parameters[..] else { break };
        if usize::try_from(*source) != Ok(dim) {
            break;
        }
        let (&[axis], Ok(target)) = (&of_user[..], usize::try_from(*target)) else { return None };
        if !axes.contains(&axis) {
            return None;
        }
        chain.push(user);
        moved.push((axis, target));
        value = program.result(user, 0);
    }
    (!chain.is_empty()).then_some((chain, moved))
}

/// The sizes of `axes`, and the rest of a dim of `size`, unless that is 1. `None` if they do not
/// divide it.
fn sizes(axes: &[AxisRef], size: i64, mesh: &Mesh) -> Option<(Vec<i64>, Option<i64>)> {
    let sizes: Vec<i64> = axes.iter().map(|axis| axis.size(mesh)).collect();
    let total: i64 = sizes.iter().product();
    let rest = (size % total == 0).then_some(size / total)?;
    Some((sizes, Some(rest).filter(|&rest| rest != 1)))
}

/// Whether `axes`, as axes of dims of these `sizes`, shard the elements as they do in one dim: only
/// the last axis may be smaller than its dim.
fn fits(axes: &[AxisRef], sizes: &[i64], mesh: &Mesh) -> bool {
    let Some((last, others)) = axes.split_last() else { return true };
    let last_size = sizes.get(others.len()).copied().unwrap_or(0);
    others.iter().zip(sizes).all(|(axis, &size)| axis.size(mesh) == size)
        && last_size % last.size(mesh) == 0
}

/// Moves each of `axes` to the place with its index, as soon as that is free. `None` if some would
/// have to be swapped.
fn move_to_places(
    axes: &[AxisRef],
    occupied: &mut [Option<AxisRef>],
    mut emit: impl FnMut(AxisRef, usize, usize),
) -> Option<()> {
    loop {
        let mut has_moved = false;
        let mut is_done = true;
        for (target, &axis) in axes.iter().enumerate() {
            if occupied[target] == Some(axis) {
                continue;
            }
            if occupied[target].is_some() {
                is_done = false;
                continue;
            }
            let source = occupied.iter().position(|other| *other == Some(axis))?;
            occupied[source] = None;
            occupied[target] = Some(axis);
            emit(axis, source, target);
            has_moved = true;
        }
        if is_done {
            return Some(());
        }
        if !has_moved {
            return None;
        }
    }
}
