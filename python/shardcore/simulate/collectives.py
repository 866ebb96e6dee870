"""Collectives between all devices of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shardcore.simulate.groups import Groups, pairs_of
from shardcore.simulate.reduce import Reducer
from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, Value, spread


def _each_operand(site: Site, compute: Callable[[Run, Array, int], Array]) -> Kernel:
    """The kernel of a collective that handles each operand on its own."""

    def kernel(run: Run, *values: Value) -> Value:
        operands, _ = site.split(values)
        found = [compute(run, operand, at) for at, operand in enumerate(operands)]
        return found[0] if len(found) == 1 else found

    return kernel


def _by_groups(
    run: Run,
    groups: Groups,
    operand: Array,
    result: tuple[int, ...],
    compute: Callable[[Array], Array],
) -> Array:
    """Apply ``compute`` to the rows of each group; it returns one row for all devices of the group,
    or one row for each.

    If all devices form one group and there is one row, the result is uniform.
    """
    rows = groups.rows(run)
    operand = spread(operand, len(run.devices))
    if len(rows) == 1 and len(rows[0]) == len(run.devices):
        found = compute(operand[rows[0]])
        if len(found) == 1:
            return found
    # A device in no group gets zeros.
    whole = np.zeros((len(run.devices), *result), operand.dtype)
    for group in rows:
        whole[group] = compute(operand[group])
    return whole


@op("stablehlo.all_gather")
def all_gather(site: Site) -> Kernel:
    """Each device gets the operands of all devices of its group, concatenated along a dim."""
    dim = site.integer("all_gather_dim")
    groups = Groups.of(site, across_both=True)

    def compute(run: Run, operand: Array, at: int) -> Array:
        joined = lambda rows: np.concatenate(list(rows), axis=dim)[None]  # noqa: E731
        return _by_groups(run, groups, operand, site.results[at].shape, joined)

    return _each_operand(site, compute)


def _reduced(run: Run, reducer: Reducer, operand: Array, captured: dict[int, Value]) -> Array:
    """The rows of a group, reduced in the group's order, as one row."""
    stacked = np.moveaxis(operand, 0, -1)[None]
    return reducer.reduce(run, [stacked], captured)[0]


@op("stablehlo.all_reduce", "stablehlo.cross-replica-sum")
def all_reduce(site: Site) -> Kernel:
    """Each device gets the operands of its group, reduced by a function."""
    groups = Groups.of(site, across_both=True)
    reducer = Reducer(site, site.bodies[0]) if site.bodies else None

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        found = []
        for at, operand in enumerate(operands):

            def combine(rows: Array) -> Array:
                if reducer is None:
                    return rows.sum(axis=0, dtype=rows.dtype, keepdims=True)
                return _reduced(run, reducer, rows, captured)

            found.append(_by_groups(run, groups, operand, site.results[at].shape, combine))
        return found[0] if len(found) == 1 else found

    return kernel


@op("stablehlo.reduce_scatter")
def reduce_scatter(site: Site) -> Kernel:
    """Each device gets its slice, along a dim, of the operands of its group, reduced."""
    dim = site.integer("scatter_dimension")
    groups = Groups.of(site, across_both=True)
    [body] = site.bodies
    reducer = Reducer(site, body)

    def kernel(run: Run, *values: Value) -> Value:
        [operand], captured = site.split(values)

        def combine(rows: Array) -> Array:
            whole = _reduced(run, reducer, rows, captured)[0]
            return np.stack(np.split(whole, len(rows), axis=dim))

        return _by_groups(run, groups, operand, site.results[0].shape, combine)

    return kernel


@op("stablehlo.all_to_all")
def all_to_all(site: Site) -> Kernel:
    """Each device gets its slice along one dim of each operand of its group, concatenated along
    another dim."""
    split, concat = site.integer("split_dimension"), site.integer("concat_dimension")
    groups = Groups.of(site, across_both=False)

    def compute(run: Run, operand: Array, at: int) -> Array:
        def exchange(rows: Array) -> Array:
            parts = [np.split(row, len(rows), axis=split) for row in rows]
            received = zip(*parts, strict=True)
            return np.stack([np.concatenate(own, axis=concat) for own in received])

        return _by_groups(run, groups, operand, site.results[at].shape, exchange)

    return _each_operand(site, compute)


@op("stablehlo.collective_broadcast")
def collective_broadcast(site: Site) -> Kernel:
    """Each device gets the operand of the first of its group; one in no group gets zeros."""
    groups = Groups.of(site, across_both=False)

    def compute(run: Run, operand: Array, at: int) -> Array:
        return _by_groups(run, groups, operand, site.results[at].shape, lambda rows: rows[:1])

    return _each_operand(site, compute)


@op("stablehlo.collective_permute")
def collective_permute(site: Site) -> Kernel:
    """Each device gets the operand of its source; one without a source gets zeros."""
    groups = Groups.of(site, across_both=False)

    def compute(run: Run, operand: Array, at: int) -> Array:
        row = {int(device): index for index, device in enumerate(run.devices)}
        operand = spread(operand, len(run.devices))
        found = np.zeros_like(operand)
        for source, target in pairs_of(site, run.grid):
            here = [device for device in (source, target) if device in row]
            missing = [device for device in (source, target) if device not in row]
            if here and missing:
                groups.refuse(run, missing, here)
            if here:
                found[row[target]] = operand[row[source]]
        return found

    return _each_operand(site, compute)


def _numbers(run: Run, numbers: Sequence[int] | Array) -> Array:
    """An id for each device; one row if all ids are equal."""
    found = np.asarray(numbers, np.uint32)
    return found[:1] if (found == found[0]).all() else found


@op("stablehlo.partition_id")
def partition_id(site: Site) -> Kernel:
    """Which partition a device is."""
    return lambda run: _numbers(run, run.devices % run.grid.partitions)


@op("stablehlo.replica_id")
def replica_id(site: Site) -> Kernel:
    """Which replica a device is."""
    return lambda run: _numbers(run, run.devices // run.grid.partitions)


@op(
    "stablehlo.send",
    "stablehlo.recv",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.async_start",
    "stablehlo.async_done",
)
def transfer(site: Site) -> Kernel:
    """Refused: the simulator has no host, and runs no ops asynchronously."""
    raise site.unsupported(f"{site.name} cannot be simulated: it is about hosts and time")
