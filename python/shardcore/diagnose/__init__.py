"""Finds problems in a propagated program: ``result.diagnostics()``.

====================  =======================================================================
:mod:`~.values`       values that are large and replicated, or padded; mesh axes without use
:mod:`~.annotations`  annotations without effect, and those that contradict each other
:mod:`~.ops`          ops without a rule, at which propagation stops
:mod:`~.traffic`      values that are rematerialized, or large and moved; memory that does not fit
:mod:`~.whole`        ops that every device computes as a whole
:mod:`~.states`       gradients and states of optimizers that lack an axis of their parameter
:mod:`~.roots`        the op at which an axis is lost, as the root of other warnings
:mod:`~.flow`         which dims a dim of a value is computed from
:mod:`~.findings`     warnings with what looks for an edit that helps
:mod:`~.layouts`      annotations of a value that may be better
:mod:`~.hints`        hints that name an edit, which was tried
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
from shardcore.diagnose.annotations import annotation_findings
from shardcore.diagnose.findings import Finding
from shardcore.diagnose.hints import MOST_OPS_TRIED, Hinted, with_hints
from shardcore.diagnose.ops import op_findings
from shardcore.diagnose.roots import MOST_TRIED, key, root_of
from shardcore.diagnose.states import state_findings
from shardcore.diagnose.traffic import memory_findings, traffic_findings
from shardcore.diagnose.values import value_findings
from shardcore.errors import Diagnostic, PartitionError
from shardcore.expected import expect
from shardcore.why.layouts import Layouts
from shardcore.why.trial import Trial

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost

__all__ = ["DIAGNOSTICS", "diagnostics"]

DIAGNOSTICS = {
    "does-not-fit": "the peak memory is above that of the chip",
    "axis-lost": "an op at which an axis is lost, from which other warnings follow",
    "large-replicated": "a large value is whole on every device",
    "rematerialization": "XLA gathers a whole tensor to reshard it",
    "lacks-axis": "a gradient or state lacks an axis of its parameter, and an edit mends it",
    "computed-whole": "every device gathers large operands of an op and computes all of it, or "
    "makes all of large random bits",
    "large-resharded": "a large value that ops compute is moved to another sharding",
    "output-moved": "a result is sharded otherwise than the argument of the same path",
    "no-rule": "an op has no sharding rule, and propagation stops at it",
    "contradiction": "two annotations of one tensor shard a dim over different axes",
    "no-effect": "an annotation says nothing, or what another one says already",
    "padding": "a dim that does not divide wastes a large share of a large value",
    "unused-axis": "no value is sharded over an axis of the mesh",
    "non-divisible": "the export removed axes that do not divide a dim of an input or output",
    "sub-axis": "the export removed a part of an axis from an open dim of an input or output",
}
"""The diagnostics of ``result.diagnostics()``, by code, the most important first."""


def diagnostics(
    result: Result,
    hardware: str | Hardware | None = None,
    *,
    ignore: Iterable[str] = (),
    hardware_file: str | Path | None = None,
    cost: Cost | None = None,
) -> tuple[Diagnostic, ...]:
    """Return what a person should look at; see :meth:`shardcore.Result.diagnostics`.

    ``cost`` is that of ``result`` on ``hardware``, if it is known: edits are costed as it was.
    """
    expect(result, Result)
    ignored = {ignore} if isinstance(ignore, str) else set(items(ignore, "codes"))
    unknown = ignored - DIAGNOSTICS.keys()
    if unknown:
        known = ", ".join(DIAGNOSTICS)
        raise ValueError(f"no diagnostic is called {shown(min(unknown, key=shown))}, of {known}")
    trial = None
    # What XLA does is diagnosed, whatever made the program that was costed.
    if cost is not None and cost.policy == "xla":
        trial = Trial.of_cost(cost)
    trial = trial or _trial(result, hardware, hardware_file)
    # XLA legalizes CHLO before it propagates.
    num_ops = result._legalized().num_ops
    order = {code: place for place, code in enumerate(DIAGNOSTICS) if code not in ignored}

    def kept(result: Result, trial: Trial | None) -> list[Finding]:
        found = _findings(result, trial, is_chip_given=hardware is not None)
        return [each for each in found if each.diagnostic.code in order]

    found = kept(result, trial)
    roots: list[Hinted] = []
    most = min(MOST_OPS_TRIED // max(num_ops, 1), MOST_TRIED)
    is_sought = trial is not None and most > 0 and "axis-lost" in order
    root = root_of(found, trial, kept, most) if trial and is_sought else None
    if root is not None:
        roots = [(root.product, root.diagnostic)]
        found = [each for each in found if key(each.diagnostic) not in root.follows]
    hinted = [*roots, *with_hints(found, trial, num_ops)]
    # First what does not fit into memory, then what saves most; then by code.
    hinted.sort(key=lambda each: (each[1].code != "does-not-fit", each[0], order[each[1].code]))
    return tuple(diagnostic for _, diagnostic in hinted)


def _findings(result: Result, trial: Trial | None, *, is_chip_given: bool) -> list[Finding]:
    """The findings about a propagated program."""
    layouts = Layouts(result)
    found = [
        *value_findings(result, layouts),
        *annotation_findings(result),
        *op_findings(result),
        *state_findings(result),
        *(traffic_findings(result, trial) if trial else ()),
        *(memory_findings(trial.cost, layouts) if trial and is_chip_given else ()),
        *map(Finding, result.warnings),
    ]
    # If an op has no rule, that is the reason why its result is replicated.
    stops = {each.diagnostic.value for each in found if each.diagnostic.code == "no-rule"}
    return [
        each
        for each in found
        if each.diagnostic.code != "large-replicated" or each.diagnostic.value not in stops
    ]


def _trial(
    result: Result, hardware: str | Hardware | None, hardware_file: str | Path | None
) -> Trial | None:
    """The per-device program, to be costed under other annotations; ``None`` if there is none."""
    from shardcore.costs import cost

    try:
        return Trial.of_cost(cost(result, hardware or _HARDWARE, hardware_file=hardware_file))
    except PartitionError:
        return None


_HARDWARE = "tpu-v5p"
"""The chip for the costs of edits if none is given, as in :func:`shardcore.cost`."""
