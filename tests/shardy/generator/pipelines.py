"""What is compared on a module: pipelines, each on the text it makes sense for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from random import Random

from tests.shardy import reference

PROPAGATE = ("basic", "aggressive", "op-priority", "user-priority")
PARTITION = [
    "func.func(sdy-insert-explicit-reshards{enable-full-version=FLAG})",
    "canonicalize{enable-patterns=sdy-reshard}",
    "func.func(sdy-reshard-to-collectives{keep-redundant-reshards=FLAG})",
    "canonicalize{enable-patterns=sdy-collective}",
]


@dataclasses.dataclass(frozen=True)
class Task:
    """A pipeline, and what the reference does to the module before both engines start."""

    before: str
    pipeline: str


@cache
def expanded(dedup: bool) -> list[str]:
    option = "{dedup-functions-fully=true}" if dedup else ""
    return reference.expand(f"builtin.module(sdy-propagation-pipeline{option})")


@cache
def imports(dedup: bool) -> list[str]:
    passes = expanded(dedup)
    return passes[: passes.index("sdy-pre-order-funcs") + 1]


def _flag(rng: Random) -> str:
    return rng.choice(["true", "false"])


def propagation(rng: Random) -> str:
    """A propagation pass with random options."""
    name = rng.choice(PROPAGATE)
    options = [
        f"{option}=true"
        for option, chance in (
            ("conservative-propagation", 0.3),
            ("keep-sharding-rules", 0.3),
            ("debug-sharding-origins", 0.06),
            ("debug-propagation-edge-sharding", 0.12),
        )
        if rng.random() < chance
    ]
    if name != "basic":
        strategy = rng.choice(["aggressive", "basic", "basic-then-aggressive"])
        options.append(f"propagation-strategy={strategy}")
    if name in PROPAGATE[2:] and rng.random() < 0.4:
        options.append("run-op-priority-propagation=false")
    return f"sdy-{name}-propagate" + (f"{{{' '.join(options)}}}" if options else "")


def export(rng: Random) -> str:
    """The export pipeline with random options."""
    flags = [
        "avoid-export-for-partitioning",
        "enable-insert-explicit-collectives",
        "keep-sharding-rules",
        "remove-all-gather-reduce-scatter-for-cmv1",
        "avoid-reshards-on-calls",
        "dump-sharding-origins",
        "dump-propagation-edges",
        "update-non-divisible-input-output-shardings",
    ]
    options = [f"{flag}={_flag(rng)}" for flag in flags if rng.random() < 0.5]
    return "sdy-export-pipeline" + (f"{{{' '.join(options)}}}" if options else "")


def _single(rng: Random) -> str:
    passes = expanded(rng.random() < 0.3)
    names = [
        *passes,
        "sdy-inline-meshes",
        "sdy-drop-sharding-and-mesh",
        "sdy-resolve-permutation-factors",
    ]
    return rng.choice([name for name in names if "propagate{" not in name])


def tasks(rng: Random) -> Iterator[Task]:
    """The tasks of one module, those that matter most always, others now and then."""
    join = reference.join_passes
    dedup = rng.random() < 0.25
    yield Task(
        "", join([f"sdy-propagation-pipeline{{dedup-functions-fully={str(dedup).lower()}}}"])
    )
    yield Task("", join([*imports(dedup), propagation(rng)]))
    roll = rng.random()
    if roll < 0.15:
        passes = expanded(dedup)
        at = rng.randrange(1, len(passes))
        yield Task("", join(passes[:at]))
        yield Task(join(passes[:at]), join(passes[at : at + 1]))
    elif roll < 0.3:
        yield Task("", join([_single(rng)]))
    elif roll < 0.4:
        yield Task(join(imports(dedup)), join([propagation(rng)]))
    elif roll < 0.5:
        conservative = f"sdy-populate-op-sharding-rules{{conservative-propagation={_flag(rng)}}}"
        yield Task("", join([f"func.func({conservative})"]))
    elif roll < 0.7:
        yield Task(join([*imports(dedup), propagation(rng)]), join([export(rng)]))
    else:
        yield from _partition(rng, join(["sdy-propagation-pipeline"]))


def _partition(rng: Random, before: str) -> Iterator[Task]:
    passes = [text.replace("FLAG", _flag(rng)) for text in PARTITION]
    inner = before[len("builtin.module(") : -1]
    for at in range(1, len(passes) + 1):
        done = reference.join_passes([inner, *passes[: at - 1]])
        yield Task(done, reference.join_passes([passes[at - 1]]))
    if rng.random() < 0.3:
        yield Task(before, reference.join_passes(["sdy-insert-func-call-reshards"]))
