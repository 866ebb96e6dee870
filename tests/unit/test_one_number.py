"""Whatever shows a figure of a program shows the same: text, records, pages, traces, tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

pytest.importorskip("jax")

import shardcore
from shardcore import Cost, Module, Result
from shardcore.diagnose.doctor import checkup
from shardcore.mcp.costing import cost as mcp_cost
from shardcore.mcp.programs import Programs
from shardcore.report.cost_table import cost_text
from shardcore.report.page.data import page_data
from shardcore.report.trace import trace
from shardcore.units import format_bytes, format_seconds

from tests.deep import sampled
from tests.shardy.programs import registry as registry  # makes eight devices
from tests.shardy.xla.models import catalog

CHIPS = ("tpu-v5e", "tpu-v5p", "tpu-v6e", "h100")
NAMES = catalog.names()
Figures = dict[str, Any]


@cache
def completed(name: str) -> Result:
    return Module.parse(catalog.located(name), filename=f"{name}.mlir").propagate()


def figures(cost: Cost) -> Figures:
    """The figures of a cost, by the names that views below use."""
    return {
        "step": cost.step_seconds,
        "lower": cost.step_seconds_lower,
        "low": cost.confidence.low,
        "upper": cost.step_seconds_upper,
        "compute": cost.compute_seconds,
        "comm": cost.comm_seconds,
        "exposed": cost.exposed_seconds,
        "serial": cost.serial_seconds,
        "flops": cost.flops,
        "moved": cost.hbm_bytes,
        "arguments": cost.argument_bytes,
        "outputs": cost.output_bytes,
        "peak": cost.peak_bytes,
        "sent": cost.rows.sent_bytes,
        "runs": cost.rows.num_collectives,
        "gathered": sum(row.total_bytes for row in cost.collectives),
    }


def of_record(result: Result, cost: Cost) -> Iterator[Figures]:
    record = cost.record()
    yield {
        "step": record["step_seconds"],
        "lower": record["step_seconds_lower"],
        "upper": record["step_seconds_upper"],
        "serial": record["serial_seconds"],
        "peak": record["peak_bytes"],
    }
    for table in ("by_kind", "by_line", "by_site"):
        rows = list(record[table].values() if table == "by_kind" else record[table])
        yield {
            "runs": sum(row["count"] for row in rows),
            "gathered": sum(row["bytes"] for row in rows),
            "sent": sum(row["wire_bytes"] for row in rows),
            "comm": sum(row["seconds"] for row in rows),
            "exposed": sum(row["exposed_seconds"] for row in rows),
        }
    rows = record["collectives"]
    yield {
        "runs": sum(row["count"] for row in rows),
        "sent": sum(row["total_wire_bytes"] for row in rows),
        "comm": sum(row["total_seconds"] for row in rows),
    }
    yield {
        "flops": sum(row["flops"] for row in record["ops"]),
        "moved": sum(row["bytes"] for row in record["ops"]),
        "compute": sum(row["seconds"] for row in record["ops"]),
        "step": sum(row["step_seconds"] for row in record["ops"]) + cost.exposed_seconds,
    }
    yield {
        "compute": sum(row["compute_seconds"] for row in record["by_scope"]),
        "comm": sum(row["comm_seconds"] for row in record["by_scope"]),
        "step": sum(row["step_seconds"] for row in record["by_scope"]),
        "runs": sum(row["collectives"] for row in record["by_scope"]),
        "sent": sum(row["wire_bytes"] for row in record["by_scope"]),
    }
    yield {"peak": sum(row["bytes"] for row in record["live_at_peak"])}


NUMBER = r"([\d.]+ ?\w*)"


def found(pattern: str, text: str, *names: str) -> Figures:
    """The texts of figures, which ``NUMBER`` stands for in ``pattern``."""
    match = re.search(pattern.replace("NUMBER", NUMBER), text)
    assert match, (pattern, text)
    return dict(zip(names, match.groups(), strict=True))


def of_text(result: Result, cost: Cost) -> Iterator[Figures]:
    text = cost_text(cost, top=0)
    yield found("peak NUMBER: ", text, "peak")
    yield found("step +NUMBER, at least NUMBER\n", text, "step", "lower")
    yield found("90% of steps NUMBER to NUMBER ", text, "low", "upper")
    yield found("compute +NUMBER at the peak", text, "compute")
    yield found("collectives +NUMBER at the peak, NUMBER exposed", text, "comm", "exposed")
    yield found("arguments +NUMBER\n", text, "arguments")
    yield found("peak memory +NUMBER", text, "peak")


def of_page(result: Result, cost: Cost) -> Iterator[Figures]:
    page = page_data(result, cost.hardware, None, 0, {})["cost"]
    names = ("step", "low", "upper", "exposed", "compute", "comm", "flops")
    yield {name: page[name] for name in names}
    yield {"arguments": page["argument_bytes"], "outputs": page["output_bytes"]}
    rows = page["collectives"]
    yield {
        "peak": page["peak_bytes"],
        "runs": sum(row["count"] for row in rows),
        "sent": sum(row["sent"] for row in rows),
        "comm": sum(row["seconds"] for row in rows),
    }
    yield {"step": sum(page["steps"]["time"]) * 1e-12, "peak": max(page["steps"]["live"])}
    yield {"step": sum(row["seconds"] for row in page["scopes"])}
    memory = page["memory"]
    for chart in memory["charts"]:
        yield {"peak": sum(sizes[memory["peak"]] for sizes in chart["bytes"])}
    yield {"step": memory["starts"][-1] * 1e-12}
    yield {"peak": sum(row[4] for row in page["live"])} if page["num_live"] <= 200 else {}


def of_trace(result: Result, cost: Cost) -> Iterator[Figures]:
    events = trace(cost)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    yield {
        "step": sum(event["dur"] for event in spans) * 1e-6,
        "sent": sum(event["args"].get("sent bytes", 0) for event in spans),
        "comm": sum(event["args"].get("seconds at the peak", 0.0) for event in spans),
        "peak": max(event["args"]["bytes"] for event in events if event["ph"] == "C"),
    }


def of_memory(result: Result, cost: Cost) -> Iterator[Figures]:
    timeline = cost.memory_timeline()
    at_peak = [timeline.peak]
    yield {"peak": timeline.points[timeline.peak].bytes}
    yield {"peak": sum(row.value.bytes for row in timeline.live(timeline.peak))}
    for group in ("scope", "line", "role", "value"):
        yield {"peak": sum(row[0] for row in timeline.by(group, at_peak).values())}
    yield {"peak": cost.memory.peak_memory_in_bytes + cost.hole_bytes}
    live = {(row.name, row.bytes) for row in cost.live_at_peak}
    assert live == {(row.value.name, row.value.bytes) for row in timeline.live(timeline.peak)}
    # Where arguments and outputs alone are the peak, it is at any op.
    if cost.peak_bytes > cost.argument_bytes + cost.output_bytes - cost.alias_bytes:
        assert cost.peak_op
        assert timeline.points[timeline.peak].value == cost.peak_op.value


def of_session(result: Result, cost: Cost) -> Iterator[Figures]:
    [row] = result._given().session().evaluate([{}], cost.hardware)
    yield {
        "step": row.step_seconds,
        "lower": row.step_seconds_lower,
        "upper": row.step_seconds_upper,
        "serial": row.serial_seconds,
        "compute": row.compute_seconds,
        "comm": row.comm_seconds,
        "sent": row.comm_bytes,
        "runs": row.collectives,
        "arguments": row.argument_bytes,
        "outputs": row.output_bytes,
        "peak": row.peak_bytes,
    }


def of_partition(result: Result, cost: Cost) -> Iterator[Figures]:
    rows = result.partition(cost.policy).collectives
    plain = result.cost(cost.hardware, policy=cost.policy, compiler="none").collectives
    assert {
        "runs": sum(row.count for row in rows),
        "gathered": sum(row.total_bytes for row in rows),
    } == {
        # Compilers for chips change collectives after the partitioner.
        "runs": sum(row.count for row in plain),
        "gathered": sum(row.total_bytes for row in plain),
    }
    whys = [row.why.collective for row in cost.collectives]
    yield {"runs": sum(row.count for row in whys), "comm": sum(row.total_seconds for row in whys)}


def of_doctor(result: Result, cost: Cost) -> Iterator[Figures]:
    told = checkup(result, cost.hardware)["cost"]
    yield {
        "step": told["step_seconds"],
        "lower": told["step_seconds_lower"],
        "upper": told["step_seconds_upper"],
        "peak": told["peak_bytes"],
        "runs": told["collectives"],
        "sent": told["wire_bytes"],
    }


def of_diff(result: Result, cost: Cost) -> Iterator[Figures]:
    totals = {row.name: row for row in shardcore.compare(cost, cost).totals}
    for at in ("before", "after"):
        yield {
            "step": getattr(totals["step_seconds"], at),
            "lower": getattr(totals["step_seconds_lower"], at),
            "compute": getattr(totals["compute_seconds"], at),
            "comm": getattr(totals["comm_seconds"], at),
            "peak": getattr(totals["peak_bytes"], at),
        }


def of_check(result: Result, cost: Cost) -> Iterator[Figures]:
    limits = {"hardware": cost.hardware.name, "memory": {"peak": "1B", "arguments": "1B"}}
    failures = result.check(limits).failures
    told = {each.path[-1]: each.actual[0] for each in failures}
    yield found("NUMBER at ", told["peak"], "peak")
    yield {"arguments": told["arguments"]}


def of_mcp(result: Result, cost: Cost) -> Iterator[Figures]:
    programs = Programs(cost.hardware.name, 60.0)
    programs.add("step.mlir", result._given().session(), None)
    text = str(mcp_cost(programs))
    yield found("step NUMBER, 9 of 10 between NUMBER and NUMBER ", text, "step", "low", "upper")
    yield found("at least NUMBER; compute NUMBER at the peak", text, "lower", "compute")
    yield found("collectives NUMBER, NUMBER of it exposed", text, "comm", "exposed")
    yield found("peak NUMBER of .*arguments NUMBER; NUMBER sent", text, "peak", "arguments", "sent")


VIEWS: dict[str, Callable[[Result, Cost], Iterator[Figures]]] = {
    name.removeprefix("of_"): view
    for name, view in list(globals().items())
    if name.startswith("of_")
}


def same(name: str, told: Any, figure: Any) -> bool:
    if isinstance(told, str):
        is_bytes = name in ("peak", "arguments", "outputs", "sent")
        return bool(told == (format_bytes if is_bytes else format_seconds)(figure))
    return bool(told == pytest.approx(figure, rel=1e-6))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", sampled(NAMES, 9))
def test_views_show_the_same(name: str, view: str) -> None:
    result = completed(name)
    chip = CHIPS[NAMES.index(name) % len(CHIPS)]
    cost = result.cost(chip)
    expected = figures(cost)
    for told in VIEWS[view](result, cost):
        for figure, value in told.items():
            assert same(figure, value, expected[figure]), (figure, value, expected[figure])


@pytest.mark.parametrize("name", sampled(NAMES, 11))
def test_a_plan_has_the_figures_of_its_result(name: str) -> None:
    given = completed(name)._given()
    plan = shardcore.plan(given, "tpu-v5e", seconds=1.0)
    expected = figures(plan.result.cost("tpu-v5e"))
    assert figures(plan.cost) == expected
    text = str(plan)
    told = found("step +NUMBER, at least NUMBER\n", text, "step", "lower")
    told |= found(
        "at the peak +NUMBER: NUMBER of ops and NUMBER of ", text, "serial", "compute", "comm"
    )
    told |= found("peak memory +NUMBER of ", text, "peak")
    for figure, value in told.items():
        assert same(figure, value, expected[figure]), (figure, value)
    # What the program came with is one of the alternatives, as its own cost has it.
    cost = given.session().cost("tpu-v5e", keep_ports=True)
    for other in plan.alternatives:
        if other.kind == "given" and other.figures.error is None:
            assert other.figures.step_seconds == pytest.approx(cost.step_seconds)
            assert other.figures.peak_bytes == cost.peak_bytes


@pytest.mark.parametrize("name", sampled(NAMES, 9))
def test_warnings_have_the_sizes_of_the_table(name: str) -> None:
    result = completed(name)
    cost = result.cost("tpu-v5e")
    names = {port.label or port.name: port.name for port in (*result.arguments(),)}
    live = {row.name: row.bytes for row in cost.live_at_peak}
    for each in result.diagnostics("tpu-v5e"):
        if each.code == "large-replicated" and each.value is not None:
            size = live.get(names.get(each.value, each.value))
            assert size is None or f"all {format_bytes(size)}" in each.message
