"""What is compared on a module: pipelines, each on the text it makes sense for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from tests.shardy import reference
from tests.shardy.generator import mistakes

PROPAGATE = ("basic", "aggressive", "op-priority", "user-priority")
PARTITION = [
    "func.func(sdy-insert-explicit-reshards{enable-full-version=FLAG})",
    "canonicalize{enable-patterns=sdy-reshard}",
    "func.func(sdy-reshard-to-collectives{keep-redundant-reshards=FLAG})",
    "canonicalize{enable-patterns=sdy-collective}",
]

# Kinds of ops that Shardy lowers to programs that compute the same.
PER_INSTRUCTION = (
    "builtin.module(sdy-per-instruction-partitioning{filter=add,multiply,subtract,dot,transpose,"
    "broadcast,reshard,constant,abs,tanh,all_,select,negate,maximum,convert})"
)


@dataclasses.dataclass(frozen=True)
class Task:
    """A pipeline, and what the reference does to the module before both engines start."""

    before: str
    pipeline: str
    change: Callable[[str], str] = lambda text: text


def whole(dedup: bool) -> str:
    """The pipeline that does everything."""
    return f"sdy-propagation-pipeline{{dedup-functions-fully={str(dedup).lower()}}}"


@cache
def expanded(dedup: bool) -> list[str]:
    return reference.expand(reference.join_passes([whole(dedup)]))


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
            ("debug-propagation-edge-sharding", 0.25),
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


def _all(rng: Random, dedup: bool) -> str:
    """Propagation and perhaps what comes after it."""
    passes = [whole(dedup)]
    if rng.random() < 0.6:
        passes += [text.replace("FLAG", "true") for text in PARTITION[: rng.randint(1, 4)]]
    return reference.join_passes(passes)


def _part(rng: Random) -> str:
    """A pipeline that is part of others, on what users wrote."""
    dedup = f"sdy-import-pipeline{{dedup-functions-fully={_flag(rng)}}}"
    return rng.choice([dedup, export(rng), "sdy-export-pipeline", "canonicalize"])


def _single(rng: Random) -> str:
    passes = expanded(rng.random() < 0.3)
    names = [
        *passes,
        "func.func(sdy-explicit-gather-scatter-batching)",
        "sdy-inline-meshes",
        "sdy-drop-sharding-and-mesh",
        "sdy-resolve-permutation-factors",
    ]
    lift = "sdy-lift-inlined-meshes{use-single-device-mesh-names"
    if any(name.startswith(lift) for name in passes):
        names.append(lift + "=true}")
    return rng.choice([name for name in names if "propagate{" not in name])


def _chain(rng: Random, text: str) -> str:
    """Several passes in any order: each finds what none leaves in a pipeline."""
    names = [
        *expanded(False),
        *(passes.replace("FLAG", _flag(rng)) for passes in PARTITION),
        "func.func(sdy-explicit-gather-scatter-batching)",
        "sdy-export-pipeline",
        "sdy-inline-meshes",
        "sdy-resolve-permutation-factors",
        propagation(rng),
    ]
    # Those of the input get other names here, see `docs/deviations.md`.
    if "sdy.named_computation" in text:
        names = [name for name in names if "import-func-calls" not in name]
    return reference.join_passes(rng.choices(names, k=rng.randint(2, 5)))


def tasks(rng: Random, text: str) -> Iterator[Task]:
    """The tasks of the module `text`, those that matter most always, others now and then."""
    join = reference.join_passes
    # The reference gives named computations that it has not made itself their edges twice and dies
    # of that, unless functions are to stay as they are.
    dedup = rng.random() < (0.9 if "sdy.named_computation" in text else 0.25)
    yield Task("", join([whole(dedup)]))
    yield Task("", join([*imports(dedup), propagation(rng)]))
    # Reading alone, with a mistake in the text.
    yield Task("", "builtin.module()", lambda text: mistakes.spoil(rng, text))
    if rng.random() < 0.15:
        # What one pipeline leaves is a program for another.
        first = rng.choice([_all(rng, dedup), join([*imports(dedup), propagation(rng)])])
        then = rng.choice([_all(rng, dedup), join([*imports(dedup), propagation(rng)])])
        yield Task(first, then)
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
    elif roll < 0.6:
        yield Task(join([*imports(dedup), propagation(rng)]), join([export(rng)]))
    elif roll < 0.75:
        yield from _partition(rng, join([whole(dedup)]))
    else:
        # Nothing has propagated: what users wrote differs far more than what propagation leaves.
        before = ["sdy-lift-inlined-meshes", "sdy-close-shardings"]
        constraints = ["func.func(sdy-sharding-constraint-to-reshard)"] * (rng.random() < 0.8)
        for task in _partition(rng, join([*before, *constraints])):
            yield dataclasses.replace(task, change=_without_priorities)
    # Last, for the reference dies of some.
    yield Task("", join([_part(Random(f"part {text}"))]), _without_priorities)
    chance = Random(f"chain {text}")
    if chance.random() < 0.3:
        yield Task("", _chain(chance, text), _without_priorities)


def _without_priorities(text: str) -> str:
    """An open dim with a priority is no valid one when it is closed."""
    return re.sub(r"\}p\d", "}", text)


def _partition(rng: Random, before: str) -> Iterator[Task]:
    passes = [text.replace("FLAG", _flag(rng)) for text in PARTITION]
    inner = before[len("builtin.module(") : -1]
    for at in range(1, len(passes) + 1):
        done = reference.join_passes([inner, *passes[: at - 1]])
        yield Task(done, reference.join_passes([passes[at - 1]]))
    if rng.random() < 0.3:
        yield Task(before, reference.join_passes(["sdy-insert-func-call-reshards"]))
        yield Task(before, reference.join_passes([reference.PAD]))
    if rng.random() < 0.5:
        all_passes = [text.replace("FLAG", "true") for text in PARTITION]
        yield Task(
            reference.join_passes([inner, *all_passes]), reference.join_passes([reference.PAD])
        )
        if reference.IS_NEW:
            full = "func.func(sdy-insert-explicit-reshards{enable-full-version=true})"
            done = reference.join_passes([inner, full])
            yield Task(done, PER_INSTRUCTION)
