"""The worklist: visits ops until no sharding changes.

All ops are queued in the order of the text, region ops before the ops in their regions,
and taken from the front. An op to be visited again goes to the front, unless it is still
queued: then it keeps its place. In a conflict the first visit wins, so the order of
everything below is observable.

The reference queues an op's enclosing ops again with it; since nothing propagates through
an op with regions itself, the oracle does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .basic import Direction
from .graph import (
    BARRIER,
    EDGE,
    Op,
    Value,
    edge_from,
    edge_rule,
    edge_sources,
    edge_targets_in_regions,
)
from .rule import OpShardingRule, identity_rule
from .sharding import TensorSharding
from .state import State
from .visit import SweepOptions, visit

# The direction of propagation through an op along a factor.
DirectionThrough = Callable[[Op, int], Direction]


def any_direction(_op: Op, _factor: int) -> Direction:
    return Direction.BOTH


def propagate(
    state: State, options: SweepOptions, direction: DirectionThrough = any_direction
) -> None:
    """Run one sweep: function results, then ops until nothing changes, then results again."""
    propagate_function_results(state, options)
    Worklist(state, options, direction).run()
    propagate_function_results(state, options)


def propagate_function_results(state: State, options: SweepOptions) -> None:
    """Propagate between each returned value and its function result."""
    for index, value in enumerate(state.program.returned):
        updates = visit(
            identity_rule(value.shape),
            [state.sharding(value)],
            [state.result_shardings[index]],
            SweepOptions(options.meshes, options.strategy),
        )
        for tensor, sharding in updates:
            if tensor == 0:
                for member in [value, *state.group_members(state.holder(value))]:
                    state.set_sharding(member, sharding)
            else:
                state.result_shardings[index] = sharding


def tensors_of(op: Op) -> tuple[OpShardingRule | None, list[Value], list[Value]]:
    """Return the rule of a visit of `op`, its operands and its results.

    The operands of a data-flow edge are all its sources.
    """
    if op.name == EDGE:
        return edge_rule(op), edge_sources(op), op.results
    return op.rule, op.operands, op.results


class Worklist:
    """The queue of ops, the next one last."""

    def __init__(self, state: State, options: SweepOptions, direction: DirectionThrough) -> None:
        self.state = state
        self.options = options
        self.direction = direction
        self.queue: list[Op] = list(reversed(list(state.program.walk())))

    def run(self) -> None:
        while self.queue:
            op = self.queue.pop()
            if op.is_pure and not any(value.uses for value in op.results):
                self.erase(op)
            else:
                self.visit(op)

    def push(self, op: Op) -> None:
        if op not in self.queue:
            self.queue.append(op)

    def erase(self, op: Op) -> None:
        """Erase a dead op, and queue the definers of operands left with one use or none."""
        for value in op.operands:
            other_users = {id(use.user) for use in value.uses if use.user is not op}
            if value.owner is not None and not value.is_argument and len(other_users) <= 1:
                self.push(value.owner)
        self.state.program.erase(op)

    def visit(self, op: Op) -> None:
        rule, operands, results = tensors_of(op)
        if rule is None:
            return
        # Data-flow edges and barriers propagate sub-axes also in conservative propagation.
        is_conservative = self.options.conservative and op.name not in (EDGE, BARRIER)
        updates = visit(
            rule,
            [self.state.sharding(value) for value in operands],
            [self.state.sharding(value) for value in results],
            SweepOptions(self.options.meshes, self.options.strategy, is_conservative),
            lambda factor: self.direction_through(op, factor),
            op.is_elementwise,
        )
        for tensor, sharding in updates:
            self.update([*operands, *results][tensor], sharding, op)

    def direction_through(self, op: Op, factor: int) -> Direction:
        """Return the direction of the sweep; a barrier has its own in every sweep."""
        if op.name == BARRIER:
            return Direction[op.details.removeprefix("allowed_direction=")]
        return self.direction(op, factor)

    def update(self, value: Value, sharding: TensorSharding, visited: Op) -> None:
        """Set a new sharding and queue all ops that depend on it, except `visited`."""
        holder = self.state.holder(value)
        if holder is None:
            return
        members = [m for m in self.state.group_members(holder) if m is not holder]
        for changed in [holder, *members]:
            self.state.set_sharding(changed, sharding)
            for op in affected_ops(changed):
                if op is not visited:
                    self.push(op)


def affected_ops(value: Value) -> list[Op]:
    """List the ops to visit again when the sharding of `value` has changed, in order."""
    affected: list[Op] = []
    defining_op = None if value.is_argument else value.owner
    if defining_op is not None:
        if defining_op.name == EDGE:
            for target in edge_targets_in_regions(defining_op):
                affected += users(target)
        affected.append(defining_op)
    return affected + users(value)


def users(value: Value) -> Sequence[Op]:
    """List the ops that use `value`, or the edges it is a source of, latest use first."""
    found = []
    for use in value.uses:
        edge = edge_from(use)
        if edge is not None:
            found.append(edge)
        elif not use.user.is_terminator:
            found.append(use.user)
    return found
