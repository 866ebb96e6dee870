//! `all-gather-broadcast-reorder`: gathers what is broadcast before it is broadcast, so that fewer bytes are sent.
//!
//! `all_gather(broadcast_in_dim(x))` becomes `broadcast_in_dim(all_gather(x))`. Along a dim in which `x` does not vary devices
//! may still have different values: then `x` gets a new leading dim, along which it is gathered, and the result is reshaped.
//!
//! Source: XLA's `AllGatherBroadcastReorder`.

use super::super::devices::Devices;
use super::super::emit::Emitter;
use super::{dim, participants, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::Program;
use crate::mlir::op_attribute;

const GATHER: &str = "stablehlo.all_gather";
const BROADCAST: &str = "stablehlo.broadcast_in_dim";

/// The gather of a broadcast, and what is known of both.
struct Found {
    gather: OpId,
    /// The operand of the broadcast, and its shape without the dims of size one that are broadcast.
    operand: ValueId,
    shape: Vec<i64>,
    /// The dim of the result for each of them.
    dims: Vec<i64>,
    /// The dim of the result that is gathered.
    gathered: usize,
    result_shape: Vec<i64>,
    /// The number of devices that gather.
    count: i64,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-gather-broadcast-reorder", 0, 1)?;
    for gather in Names::new(program, &[GATHER]).ops(program) {
        if let Some(found) = found(program, gather) {
            replace(program, &found);
        }
    }
    Ok(())
}

fn found(program: &Program, gather: OpId) -> Option<Found> {
    if program.num_operands(gather) != 1 {
        return None;
    }
    let broadcast = program.defining_op(program.operand(gather, 0))?;
    if program.op_name(broadcast) != BROADCAST {
        return None;
    }
    let gathered = dim(program, gather, "all_gather_dim")?;
    let shape_of = |value| program.value_type(value).static_shape();
    let (before, result_shape) =
        (shape_of(program.operand(gather, 0))?, shape_of(program.result(gather, 0))?);
    let operand = program.operand(broadcast, 0);
    let given = op_attribute(program, broadcast, "broadcast_dimensions")?.as_ints()?;
    let sizes = shape_of(operand)?;
    let mut kept = Vec::new();
    for (&size, &to) in sizes.iter().zip(&given) {
        if size == *before.get(usize::try_from(to).ok()?)? {
            kept.push((size, to));
        }
    }
    let (shape, dims): (Vec<i64>, Vec<i64>) = kept.into_iter().unzip();
    let varies = |&dim: &usize| dims.contains(&(dim as i64)) || dim == gathered;
    let uniform = (0..result_shape.len()).any(|dim| !varies(&dim) && result_shape[dim] > 1);
    let count = result_shape.get(gathered)?.checked_div(*before.get(gathered)?)?;
    (uniform && count > 0).then_some(Found {
        gather,
        operand,
        shape,
        dims,
        gathered,
        result_shape,
        count,
    })
}

fn replace(program: &mut Program, found: &Found) {
    let (gather, old) = (found.gather, program.result(found.gather, 0));
    let mut attrs = participants(program, gather);
    let (ty, cause) = (program.type_of(old), program.cause(gather));
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(gather);
    let own = found.dims.iter().position(|&dim| dim == found.gathered as i64);
    // The dim that is gathered is one of the operand's, or a new first one.
    let (mut shape, at) = match own {
        Some(at) => (found.shape.clone(), at),
        None => (std::iter::once(1).chain(found.shape.iter().copied()).collect(), 0),
    };
    let input = reshaped(&mut emit, found.operand, &shape);
    shape[at] *= found.count;
    let whole = emit.like(&shape, ty);
    attrs.push(("all_gather_dim", format!("{at} : i64")));
    let new = emit.op_with_results(GATHER, &[input], &[whole], &attrs);
    let value = emit.program.result(new, 0);
    let result = if own.is_some() {
        emit.broadcast(value, &found.dims, ty)
    } else {
        let mut split = found.result_shape.clone();
        split[found.gathered] /= found.count;
        split.insert(found.gathered, found.count);
        let gathered = found.gathered as i64;
        let behind = |&dim: &i64| dim + i64::from(dim > gathered);
        let dims: Vec<i64> =
            std::iter::once(gathered).chain(found.dims.iter().map(behind)).collect();
        let wide = emit.like(&split, ty);
        let wide = emit.broadcast(value, &dims, wide);
        emit.op("stablehlo.reshape", &[wide], ty, &[])
    };
    if let Some(cause) = cause {
        program.set_cause(new, cause);
    }
    program.replace_all_uses(old, result);
    program.erase_op(gather);
}

/// `value` in another shape.
fn reshaped(emit: &mut Emitter<'_>, value: ValueId, shape: &[i64]) -> ValueId {
    if emit.shape(value) == shape {
        return value;
    }
    let ty = emit.type_of(value);
    let ty = emit.like(shape, ty);
    emit.op("stablehlo.reshape", &[value], ty, &[])
}
