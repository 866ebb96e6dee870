//! Putting an edge op between a value and its uses.

use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Place, Program, Span, ValueDef};

/// Whether values of this type have edges at all; tokens and dynamic shapes have not.
pub(super) fn has_static_shape(program: &Program, value: ValueId) -> bool {
    program.value_type(value).is_static_tensor()
}

/// Where `value` says it comes from.
fn location(program: &Program, value: ValueId) -> Span {
    match program.values[value].def() {
        ValueDef::Result(op) => program.op_texts[op].loc,
        ValueDef::Arg(_) => program.arg_location_text(value).unwrap_or(Span::EMPTY),
    }
}

/// Creates an op of `kind` on `value` at `place`, with the location `loc` and `sharding`, and makes it
/// the only user of `value`.
pub(super) fn insert_edge(
    program: &mut Program,
    (kind, loc): (OpKind, Span),
    value: ValueId,
    sharding: ShardingId,
    place: Place,
) -> OpId {
    let ty = program.values[value].ty;
    let edge = program.create_op_of(kind, &[value], &[ty]);
    program.op_texts[edge].loc = loc;
    program.insert_op(edge, place);
    let result = program.result(edge, 0);
    program.set_sharding(result, sharding);
    program.replace_all_uses_except(value, result, edge);
    edge
}

/// Puts an `sdy.data_flow_edge` on each of `owners` that has a static shape, last one first: each goes
/// right after its value, so they end up in the order of the owners.
pub(super) fn add_data_flow_edges(
    program: &mut Program,
    owners: impl DoubleEndedIterator<Item = ValueId>,
) {
    for owner in owners.rev() {
        if !has_static_shape(program, owner) {
            continue;
        }
        let place = match program.values[owner].def() {
            ValueDef::Result(op) => Place::After(op),
            ValueDef::Arg(block) => Place::Start(block),
        };
        let sharding = program.sharding_of(owner);
        let loc = location(program, owner);
        insert_edge(program, (OpKind::DataFlowEdge, loc), owner, sharding, place);
    }
}
