"""Runs tasks through both engines and says where they part."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from random import Random

import shardcore

from tests.shardy import reference
from tests.shardy.diff import explain
from tests.shardy.generator import pipelines, programs


@dataclasses.dataclass(frozen=True)
class Finding:
    """A difference: the text both started from, the pipeline, what differs."""

    kind: str
    text: str
    pipeline: str
    detail: str


def check(
    text: str, pipeline: str, on_step: Callable[[str], None] = lambda step: None
) -> Finding | None:
    """How the engines differ on `text`, if they do; tells `on_step` whose turn it is."""
    on_step("reference")
    try:
        theirs = reference.run(text, pipeline, verify=False)
    except reference.RejectedError as error:
        theirs, refused = "", error.diagnostics
        # What it has erased it still reads, and finds lists of any length.
        if any("SmallVector unable to grow" in said for said in refused):
            return None
    else:
        refused = []
        try:
            theirs = reference.canonical(theirs)
        except reference.RejectedError:
            # The reference makes a module that its own verifier refuses: nothing to compare with.
            return None
    on_step("shardcore")
    try:
        module = shardcore.Module.parse(text)
        shardcore.PassManager.parse(pipeline).run(module)
        printed = str(module)
    except shardcore.ShardcoreError as error:
        if refused:
            return None
        return Finding("refused by us", text, pipeline, str(error))
    # What the reference cannot pad runs on its true size here, see `docs/deviations.md`.
    unpadded = any(words in said for words in UNPADDED for said in refused)
    pads = "sdy-pad-for-divisibility" in pipeline
    if (unpadded and pads) or (refused and PARTITIONED in pipeline):
        return None
    if refused:
        return Finding("accepted by us", text, pipeline, "\n".join(refused))
    on_step("reference")
    # Arguments and results that do not divide keep their types here, see `docs/deviations.md`.
    if pads and SIGNATURE.findall(theirs) != SIGNATURE.findall(reference.canonical(text)):
        return None
    try:
        mine = reference.canonical(printed)
    except reference.RejectedError as error:
        return Finding("unreadable", text, pipeline, "\n".join(error.diagnostics))
    if (pads and UNLIKE.search(text)) or (PARTITIONED in pipeline and EMPTY.search(text)):
        return None
    difference = explain(*_without_chance(theirs, mine))
    return Finding("different", text, pipeline, difference) if difference else None


UNPADDED = (
    "that was explicitly marked illegal",
    "found unrealized_conversion_cast after pad-for-divisibility",
)
"""What the reference says of functions that it cannot pad, up to jaxlib 0.10 and since 0.12."""
PARTITIONED = "sdy-per-instruction-partitioning"
UNLIKE = re.compile(r"stablehlo\.(reduce\b|scatter|rng_bit_generator)")
"""Ops that differ after padding by design: initial values count once, indices do not see padding,
random bits stay as many, see `docs/deviations.md`."""
EMPTY = re.compile(r"tensor<(\d+x)*0x")
"""Tensors without elements, which are not sent here, see `docs/deviations.md`."""
SIGNATURE = re.compile(r"^ *func\.func .*", re.MULTILINE)
ORIGINS = re.compile(r"sdy\.(?:\w+_)?sharding_origins = (?:\{[^{}]*\}|\[(?:\{[^{}]*\}(?:, )?)*\])")


def _without_chance(theirs: str, mine: str) -> tuple[str, str]:
    """Both texts without what may come out otherwise when the reference is asked again.

    It has no origin for an axis that an op was annotated with, and shows what it finds in memory.
    """
    if '": 0"' in mine:
        theirs, mine = ORIGINS.sub("origins", theirs), ORIGINS.sub("origins", mine)
    return _sort_flows(theirs), _sort_flows(mine)


def _sort_flows(text: str) -> str:
    """The flows of a step of `sdy.propagation_edges` sorted: the reference has no fixed order."""
    if "propagation_edges" not in text:
        return text
    steps = re.compile(r"(step-\d+ = \[)((?:\{[^{}]*\}(?:, )?)*)\]")

    def sort(match: re.Match[str]) -> str:
        return match[1] + ", ".join(sorted(re.findall(r"\{[^{}]*\}", match[2]))) + "]"

    return steps.sub(sort, text)


def of_seed(seed: int) -> list[tuple[str, str]]:
    """The texts and pipelines of one seed; text that the reference refuses has no more."""
    rng = Random(f"tasks {seed}")
    text = programs.make(seed)
    if rng.random() < 0.3:
        try:
            text = reference.canonical(text)
        except reference.RejectedError:
            return [(text, "builtin.module(sdy-close-shardings)")]
    found = []
    for task in pipelines.tasks(rng, text):
        start = task.change(text)
        if task.before:
            try:
                start = reference.canonical(reference.run(start, task.before, verify=False))
            except reference.RejectedError:
                continue
        found.append((start, task.pipeline))
    return found
