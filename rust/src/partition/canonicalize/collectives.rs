//! The canonicalization patterns of collectives, labelled `sdy-collective`, in the order in which
//! MLIR tries them.

use super::driver::Driver;
use crate::axis::{push_or_merge, AxisRef};
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program};
use crate::sharding::{DimSharding, TensorSharding};

/// The kinds of ops that the patterns match.
pub const KINDS: [OpKind; 6] = [
    OpKind::AllGather,
    OpKind::ReduceScatter,
    OpKind::AllSlice,
    OpKind::AllReduce,
    OpKind::AllToAll,
    OpKind::CollectivePermute,
];

/// Tries the patterns on `op`; true if one matched.
pub fn apply(driver: &mut Driver, op: OpId) -> bool {
    match driver.program.kind(op) {
        OpKind::AllGather | OpKind::ReduceScatter => drop_without_axes(driver, op),
        OpKind::AllSlice => {
            drop_slice_of_gather(driver, op)
                || drop_without_axes(driver, op)
                || fuse_reduce_scatter(driver, op)
        }
        OpKind::AllReduce => {
            drop_reduce_of_replicated(driver, op)
                || drop_without_axes(driver, op)
                || gather_instead_of_reduce(driver, op)
        }
        OpKind::AllToAll => fuse_all_to_alls(driver, op) || drop_unused(driver, op),
        OpKind::CollectivePermute => drop_equivalent_permute(driver, op),
        _ => false,
    }
}

/// The op of kind `kind` that defines the operand of `op`.
pub(super) fn input_of_kind(program: &Program, op: OpId, kind: OpKind) -> Option<OpId> {
    let def = program.defining_op(program.operand(op, 0))?;
    (program.kind(def) == kind).then_some(def)
}

fn axes_per_dim(program: &Program, op: OpId) -> Vec<Vec<AxisRef>> {
    match program.payload(op) {
        Some(Payload::AxesPerDim(axes, _)) => axes.clone(),
        _ => Vec::new(),
    }
}

fn axes(program: &Program, op: OpId) -> Vec<AxisRef> {
    match program.payload(op) {
        Some(Payload::Axes(axes, _)) => axes.clone(),
        _ => Vec::new(),
    }
}

/// The sharding of the only result of `op`.
pub(super) fn out_sharding(program: &Program, op: OpId) -> ShardingId {
    program.sharding(program.result(op, 0))
}

/// Makes an op of `kind` on `input` right before `root`, with the fused location of the ops `locs`.
pub(super) fn create(
    driver: &mut Driver,
    root: OpId,
    kind: OpKind,
    input: ValueId,
    sharding: ShardingId,
    locs: &[OpId],
) -> OpId {
    let at = InsertPoint { place: Place::Before(root), loc: driver.program.fused_loc(locs) };
    let new = driver.program.build_unary(kind, input, sharding, at);
    driver.note_inserted(new, root);
    if let Some(cause) = locs.iter().find_map(|&op| driver.program.cause(op)) {
        driver.program.set_cause(new, cause);
    }
    new
}

/// Erases a collective without axes.
fn drop_without_axes(driver: &mut Driver, op: OpId) -> bool {
    let is_empty = match driver.program.payload(op) {
        Some(Payload::AxesPerDim(axes, _)) => axes.iter().all(Vec::is_empty),
        Some(Payload::Axes(axes, _)) => axes.is_empty(),
        _ => true,
    };
    if is_empty {
        driver.replace(op, &[driver.program.operand(op, 0)]);
    }
    is_empty
}

/// Erases an all-slice of an all-gather of the same axes.
fn drop_slice_of_gather(driver: &mut Driver, op: OpId) -> bool {
    let Some(gather) = input_of_kind(driver.program, op, OpKind::AllGather) else { return false };
    if axes_per_dim(driver.program, gather) != axes_per_dim(driver.program, op) {
        return false;
    }
    driver.replace(op, &[driver.program.operand(gather, 0)]);
    true
}

/// Erases an all-reduce over axes that its operand changed from replicated to unreduced.
fn drop_reduce_of_replicated(driver: &mut Driver, op: OpId) -> bool {
    let input = input_of_kind(driver.program, op, OpKind::ReplicatedToUnreduced);
    let Some(input) = input else { return false };
    if axes(driver.program, input) != axes(driver.program, op) {
        return false;
    }
    driver.replace(op, &[driver.program.operand(input, 0)]);
    true
}

/// Turns an all-reduce over axes that its operand changed from sharded to unreduced into an
/// all-gather.
fn gather_instead_of_reduce(driver: &mut Driver, op: OpId) -> bool {
    let input = input_of_kind(driver.program, op, OpKind::ShardedToUnreduced);
    let Some(input) = input else { return false };
    let per_dim = axes_per_dim(driver.program, input);
    let Some(mesh) = driver.program.mesh_of(out_sharding(driver.program, input)).get() else {
        return false;
    };
    let mut all: Vec<AxisRef> = per_dim.iter().flatten().copied().collect();
    crate::axis::sort_and_merge(&mut all, driver.program.mesh(mesh));
    if all != axes(driver.program, op) {
        return false;
    }
    let tensor = driver.program.operand(input, 0);
    let sharding = out_sharding(driver.program, op);
    let gather = create(driver, op, OpKind::AllGather, tensor, sharding, &[op]);
    driver.program.set_payload(gather, Payload::axes_per_dim(per_dim));
    driver.replace(op, &[driver.program.result(gather, 0)]);
    true
}

/// Fuses two all-to-alls that have no dim in common.
fn fuse_all_to_alls(driver: &mut Driver, op: OpId) -> bool {
    let Some(inner) = input_of_kind(driver.program, op, OpKind::AllToAll) else { return false };
    let program = &driver.program;
    let (Some(Payload::AllToAll(first)), Some(Payload::AllToAll(second))) =
        (program.payload(inner), program.payload(op))
    else {
        return false;
    };
    let mut all = [first.as_slice(), second.as_slice()].concat();
    let mut dims: Vec<i64> = all.iter().flat_map(|(_, from, to)| [*from, *to]).collect();
    dims.sort_unstable();
    let shares_dim = dims.windows(2).any(|pair| pair[0] == pair[1]);
    if shares_dim || !program.has_one_use(program.result(inner, 0)) {
        return false;
    }
    all.sort_by_key(|(_, from, _)| *from);
    let (input, sharding) = (program.operand(inner, 0), out_sharding(program, op));
    let new = create(driver, op, OpKind::AllToAll, input, sharding, &[op, inner]);
    driver.program.set_payload(new, Payload::AllToAll(all));
    driver.replace(op, &[driver.program.result(new, 0)]);
    true
}

/// Erases an all-to-all without uses.
fn drop_unused(driver: &mut Driver, op: OpId) -> bool {
    let is_used = driver.program.has_uses(driver.program.result(op, 0));
    if !is_used {
        driver.replace(op, &[driver.program.operand(op, 0)]);
    }
    !is_used
}

/// Erases a collective permute to an equivalent sharding.
fn drop_equivalent_permute(driver: &mut Driver, op: OpId) -> bool {
    let input = driver.program.operand(op, 0);
    let (from, to) = (driver.program.sharding_of(input), out_sharding(driver.program, op));
    let shardings = driver.program.shardings();
    let shardy = driver.program.shardy();
    let is_same =
        shardings.get(from).is_some_and(|from| from.is_equivalent(shardings.get(to), shardy));
    if is_same {
        driver.replace(op, &[input]);
    }
    is_same
}

/// Turns an all-reduce whose users are all the same all-slice, which covers the reduced axes, into
/// a reduce-scatter; further axes of the slice are sliced afterwards.
fn fuse_reduce_scatter(driver: &mut Driver, op: OpId) -> bool {
    let Some(reduce) = input_of_kind(driver.program, op, OpKind::AllReduce) else { return false };
    let reduced = driver.program.result(reduce, 0);
    let slicing = axes_per_dim(driver.program, op);
    let users = driver.program.users(reduced);
    let users: Vec<OpId> = users.collect();
    let is_like_this = |&user: &OpId| {
        driver.program.kind(user) == OpKind::AllSlice
            && !driver.is_before(user, op)
            && axes_per_dim(driver.program, user) == slicing
    };
    if !users.iter().all(is_like_this) {
        return false;
    }
    let reduction_op = driver.program.reduction_op(reduce);
    let Some((scattered, residual)) = split_slicing(axes(driver.program, reduce), &slicing) else {
        return false;
    };
    let Some(sharding) = scattered_sharding(driver.program, reduce, op, &scattered) else {
        return false;
    };
    let input = driver.program.operand(reduce, 0);
    let scatter = create(driver, op, OpKind::ReduceScatter, input, sharding, &[reduce]);
    driver.program.set_payload(scatter, Payload::AxesPerDim(scattered, reduction_op));
    let mut result = driver.program.result(scatter, 0);
    if residual.iter().any(|axes| !axes.is_empty()) {
        let sharding = out_sharding(driver.program, op);
        let slice = create(driver, op, OpKind::AllSlice, result, sharding, &[op]);
        driver.program.set_payload(slice, Payload::axes_per_dim(residual));
        result = driver.program.result(slice, 0);
    }
    for user in users {
        driver.replace(user, &[result]);
    }
    driver.erase(reduce);
    true
}

/// For each dim the axes that are taken, and the axes that are left.
type Split = (Vec<Vec<AxisRef>>, Vec<Vec<AxisRef>>);

/// Splits the axes of each dim into the longest prefix of `reduced` axes and the rest; `None` if
/// some reduced axis is in no such prefix.
fn split_slicing(mut reduced: Vec<AxisRef>, slicing: &[Vec<AxisRef>]) -> Option<Split> {
    let (mut scattered, mut residual) = (Vec::new(), Vec::new());
    for dim in slicing {
        let mut taken = 0;
        while let Some(at) =
            dim.get(taken).and_then(|axis| reduced.iter().position(|reduced| reduced == axis))
        {
            reduced.swap_remove(at);
            taken += 1;
        }
        scattered.push(dim[..taken].to_vec());
        residual.push(dim[taken..].to_vec());
    }
    reduced.is_empty().then_some((scattered, residual))
}

/// The sharding of the input of `reduce` with the scattered axes added to its dims.
fn scattered_sharding(
    program: &mut Program,
    reduce: OpId,
    slice: OpId,
    scattered: &[Vec<AxisRef>],
) -> Option<ShardingId> {
    let input = program.sharding_of(program.operand(reduce, 0));
    let of_reduce = program.shardings().get(out_sharding(program, reduce))?;
    let of_slice = program.shardings().get(out_sharding(program, slice))?;
    let mesh = program.mesh(of_reduce.mesh);
    let input = program.shardings().get(input);
    let dims = scattered.iter().enumerate().map(|(dim, added)| {
        let mut axes = input
            .and_then(|input| input.dims.get(dim))
            .map_or_else(Vec::new, |dim| dim.axes.clone());
        for &axis in added {
            push_or_merge(&mut axes, axis, mesh);
        }
        DimSharding { axes, is_closed: true, priority: None }
    });
    let sharding = TensorSharding {
        mesh: of_reduce.mesh,
        dims: dims.collect(),
        replicated: of_slice.replicated.clone(),
        unreduced: of_slice.unreduced.clone(),
        reduction_op: of_slice.reduction_op,
    };
    Some(program.intern_sharding(sharding))
}
