"""A result as plain data, for ``--json`` and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shardcore.costs.scopes import scope_of

if TYPE_CHECKING:
    from shardcore._core import Result, Value


def value_record(value: Value) -> dict[str, Any]:
    """``value`` as plain data.

    ``shape`` and ``local_shape`` are lists of sizes; ``bytes_per_device`` is the bytes of the local
    shape. ``op`` is the name of the defining op, ``traceback`` its call stack, innermost first, and
    ``scope`` its ``jax.named_scope``, ``decoder/layer_3``. Unknown properties (the shape of a
    token, a missing location, the op of an argument) are ``None``.
    """
    return {
        "name": value.name,
        "function": value.function,
        "op": value.op,
        "shape": None if value.shape is None else list(value.shape),
        "dtype": value.dtype,
        "sharding": None if value.sharding is None else str(value.sharding),
        "local_shape": None if value.local_shape is None else list(value.local_shape),
        "bytes_per_device": value.bytes_per_device,
        "location": value.location,
        "traceback": list(value.traceback),
        "scope": scope_of(value.name_stack)[0],
    }


def record(result: Result, ignore: Sequence[str] = ()) -> dict[str, Any]:
    """``result`` as plain data: ``values``, see :func:`value_record`; ``summary``; ``warnings``,
    each with a ``code``, a ``message`` and a ``hint``; and ``diagnostics``, except those with a
    code in ``ignore``.
    """
    return {
        "values": [value_record(value) for value in result.values()],
        "summary": result.summary(),
        "warnings": [
            {"code": warning.code, "message": warning.message, "hint": warning.hint}
            for warning in result.warnings
        ],
        "diagnostics": [each.record() for each in result.diagnostics(ignore=ignore)],
    }
