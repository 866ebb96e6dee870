//! Inserts an edge op between a value and its uses.

use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, OpKind, Place, Program, Span, ValueDef};

/// Whether `value` can have an edge op: tokens and tensors of dynamic shape cannot.
pub(super) fn has_static_shape(program: &Program, value: ValueId) -> bool {
    program.value_type(value).is_static_tensor()
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
    let edge = program.build_unary(kind, value, sharding, InsertPoint { place, loc });
    program.replace_all_uses_except(value, program.result(edge, 0), edge);
    edge
}

/// Inserts an `sdy.data_flow_edge` for each of `owners` that has a static shape. They are inserted
/// in reverse order, each right after its value, so that they end up in the order of the owners.
pub(super) fn add_data_flow_edges(
    program: &mut Program,
    owners: impl DoubleEndedIterator<Item = ValueId>,
) {
    for owner in owners.rev() {
        if !has_static_shape(program, owner) {
            continue;
        }
        let place = match program.def(owner) {
            ValueDef::Result(op) => Place::After(op),
            ValueDef::Arg(block) => Place::Start(block),
        };
        let sharding = program.sharding_of(owner);
        let loc = program.value_loc(owner);
        insert_edge(program, (OpKind::DataFlowEdge, loc), owner, sharding, place);
    }
}
