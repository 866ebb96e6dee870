"""The error when nothing fits: the least memory that would suffice, and its largest values."""

from __future__ import annotations

from collections.abc import Sequence

from shardcore._core import Port
from shardcore.costs import Cost, LiveValue
from shardcore.errors import Diagnostic, PlanError
from shardcore.units import format_bytes, format_bytes_apart, format_bytes_up

_SHOWN = 3
"""How many values the error lists."""


def refusal(
    cost: Cost,
    limit: float,
    arguments: int,
    ports: Sequence[Port],
    more: str,
) -> PlanError:
    """Return the error that nothing fits into ``limit`` bytes.

    Args:
        cost: the cost of the plan with the least memory.
        limit: bytes of memory of a device.
        arguments: bytes of the arguments alone, in every plan.
        ports: the arguments.
        more: what the hint suggests to increase.
    """
    least = format_bytes_up(cost.peak_bytes)
    if arguments > limit:
        taken, has = format_bytes_apart(arguments, limit)
        message = (
            f"the arguments alone take {taken} of each device however they are sharded, and it has "
            f"{has}: a plan was found for {least}"
        )
    else:
        _, has = format_bytes_apart(cost.peak_bytes, limit)
        held = format_bytes(cost.argument_bytes)
        message = (
            f"no plan that was found takes less than {least} of each device, {held} of them for "
            f"arguments, and it has {has}"
        )
    labels = {port.name: port.label or port.name for port in ports}
    largest = sorted(cost.live_at_peak, key=lambda each: -each.bytes)[:_SHOWN]
    listed = ", ".join(_listed(each, labels.get(each.name)) for each in largest)
    hint = f"the largest values: {listed}; give more {more}"
    return PlanError(Diagnostic("does-not-fit", message, hint))


def _listed(value: LiveValue, label: str | None) -> str:
    """A value with its bytes, and the op and location that compute it."""
    found = f"{label or value.name} {format_bytes(value.bytes)}"
    if value.op is None:
        return found
    made = value.op.split(".")[-1]
    return f"{found} ({made} at {value.location})" if value.location else f"{found} ({made})"
