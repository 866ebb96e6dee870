"""Schedules around the driver: op priorities and user priorities."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from . import axis
from .basic import Direction
from .driver import DirectionThrough, any_direction, propagate
from .graph import EDGE, Op, Program, Value, edge_of
from .mesh import Mesh
from .sharding import DimSharding, TensorSharding
from .state import State
from .visit import Strategy, SweepOptions

RESHAPING = {"stablehlo.reshape", "stablehlo.transpose", EDGE}
SLICING = {"stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"}
BROADCAST = "stablehlo.broadcast_in_dim"


def pass_through_op(op: Op, allow_multiple_uses: bool) -> Direction:
    """Let shardings through ops that only rearrange elements."""
    shared = any(len(value.uses) != 1 and value.shape for value in op.operands)
    if shared and not allow_multiple_uses:
        return Direction.NONE
    if op.is_elementwise or op.name in RESHAPING:
        return Direction.BOTH
    return Direction.FORWARD if op.name in SLICING else Direction.NONE


def broadcast_backward(op: Op) -> Direction:
    return Direction.BACKWARD if op.name == BROADCAST else Direction.BOTH


def pass_through_factor(op: Op, factor: int) -> Direction:
    if op.rule is not None and not op.rule.is_pass_through(factor):
        return Direction.NONE
    return broadcast_backward(op)


# The directions that each op priority allows, in addition to those before it.
OP_PRIORITIES: Sequence[DirectionThrough] = (
    lambda op, _: pass_through_op(op, allow_multiple_uses=False),
    lambda op, _: pass_through_op(op, allow_multiple_uses=True),
    pass_through_factor,
    lambda op, _: broadcast_backward(op),
    any_direction,
)


def up_to_op_priority(priority: int) -> DirectionThrough:
    def direction(op: Op, factor: int) -> Direction:
        allowed = Direction.NONE
        for step in OP_PRIORITIES[: priority + 1]:
            allowed |= step(op, factor)
        return allowed

    return direction


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of the propagation passes."""

    strategies: tuple[Strategy, ...] = (Strategy.AGGRESSIVE,)
    conservative: bool = False
    op_priorities: bool = True


def _sweeps(state: State, options: Options, direction: DirectionThrough = any_direction) -> None:
    for strategy in options.strategies:
        propagate(
            state, SweepOptions(state.program.meshes, strategy, options.conservative), direction
        )


def _op_priority_sweeps(state: State, options: Options) -> None:
    if not options.op_priorities:
        _sweeps(state, options)
        return
    for priority in range(len(OP_PRIORITIES)):
        _sweeps(state, options, up_to_op_priority(priority))


def _start(program: Program) -> State:
    state = State(program)
    state.synchronize_groups()
    return state


def basic_propagate(program: Program, conservative: bool = False) -> State:
    state = _start(program)
    _sweeps(state, Options((Strategy.BASIC,), conservative))
    return state


def aggressive_propagate(program: Program, options: Options = Options()) -> State:
    state = _start(program)
    _sweeps(state, options)
    return state


def op_priority_propagate(program: Program, options: Options = Options()) -> State:
    state = _start(program)
    _op_priority_sweeps(state, options)
    return state


def user_priority_propagate(program: Program, options: Options = Options()) -> State:
    """Propagate dims of priority 0, then add those of each later priority and propagate again.

    A dim of a later priority is closed, and its axes are replicated.
    """
    state = _start(program)
    annotated = _annotated(state)
    for holder, sharding in annotated:
        _set_sharding_at(
            state, holder, at_first(sharding, state.program.meshes[str(sharding.mesh)])
        )
    _op_priority_sweeps(state, options)

    later = {dim.priority or 0 for _, sharding in annotated for dim in sharding.dims} - {0}
    for priority in sorted(later):
        for holder, original in annotated:
            if any(dim.priority == priority for dim in original.dims):
                current = _sharding_at(state, holder)
                assert current is not None
                _set_sharding_at(state, holder, at_priority(current, original, priority))
        _op_priority_sweeps(state, options)
    return state


# A holder of a sharding: a value, or the index of a function result.
Holder = Value | int


def _annotated(state: State) -> list[tuple[Holder, TensorSharding]]:
    """List everything that has a sharding, except values whose edge has it too."""
    holders: list[tuple[Holder, TensorSharding]] = [
        (value, sharding) for value, sharding in state.shardings.items() if edge_of(value) is None
    ]
    for index, sharding in enumerate(state.result_shardings):
        if sharding is not None:
            holders.append((index, sharding))
    return holders


def _sharding_at(state: State, holder: Holder) -> TensorSharding | None:
    return state.result_shardings[holder] if isinstance(holder, int) else state.sharding(holder)


def _set_sharding_at(state: State, holder: Holder, sharding: TensorSharding) -> None:
    if isinstance(holder, int):
        state.result_shardings[holder] = sharding
    else:
        state.set_sharding(holder, sharding)


def at_first(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Return the sharding at priority 0: without the axes of dims of a later priority."""
    waiting = [dim for dim in sharding.dims if dim.priority]
    axes = [*sharding.replicated, *(ref for dim in waiting for ref in dim.axes)]
    return dataclasses.replace(
        sharding,
        dims=tuple(
            DimSharding((), True) if dim.priority else dim.without_priority()
            for dim in sharding.dims
        ),
        replicated=tuple(sorted(axes, key=axis.mesh_order(mesh))),
    )


def at_priority(current: TensorSharding, original: TensorSharding, priority: int) -> TensorSharding:
    """Add the dims of `original` that have the priority `priority`."""
    dims = tuple(
        dim.without_priority() if dim.priority == priority else now
        for now, dim in zip(current.dims, original.dims, strict=True)
    )
    arrived = {ref for dim in original.dims if dim.priority == priority for ref in dim.axes}
    replicated = tuple(ref for ref in current.replicated if ref not in arrived)
    return dataclasses.replace(current, dims=dims, replicated=replicated)
