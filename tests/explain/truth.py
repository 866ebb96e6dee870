"""What XLA says of each collective by itself, to hold explanations against.

With the passes that merge collectives off, each has the metadata of the op that required it. What
is explained of the program as XLA compiles it by default has to be of these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import shardcore
from shardcore.explain.collectives import collectives
from shardcore.explain.compiled import Compiled, Part
from shardcore.explain.explained import Explained, ExplainedCollective, ExplainedPart
from shardcore.explain.hlo_text import read
from shardcore.explain.matching import agree, short_place

from tests.accelerators.measured import compile_on
from tests.explain.families import FAMILIES
from tests.shardy.xla import compiled
from tests.shardy.xla.models import catalog

MODELS = (
    "llama-data",
    "llama-fsdp",
    "llama-tensor",
    "llama-fsdp-tensor",
    "llama-sequence",
    "llama-pods",
    "llama-scan-fsdp",
    "llama-scan-tensor",
    "llama-accumulated-fsdp",
    "lora-fsdp",
    "experts-experts-tensor",
    "routed-capacity",
    "perceptron-grid",
    "patches-fsdp",
    "patches-tensor",
    "residual-rows",
    "denoise-rows",
    "decode-tensor",
    "decode-length",
    "decode-scan",
    "prefill-tensor",
    "embedding-vocabulary",
    "recommend-tables",
    "parts-exchanged",
    "pipeline-train",
    "averaged-data",
    "preferences-vocabulary",
    "rolling-cache",
    "graph-edges",
    "sharded-by-hand-gathered",
)
"""Decoders and encoders of all kinds of parallelism, experts, vision, recommendation, manual code,
training and serving."""
COMPILERS = ("cpu", "gpu", "tpu")
_CHIPS = {"gpu": "h100", "tpu": "v5e"}
_APART: dict[str, dict[str, Any]] = {
    "cpu": {"xla_disable_hlo_passes": ",".join(compiled.PASSES_OFF)},
    "gpu": {
        f"xla_gpu_{kind}_combine_threshold_bytes": 1
        for kind in ("all_gather", "all_reduce", "reduce_scatter", "collective_permute")
    },
    "tpu": {
        "xla_jf_crs_combiner_threshold_count": 1,
        "xla_all_gather_combiner_threshold_count": 1,
        "xla_tpu_enable_collective_permute_combiner": False,
    },
}
"""What keeps a compiler from merging collectives, where that can be said."""
_DONATED = re.compile(r"tf\.aliasing_output = (\d+) : i32")
_SUM = {"reduce_scatter": "all_reduce"}


def located(name: str) -> str:
    """The model as JAX prints it, with the places and paths that its values come from."""
    build = FAMILIES.get(name)
    return catalog.located(name) if build is None else str(build().as_text(debug_info=True))


@cache
def result(name: str) -> shardcore.Result:
    """The model with its shardings completed."""
    return shardcore.Module.parse(located(name)).propagate(legalize_chlo=True)


def hlo(text: str, compiler: str = "cpu", **options: Any) -> str:
    """The text of the program that a compiler makes."""
    if compiler == "cpu":
        run = compiled.executable(text, **compiled.SIMPLE_EMITTER, **options)
        return "\n\n".join(module.to_string() for module in run.hlo_modules())
    return compile_on(_CHIPS[compiler], text, **options).hlo


@cache
def merged(name: str, compiler: str = "cpu") -> str:
    """The model as XLA compiles it."""
    return hlo(located(name), compiler)


def single(text: str, compiler: str = "cpu") -> list[tuple[Compiled, Part]]:
    """The collectives that XLA makes of a program if it merges none, or few of them."""
    [module] = read(hlo(text, compiler, **_APART[compiler]))
    return [(row, part) for row in collectives(module) for part in row.parts]


@dataclass
class Judgement:
    """How many parts are confirmed by the program in which nothing is merged."""

    parts: int
    planned: int
    known: int
    """Parts whose op or line is known."""
    confirmed: int
    unjudged: int
    """Parts of which XLA's metadata says nothing anywhere."""
    wrong: list[str]


def judged(name: str, compiler: str = "cpu") -> Judgement:
    """The explanation of the compiled model, held against XLA's own metadata."""
    found = shardcore.explain(merged(name, compiler), result(name))
    truth: Counter[tuple[Any, ...]] = Counter()
    silent: set[tuple[Any, ...]] = set()
    for row, part in single(located(name), compiler):
        key = (_SUM.get(row.kind, row.kind), row.groups, part.bytes)
        own = [one for one in part.origins if one.is_own and one.location]
        # What is moved out of a loop is called like the loop.
        if own and not own[0].op_name.endswith("/while"):
            truth[(*key, own[0].op_name, own[0].location)] += 1
        else:
            silent.add(key)
    verdict = Judgement(0, 0, 0, 0, 0, [])
    for row in found.collectives:
        for part in row.parts:
            verdict.parts += 1
            verdict.planned += part.planned is not None
            verdict.known += part.op is not None or part.location is not None
            key = (_SUM.get(row.kind, row.kind), row.groups, part.bytes)
            fits = [one for one in truth if one[:3] == key and truth[one] and _is_of(part, one)]
            if fits:
                # Others may be for ops at one of its lines alone.
                truth[max(fits, key=lambda one: agree(one[3], part.op_name))] -= 1
                verdict.confirmed += 1
            elif key in silent:
                verdict.unjudged += 1
            else:
                verdict.wrong.append(f"{row.name} {row.kind} {part.op} {part.location}")
    return verdict


def _is_of(part: ExplainedPart, truth: tuple[Any, ...]) -> bool:
    """Whether the op that ``part`` is said to be for is the one that XLA names."""
    return short_place(truth[4]) in _lines_of(part) or agree(truth[3], part.op_name)


def _lines_of(part: ExplainedPart) -> set[str]:
    """The lines that a part is said to be for."""
    places = {*part.locations}
    if part.planned is not None:
        places |= {part.planned.location, part.planned.cause_location}
    return {short_place(place) for place in places if place}


@dataclass(frozen=True)
class Counterfactual:
    """An edit that was made, and what then became of the collective that it is to remove."""

    model: str
    what: str
    edit: str
    verdict: str
    """``gone``: fewer collectives of its kind run for its op, and fewer bytes for its line;
    ``stays``; ``none``: no edit is known, so that none was made."""


@dataclass(frozen=True)
class _Run:
    """A collective that runs by itself; without line and op if XLA names none."""

    kind: str
    groups: Any
    bytes: int
    line: str = ""
    op_name: str = ""


def counterfactuals(name: str, most: int, compiler: str = "cpu") -> list[Counterfactual]:
    """The cheapest edits of the longest collectives of a model, made, and the model compiled
    again."""
    found = shardcore.explain(merged(name, compiler), result(name))
    before = _runs(located(name), compiler)
    rows: dict[Any, Counterfactual] = {}
    without: dict[Any, Counterfactual] = {}
    for row, part in found.longest():
        place = (row.kind, part.location, part.planned and part.planned.axes)
        if part.planned is None or place in rows:
            continue
        if len(rows) == most:
            break
        what = f"{row.kind} for {part.op} at {short_place(part.location or '')}"
        edit = part.edit
        if edit is None:
            without[place] = Counterfactual(name, what, "", "none")
            continue
        session = result(name)._given().session(legalize_chlo=True)
        session.set(edit.target, edit.sharding)
        after = _runs(str(session.module), compiler)
        verdict = "gone" if _is_less(row, part, before, after) else "stays"
        made = f"{edit.target} {re.sub('^<@[^,]*, ', '', edit.sharding)[:-1]}"
        rows[place] = Counterfactual(name, what, made, verdict)
    return [*rows.values(), *(one for place, one in without.items() if place not in rows)]


def _is_less(
    row: ExplainedCollective, part: ExplainedPart, before: Counter[_Run], after: Counter[_Run]
) -> bool:
    """Whether fewer collectives of its kind run for the op of a part, and fewer bytes for its
    line."""
    is_own = _like(row, part, before)
    lines = {"", *_lines_of(part)}

    def is_near(one: _Run) -> bool:
        is_alike = one.kind == row.kind and one.groups == row.groups
        return is_own(one) or (is_alike and one.line in lines)

    both = before, after
    old, new = (sum(runs[one] for one in runs if is_own(one)) for runs in both)
    sent, left = (sum(runs[one] * one.bytes for one in runs if is_near(one)) for runs in both)
    return new < old and left < sent


def _like(
    row: ExplainedCollective, part: ExplainedPart, runs: Iterable[_Run]
) -> Callable[[_Run], bool]:
    """What tells the collectives for the op of a part from others, by what XLA says of the
    ``runs``."""
    lines, kind = _lines_of(part), _SUM.get(row.kind, row.kind)
    near = [one for one in runs if one.groups == row.groups]
    equal = [one for one in near if one.kind == row.kind and one.bytes == part.bytes]
    for found in (
        [one for one in equal if one.line in lines and agree(one.op_name, part.op_name)],
        [one for one in equal if one.line in lines],
        [one for one in near if one.kind == row.kind and one.line in lines],
        # One of another kind may have become this one only by what is off here.
        [one for one in near if _SUM.get(one.kind, one.kind) == kind and one.line in lines],
    ):
        if found:
            ops = {(one.kind, one.groups, one.line, one.op_name) for one in found}
            return lambda one: (one.kind, one.groups, one.line, one.op_name) in ops
    # XLA names no op, or one of several whose results are added before they are summed.
    found = [one for one in equal if not one.line] or equal
    return lambda one: one in found


def _runs(text: str, compiler: str) -> Counter[_Run]:
    """The runs of collectives, where none are merged, nor results written where donated arguments
    are, which would have to keep their shards."""
    counts: Counter[_Run] = Counter()
    for row, part in single(_DONATED.sub(r"test.was_aliased = \1 : i32", text), compiler):
        named = [one for one in part.origins if one.is_own and one.location]
        own = (short_place(named[0].location or ""), named[0].op_name) if named else ()
        counts[_Run(row.kind, row.groups, part.bytes, *own)] += row.runs or 1
    return counts


def summary(found: Explained) -> dict[str, int]:
    """What is said of the collectives of a program, in numbers."""
    return {
        "collectives": len(found.collectives),
        "parts": len(found.parts),
        "plan": len(found.plan),
        "dropped": len(found.dropped),
        **{name: count for name, count in found.counts().items() if count},
    }
