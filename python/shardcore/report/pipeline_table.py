"""A pipeline as text: the choice, its stages, the alternatives, and its chart."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, plain_text, table
from shardcore.report.pipeline_text import gantt_text
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.pipeline.answer import Candidate, Pipeline
    from shardcore.pipeline.part import Part
    from shardcore.report.console import Part as ReportPart

_OTHERS = (
    "schedule",
    ">stages",
    ">chunks",
    ">micro",
    ">step",
    ">waits",
    ">peak",
    ">devices",
)
_STAGES = ("stage", ">layers", ">peak", ">activations", ">kept at most", ">waits")
_PARTS = ("part", ">forward", ">input", ">parameters", ">update", ">state", ">kept")


def pipeline_parts(found: Pipeline) -> list[ReportPart]:
    """The parts of the report."""
    best = found.best
    step, peak, devices = found.whole
    share = step * devices / best.device_seconds
    lines = [
        f"{pipeline_words(best)}, on {plural(best.devices, 'device')} of {found.hardware.name}",
        f"  step         {format_seconds(best.step_seconds)}, of which stages wait "
        f"{best.timeline.bubble:.1%}",
        f"  efficiency   {share:.0%} of that without stages: {format_seconds(step)} and "
        f"{format_bytes(peak)} on {plural(devices, 'device')}",
        f"  peak memory  {format_bytes(best.peak_bytes)} of {format_bytes(found.limit)}",
        *prepared_words(best),
        f"  sends        {format_bytes(best.send.bytes)} between chunks, in "
        f"{format_seconds(best.send.achieved)}",
        f"  tried        {found.tried}",
    ]
    parts: list[ReportPart] = [paragraph("\n".join(lines))]
    parts += stages_parts(best)
    if found.others:
        parts.append(paragraph("\nothers", is_title=True))
        parts.append(table(_OTHERS, [_row(each) for each in found.others]))
    parts.append(paragraph("\nwhat takes what, of the whole batch", is_title=True))
    parts.append(table(_PARTS, _layers(found)))
    parts.append(paragraph("\n" + gantt_text(best.timeline)))
    return parts


def pipeline_text(found: Pipeline) -> str:
    """The whole report without colours."""
    return plain_text(pipeline_parts(found))


def pipeline_words(best: Candidate) -> str:
    """``best`` in words."""
    chunks = f" of {best.turns} chunks" if best.turns > 1 else ""
    stages, batches = plural(best.stages, "stage"), best.micro_batches
    return f"{best.schedule}, {stages}{chunks}, {plural(batches, 'micro-batch', 'micro-batches')}"


def prepared_words(best: Candidate) -> list[str]:
    """A line where the parameters of ``best`` are not prepared for each micro-batch."""
    return ["  parameters   gathered and converted once a step"] if best.once else []


def stages_parts(best: Candidate) -> list[ReportPart]:
    """The part of the report that has the stages of ``best``."""
    return [paragraph("\nstages", is_title=True), table(_STAGES, _stages(best))]


def _stages(best: Candidate) -> list[tuple[str, ...]]:
    timeline = best.timeline
    rows = zip(
        best.layers_by_stage,
        best.memory,
        timeline.peak_activations,
        timeline.peak_live,
        timeline.bubbles,
        strict=True,
    )
    return [
        (
            str(stage),
            str(layers),
            format_bytes(memory),
            format_bytes(kept),
            str(live),
            f"{waits:.1%}",
        )
        for stage, (layers, memory, kept, live, waits) in enumerate(rows)
    ]


def _row(each: Candidate) -> tuple[str, ...]:
    return (
        each.schedule,
        str(each.stages),
        str(each.turns),
        str(each.micro_batches),
        format_seconds(each.step_seconds),
        f"{each.timeline.bubble:.1%}",
        format_bytes(each.peak_bytes),
        str(each.devices),
    )


def _layers(found: Pipeline) -> list[tuple[str, ...]]:
    layers = found.layers
    rows: list[tuple[str, Part]] = [("before", layers.before)]
    first = 0
    for _, same in groupby(layers.layers, key=_figures):
        count = len(list(same))
        name = f"layer {first}" if count == 1 else f"each of layers {first} to {first + count - 1}"
        rows.append((name, layers.layers[first]))
        first += count
    rows.append(("after", layers.after))
    if layers.rest.seconds:
        rows.append(("rest", layers.rest))
    return [(name, *_figures(part)) for name, part in rows]


def _figures(part: Part) -> tuple[str, ...]:
    times = (
        part.forward + part.fixed_forward,
        part.backward_input + part.fixed_backward,
        part.backward_weight,
        part.update,
    )
    bytes_ = (part.parameter_bytes, part.activation_bytes)
    return (*map(format_seconds, times), *map(format_bytes, bytes_))
