//! `all-reduce-to-reduce-scatter`: turns an all-reduce, of whose result each device keeps a different slice, into a reduce-scatter,
//! which sends half as many bytes.
//!
//! In each group the devices have to keep all slices along one dim, each another one. The slices are evaluated from the offsets
//! that devices compute, and the group is sorted by slice.

use super::super::collectives::matrix_text;
use super::super::devices::Devices;
use super::super::emit::Emitter;
use super::super::reducer::Reducer;
use super::offsets::Offsets;
use super::{matrix, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::Program;

/// A reduce-scatter that is equivalent to an all-reduce and a slice.
struct Scatter {
    slice: OpId,
    reducer: Reducer,
    dim: usize,
    groups: Vec<Vec<i64>>,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("all-reduce-to-reduce-scatter", 0, 1)?;
    let mut offsets = Offsets::default();
    for op in Names::new(program, &["stablehlo.all_reduce"]).ops(program) {
        if let Some(found) = scatter(program, op, &mut offsets) {
            replace(program, op, &found);
        }
    }
    Ok(())
}

fn scatter(program: &Program, op: OpId, offsets: &mut Offsets) -> Option<Scatter> {
    if program.num_results(op) != 1 || !program.has_one_use(program.result(op, 0)) {
        return None;
    }
    let slice = program.users(program.result(op, 0)).next()?;
    if program.op_name(slice) != "stablehlo.dynamic_slice" {
        return None;
    }
    let reducer = Reducer::of_region(program, op)?;
    let whole = program.value_type(program.result(op, 0)).static_shape()?;
    let part = program.value_type(program.result(slice, 0)).static_shape()?;
    let mut cut = (0..whole.len()).filter(|&dim| whole[dim] != part[dim]);
    let (dim, None) = (cut.next()?, cut.next()) else { return None };
    let groups = matrix(program, op, "replica_groups")?;
    let count = groups.iter().flatten().max().map(|&last| last as usize + 1)?;
    let starts = offsets.of(program, program.operand(slice, 1 + dim), count)?;
    let groups: Option<Vec<Vec<i64>>> = groups
        .into_iter()
        .map(|mut group| {
            let start = |&device: &i64| starts.get(usize::try_from(device).ok()?).copied();
            group.sort_by_key(start);
            let is_all = group.len() as i64 * part[dim] == whole[dim];
            let is_each = (0..)
                .zip(&group)
                .all(|(place, device): (i64, &i64)| start(device) == Some(place * part[dim]));
            (is_all && is_each).then_some(group)
        })
        .collect();
    Some(Scatter { slice, reducer, dim, groups: groups? })
}

fn replace(program: &mut Program, op: OpId, found: &Scatter) {
    let channel = program.attr(op, "channel_handle").map(str::to_owned);
    let has_ids = program.attr(op, "use_global_device_ids").is_some();
    let mut attrs = vec![
        ("scatter_dimension", format!("{} : i64", found.dim)),
        ("replica_groups", matrix_text(&found.groups)),
    ];
    attrs.extend(channel.map(|channel| ("channel_handle", channel)));
    attrs.extend(has_ids.then(|| ("use_global_device_ids", String::new())));
    let (input, old) = (program.operand(op, 0), program.result(found.slice, 0));
    let (like, ty) = (program.type_of(input), program.type_of(old));
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(op);
    let new = emit.op_with_results("stablehlo.reduce_scatter", &[input], &[ty], &attrs);
    emit.note_cause(new);
    found.reducer.add_body(&mut emit, new, like);
    let value = program.result(new, 0);
    program.replace_all_uses(old, value);
    program.erase_op(found.slice);
    program.erase_op(op);
}
