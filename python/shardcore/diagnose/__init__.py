"""What a person should look at in a completed program: ``result.diagnostics()``.

====================  =======================================================================
:mod:`~.values`       values that are large and replicated, or padded; mesh axes without use
:mod:`~.annotations`  annotations without effect, and those that contradict each other
:mod:`~.ops`          ops without a rule, at which propagation stops
:mod:`~.traffic`      values that are rematerialized, or large and moved; memory that does not fit
:mod:`~.whole`        ops that every device computes as a whole
:mod:`~.unannotated`  what to say of a program in which nothing is annotated
:mod:`~.places`       places in the user's source
====================  =======================================================================

Source: the questions that users of sharded programs ask; nothing of it is in Shardy.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shardcore._core import Result
from shardcore.bounded import items, shown
from shardcore.diagnose.annotations import annotation_diagnostics
from shardcore.diagnose.ops import op_diagnostics
from shardcore.diagnose.traffic import traffic_diagnostics
from shardcore.diagnose.values import value_diagnostics
from shardcore.errors import Diagnostic
from shardcore.expected import expect

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

__all__ = ["DIAGNOSTICS", "diagnostics"]

DIAGNOSTICS = {
    "does-not-fit": "the peak memory is above that of the chip",
    "large-replicated": "a large value is whole on every device",
    "rematerialization": "XLA gathers a whole tensor to reshard it",
    "computed-whole": "every device gathers large operands of an op and computes all of it",
    "large-resharded": "a large value that ops compute is moved to another sharding",
    "no-rule": "an op has no sharding rule, and propagation stops at it",
    "contradiction": "two annotations of one tensor shard a dim over different axes",
    "no-effect": "an annotation says nothing, or what another one says already",
    "padding": "a dim that does not divide wastes a large share of a large value",
    "unused-axis": "no value is sharded over an axis of the mesh",
    "non-divisible": "the export removed axes that do not divide a dim of an input or output",
    "sub-axis": "the export removed a part of an axis from an open dim of an input or output",
}
"""What ``result.diagnostics()`` finds, by code, what matters most first."""


def diagnostics(
    result: Result,
    hardware: str | Hardware | None = None,
    *,
    ignore: Iterable[str] = (),
    hardware_file: str | Path | None = None,
) -> tuple[Diagnostic, ...]:
    """Return what a person should look at; see :meth:`shardcore.Result.diagnostics`."""
    expect(result, Result)
    ignored = {ignore} if isinstance(ignore, str) else set(items(ignore, "codes"))
    unknown = ignored - DIAGNOSTICS.keys()
    if unknown:
        known = ", ".join(DIAGNOSTICS)
        raise ValueError(f"no diagnostic is called {shown(min(unknown, key=shown))}, of {known}")
    found = [
        *value_diagnostics(result),
        *annotation_diagnostics(result),
        *op_diagnostics(result),
        *traffic_diagnostics(result, hardware, hardware_file),
        *result.warnings,
    ]
    # An op without a rule is the reason why its result is replicated.
    stops = {each.value for each in found if each.code == "no-rule"}
    found = [each for each in found if each.code != "large-replicated" or each.value not in stops]
    order = {code: place for place, code in enumerate(DIAGNOSTICS)}
    kept = [each for each in found if each.code not in ignored]
    return tuple(sorted(kept, key=lambda each: order[each.code]))
