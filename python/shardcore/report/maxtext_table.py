"""Tables of the training step of a MaxText configuration and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.bounded import shown
from shardcore.report.console import paragraph, table
from shardcore.report.fits import fit_text
from shardcore.report.host_table import host_lines
from shardcore.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.maxtext.step import Step
    from shardcore.report.console import Part


def maxtext_parts(step: Step, cost: Cost) -> list[Part]:
    """The parts of the report: the cost, the step, and what is not modelled."""
    parts = [
        paragraph(_answer(step, cost)),
        paragraph("\nthe step", is_title=True),
        table(("what", "value"), _rows(step), wrapped=("value",)),
    ]
    if cost.collectives:
        parts += [paragraph("\ncollectives", is_title=True), _collectives(cost)]
    if step.unmodelled:
        parts += [
            paragraph("\nwould change the step, and is not modelled", is_title=True),
            table(("key", "value"), ((key, shown(one)) for key, one in step.unmodelled.items())),
        ]
    if step.overruled:
        text = (
            f"\n{step.run.model.name} has values of its own, as in MaxText; not those of the file: "
        )
        parts.append(paragraph(text + ", ".join(step.overruled)))
    return parts


def _answer(step: Step, cost: Cost) -> str:
    low, high = map(format_seconds, (cost.confidence.low, cost.confidence.high))
    use = cost.usage
    return "\n".join(
        [
            f"step {format_seconds(cost.step_seconds)}, 90% of steps {low} to {high} "
            f"({cost.confidence})",
            fit_text(cost.peak_bytes, cost.hardware.name, cost.hardware.hbm_bytes),
            f"MFU {use.mfu:.1%}, {step.tokens_per_second(cost):.4g} tokens/s and chip, collectives "
            f"{format_seconds(cost.exposed_seconds)} exposed",
            *(line.strip() for line in host_lines(cost)),
        ]
    )


def _collectives(cost: Cost) -> Part:
    """The sums over collectives of the same kind and axes, the longest first."""
    sums: dict[tuple[str, str], list[float]] = {}
    for site, found in cost.by_site().items():
        row = sums.setdefault((site.kind, ",".join(site.axes)), [0, 0, 0, 0])
        figures = (found.count, found.wire_bytes, found.seconds, found.exposed_seconds)
        row[:] = (a + b for a, b in zip(row, figures, strict=True))
    rows = (
        (
            *key,
            str(int(count)),
            format_bytes(int(sent)),
            format_seconds(seconds),
            format_seconds(exposed),
        )
        for key, (count, sent, seconds, exposed) in sorted(sums.items(), key=lambda one: -one[1][2])
        if seconds > 0
    )
    return table(("kind", "axes", ">count", ">sent", ">time", ">exposed"), rows)


def _rows(step: Step) -> list[tuple[str, str]]:
    run, chips = step.run, step.chips
    mesh = ", ".join(f"{axis}={size}" for axis, size in run.sizes.items())
    batch = f"{run.batch} sequences of {run.time} tokens"
    slices = f" in {chips.slices} slices" if chips.slices > 1 else ""
    torus = f", {chips.topology}" if chips.topology else ""
    parts = f", in {run.microbatches} parts" if run.microbatches > 1 else ""
    kept = "everything"
    if run.remat is not None:
        names = ["products"] * run.remat.products + list(run.remat.saved)
        names += [f"{name} on the host" for name in run.remat.offloaded]
        kept = ", ".join(names) or "what layers start with"
    return [
        ("model", f"{run.model.name}, {run.model.family}"),
        ("parameters", f"{format_count(run.model.parameters)} in {run.model.depth} layers"),
        ("mesh", mesh),
        ("chips", f"{chips.count} {chips.hardware}{slices}{torus}"),
        ("batch", batch + parts),
        ("products", run.dtype),
        ("kept", kept),
    ]
