"""Values that are resharded badly or are large, and programs that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from shardcore._core import TensorSharding
from shardcore.diagnose.findings import Finding, first_of, removal_of, starts_of
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.diagnose.whole import computed_whole, random_bits
from shardcore.labels import named_together, sharding_text
from shardcore.units import format_bytes
from shardcore.why.layouts import Layouts, best

if TYPE_CHECKING:
    from shardcore._core import Op, Result
    from shardcore.costs import CollectiveCost, Cost
    from shardcore.why.collective import Side
    from shardcore.why.remedy import Edit, Remedy
    from shardcore.why.trial import Trial

_MOVES = frozenset({"all_gather", "all_to_all", "collective_permute"})
"""The kinds of collectives that reshard a value."""

_REMATERIALIZED_BYTES = 1 << 20
"""Smaller tensors are not reported as rematerialized, although XLA warns of them too."""

_FEW_STEPS = 4
"""Within this many ops, a value still counts as its argument, cast or transposed."""


def traffic_findings(result: Result, trial: Trial) -> list[Finding]:
    """Return findings about collectives, and ops of which every device computes all."""
    rows = trial.cost.collectives
    return [
        *first_of(list(_rematerialized(result, rows))),
        *first_of([*computed_whole(trial.local, rows), *random_bits(result)]),
        *first_of(list(_resharded(result, rows))),
    ]


def _rematerialized(result: Result, collectives: tuple[CollectiveCost, ...]) -> Iterator[Finding]:
    """Findings about tensors that XLA gathers fully in order to reshard them, the largest first."""
    # The collectives of one reshard gather one dim each; the last one has the whole tensor.
    whole: dict[tuple[object, ...], CollectiveCost] = {}
    starts: dict[tuple[object, ...], str | None] = {}
    for row in collectives:
        if not row.rematerializes:
            continue
        key: tuple[object, ...] = (row.moved, row.cause_op, row.cause, row.cause_location)
        starts.setdefault(key, row.operand_sharding)
        if key not in whole or row.bytes > whole[key].bytes:
            whole[key] = row
    found = [(key, row) for key, row in whole.items() if row.bytes >= _REMATERIALIZED_BYTES]
    for key, row in sorted(found, key=lambda entry: -entry[1].total_bytes):
        value = _moved(row) or "a value"
        cause = (row.cause or "an op").removeprefix("stablehlo.")
        times = f" {row.count} times" if row.count > 1 else ""
        start = starts[key]
        sharding = "" if start is None else f", which is sharded as {sharding_text(start)}"
        size = format_bytes(row.bytes)
        message = (
            f"XLA will rematerialize {value}{sharding}: every device gathers all {size}{times} and "
            f"keeps its part for {cause}, since there is no direct way between the two shardings"
        )
        if row.kind == "all_reduce":
            value, device = _on_one_device(result, row)
            message = (
                f"XLA will send {value}, which {device} alone has, to every device: all {size}"
                f"{times} for {cause}, by an all-reduce with zeros of the others"
            )
        hint = "ask which annotations disagree: shardcore why FILE --collectives 5"
        place = row.cause_location or row.location
        each = warning("rematerialization", message, hint, value, place)
        yield Finding(each, removal_of(row), starts=starts_of(row))


def _on_one_device(result: Result, row: CollectiveCost) -> tuple[str, str]:
    """The value that is sent from a single device, and that device."""
    meshes = result.module.meshes
    for side in row.why.sides:
        mesh = TensorSharding.parse(side.sharding, meshes).mesh if side.sharding else None
        if mesh is not None and mesh.is_maximal and mesh.device_ids:
            return side.value, f"device {mesh.device_ids[0]}"
    return "a value", "a single device"


def _moved(row: CollectiveCost) -> str | None:
    """The name of the value that is moved."""
    sides = [side for side in row.why.sides if side.number == row.moved]
    return sides[0].value if sides else None


def _resharded(result: Result, collectives: tuple[CollectiveCost, ...]) -> Iterator[Finding]:
    """Findings about large computed values that are resharded, the largest first."""
    large = [
        row
        for row in collectives
        if row.kind in _MOVES and row.bytes >= LARGE_BYTES and not row.rematerializes
    ]
    ops = result._given().ops() if large else []
    makers = {made.qualified_name: op for op in ops for made in op.results}
    seen: set[tuple[object, ...]] = set()
    for row in sorted(large, key=lambda row: -row.total_bytes):
        place = row.cause_location or row.location
        # Later steps of a reshard send the same value.
        keys = {(row.cause, place, row.axes), (row.cause_op, row.moved or row.op)}
        if keys & seen:
            continue
        seen |= keys
        names = [source.label or source.name for source in row.why.annotations]
        side = _computed(row, makers)
        if len(names) < 2 or side is None:
            continue
        axes = ", ".join(f'"{axis}"' for axis in row.axes)
        cause = (row.cause or "an op").removeprefix("stablehlo.")
        value = side.value
        times = f" {row.count} times" if row.count > 1 else ""
        message = (
            f"{value} is resharded{times}, {format_bytes(row.bytes)} on every device: "
            f"{row.kind} along {axes} for {cause}, because {named_together(names)} disagree"
        )
        hint = "ask which annotations disagree: shardcore why FILE --collectives 5"
        each = warning("large-resharded", message, hint, value, place)
        yield Finding(each, removal_of(row), starts=starts_of(row))


def _computed(row: CollectiveCost, makers: dict[str, Op]) -> Side | None:
    """The moved value, unless it is an argument, cast or transposed, such as FSDP weights."""
    for side in row.why.sides:
        if side.number == row.moved and side.origin is not None:
            is_far = len(side.origin.chain) >= _FEW_STEPS or side.source.kind == "constraint"
            return side if is_far and not _is_argument(side.value, makers) else None
    return None


def _is_argument(value: str, makers: dict[str, Op]) -> bool:
    """Whether ``value`` is computed from an argument by a few ops with one operand each."""
    for _ in range(_FEW_STEPS):
        op = makers.get(value)
        if op is None:
            return True
        tensors = [operand for operand in op.operands if operand.shape]
        if len(tensors) != 1:
            return False
        value = tensors[0].qualified_name
    return False


def memory_findings(cost: Cost, layouts: Layouts) -> Iterator[Finding]:
    """Yield a finding if the program does not fit into the chip's memory."""
    if cost.fits:
        return
    size, chip = cost.hardware.hbm_bytes, cost.hardware.name
    at = cost.peak_op
    largest = sorted(cost.live_at_peak, key=lambda row: -row.bytes)[:3]
    names = ", ".join(f"{row.name} ({format_bytes(row.bytes)})" for row in largest)
    message = (
        f"the peak of {format_bytes(cost.peak_bytes)} does not fit {chip}, "
        f"which has {format_bytes(size)}"
    )
    hint = f"shard what is largest at the peak: {names}; or use more devices"
    place = None if at is None else at.location
    found = warning("does-not-fit", message, hint, largest[0].name if largest else None, place)
    rows = [(row.name, row.shape) for row in largest]
    starts = tuple((row.name, layouts.axes) for row in largest)
    yield Finding(found, partial(_smaller, layouts, rows), starts=starts)


def _smaller(
    layouts: Layouts,
    rows: Iterable[tuple[str, tuple[int | None, ...]]],
    trial: Trial,
    most: int,
) -> Remedy | None:
    """The best annotation among those of the largest values at the peak."""
    edits: list[Edit] = []
    columns = [[(name, each) for each in layouts.of(shape, None)] for name, shape in rows]
    for each in zip_longest(*columns):
        edits += [edit for edit in each if edit is not None]
    return best(edits, trial, most)
