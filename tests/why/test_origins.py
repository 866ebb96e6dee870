"""Sources of axes agree with the origins that Shardy records of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardcore import Module, PassManager, ShardcoreError
from shardcore.why import AxisWhy

from tests.deep import IS_DEEP
from tests.shardy.generator import programs

NUM_MODULES = 12_000 if IS_DEEP else 200

# The propagation pipeline, which leaves `sdy.sharding_origins` on arguments and results.
PIPELINE = str(PassManager.parse("builtin.module(sdy-propagation-pipeline)")).replace(
    "debug-sharding-origins=false", "debug-sharding-origins=true"
)
ORIGINS = re.compile(r"sdy\.sharding_origins = \{([^}]*)\}")
ENTRY = re.compile(r'"?([^",={ ]+?)"? = "([^"]*)"')


def origins(text: str) -> Iterator[tuple[str, int, dict[str, str]]]:
    """The origins of each argument and result of ``@main``: its kind, its index, by axis."""
    start = text.find("@main(")
    signature = text[start : text.find("\n", start)] if start >= 0 else ""
    arguments, _, results = signature.partition(") -> ")
    of_arguments = re.split(r"(?=%[\w.$-]+: )", arguments)[1:]
    of_results = re.split(r", (?=tensor<|!stablehlo)", results)
    for kind, ports in (("argument", of_arguments), ("result", of_results)):
        for index, port in enumerate(ports):
            if found := ORIGINS.search(port):
                yield kind, index, dict(ENTRY.findall(found[1]))


def origin_of(why: AxisWhy, known: dict[str, str]) -> str:
    """What Shardy recorded for the axis, or for a part of it or a longer one."""
    axis = str(why.axis).replace('"', "")
    name = axis.partition(":")[0]
    parts = [origin for part, origin in known.items() if part.partition(":")[0] == name]
    return known.get(axis) or parts[0]


def is_agreed(why: AxisWhy, of: str, origin: str, arguments: list[str]) -> bool:
    """Whether the source is what Shardy recorded, or one that Shardy keeps no origin of."""
    source = why.source
    if source.name == of:
        # The annotation of the tensor itself; Shardy may name one of the value that is returned.
        return True
    if source.kind == "op" or source.name.startswith("@") or origin == ": 0":
        return True  # Annotations of ops and of other functions have no origin in Shardy.
    if source.kind in ("argument", "result"):
        numbered = source.kind == "argument" and source.name in arguments
        index = arguments.index(source.name) if numbered else int(source.name.split()[-1])
        return origin == f"{'input' if source.kind == 'argument' else 'output'}: {index}"
    return origin.startswith("constraint_" if source.kind == "constraint" else "mc_")


def test_sources_are_shardys_origins() -> None:
    compared = others = 0
    for seed in range(NUM_MODULES):
        text = programs.make(seed)
        module = Module.parse(text)
        try:
            PassManager.parse(PIPELINE).run(module)
            result = Module.parse(text).propagate()
        except ShardcoreError:
            continue
        arguments = [port.name for port in Module.parse(text).arguments()]
        tensors = {
            arguments[index] if kind == "argument" else f"result {index}": known
            for kind, index, known in origins(str(module))
        }
        for name, known in tensors.items():
            for why in result.why(name).axes:
                compared += 1
                origin = origin_of(why, known)
                if is_agreed(why, name, origin, arguments):
                    continue
                # Of an annotated tensor with a constraint on it Shardy may name the constraint.
                if origin in tensors.get(why.source.name, {}).values():
                    continue
                others += 1
    assert compared > NUM_MODULES // 2
    # Where two annotations bring an axis, each names the one that it saw first.
    assert others * 200 <= compared
