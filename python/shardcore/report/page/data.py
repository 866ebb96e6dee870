"""What is in a page, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardcore.diagnose import diagnostics
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.report.page.changes import Before, costs_record
from shardcore.report.page.costs import cost_record
from shardcore.report.page.drawing import frames, graph_record
from shardcore.report.page.folded import Values, ports
from shardcore.report.page.source_text import listing, sources
from shardcore.report.page.string_tables import Tables
from shardcore.report.page.whys import Whys

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost

VERSION = 2
"""The version of the data format."""

LARGE = 200_000
"""For a program with more ops, only the first :data:`MOST_VALUES` values are listed, and what is
made op by op is left out, so that the page takes about as long as the cost."""
MOST_VALUES = 20_000
_TOO_LARGE = f"it has more than {LARGE:,} ops; shardcore graph FILE -o out.svg draws it"


def page_data(
    result: Result,
    hardware: str | Hardware | None,
    against: Result | None,
    edits: int,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return the data of the page of ``result``.

    Args:
        result: the result to show.
        hardware: the chip for times.
        against: a result to compare with.
        edits: for how many collectives edits are searched.
        options: other options of :meth:`shardcore.Result.cost`.
    """
    tables = Tables()
    whys = Whys(result, tables)
    before = None if against is None else Before(against)
    given_arguments, given_results = result._annotated()
    inputs = result.arguments()
    arguments = ports(inputs, given_arguments, tables, whys, before, are_results=False)
    results = ports(result.results(), given_results, tables, whys, before, are_results=True)
    is_large = result.module.num_ops > LARGE
    values = Values(result, tables, whys, before, MOST_VALUES if is_large else None)
    if is_large:
        whys.forget()
    cost, reason = _cost(result, hardware, options)
    chip = hardware if cost is None or hardware is None else cost.hardware
    diagnosed = diagnostics(result, chip, cost=cost)
    remedies = [each.remedy for each in diagnosed if each.remedy is not None]
    record = {
        "version": VERSION,
        "title": result.module.filename,
        "summary": result.summary(),
        "meshes": [
            [name, [[axis.name, axis.size] for axis in mesh.axes]]
            for name, mesh in result.module.meshes.items()
        ],
        "arguments": arguments,
        "results": results,
        "values": values.rows,
        "left_out": values.left_out,
        "cost": None
        if cost is None
        else cost_record(
            cost, tables, whys, values.of_entry(), edits, remedies, inputs, is_large=is_large
        ),
        "no_cost": reason,
        "diagnostics": [_diagnostic(each, tables) for each in diagnosed],
        "graph": {"reason": _TOO_LARGE} if is_large else graph_record(result, tables),
        "frames": {"steps": [], "left_out": 0} if is_large else frames(result, tables),
        "changes": None if against is None else _changes(against, cost, hardware, options),
    }
    files = sources(result.module, tables)
    has_text = not is_large and not any(file["is_read"] for file in files)
    return {
        **record,
        "files": files,
        "listing": listing(result.module, values.entry, values.row_of) if has_text else None,
        "links": whys.record(),
        "has_all_whys": whys.is_complete,
        **tables.record(),
    }


def _cost(
    result: Result, hardware: str | Hardware | None, options: dict[str, Any]
) -> tuple[Cost | None, str | None]:
    """The cost of ``result``, or the reason why there is none."""
    try:
        cost = result.cost(hardware, **options)
    except ShardcoreError as error:
        if error.code != "unpartitionable":
            raise
        return None, error.message
    # Finding the peak takes most memory; before the lists of ops that diagnostics make.
    _ = cost.peak_bytes
    return cost, None


def _changes(
    against: Result,
    cost: Cost | None,
    hardware: str | Hardware | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    before, _ = _cost(against, hardware, options)
    title = {"title": against.module.filename}
    return title if before is None or cost is None else {**title, **costs_record(before, cost)}


def _diagnostic(found: Diagnostic, tables: Tables) -> dict[str, Any]:
    row = found.record()
    return {**row, "place": tables.place(row.pop("location"))}
