"""Random modules tell engines apart that differ in one thing.

Each bug below hides something from our engine, by its text or its pipeline, as if that were not
implemented. Some module has to come out differently from what the reference makes of it. Bugs in
the engine itself are in `tests/shardy/generator/seeded.py`, which builds it anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import shardcore

from tests.deep import deep
from tests.shardy import reference
from tests.shardy.generator import compare, workers

MODULES = 400
Bug = Callable[[str, str], tuple[str, str]]


def in_text(pattern: str, other: str) -> Bug:
    return lambda text, pipeline: (re.sub(pattern, other, text), pipeline)


def in_pipeline(pattern: str, other: str) -> Bug:
    return lambda text, pipeline: (text, re.sub(pattern, other, pipeline))


BUGS: dict[str, Bug] = {
    "conservative is ignored": in_pipeline("conservative-propagation=true", ""),
    "strategy basic is ignored": in_pipeline("strategy=basic(?!-)", "strategy=aggressive"),
    "strategy aggressive is ignored": in_pipeline("strategy=aggressive", "strategy=basic"),
    "ops have no priorities": in_pipeline(
        "run-op-priority-propagation=true", "run-op-priority-propagation=false"
    ),
    "ops always have priorities": in_pipeline("run-op-priority-propagation=false", ""),
    "rules are not kept": in_pipeline("keep-sharding-rules=true", ""),
    "origins are not kept": in_pipeline("debug-sharding-origins=true", ""),
    "edges are not kept": in_pipeline("debug-propagation-edge-sharding=true", ""),
    "functions stay apart": in_pipeline("dedup-functions-fully=true", ""),
    "reshards are half made": in_pipeline("enable-full-version=true", ""),
    "redundant reshards are dropped": in_pipeline("keep-redundant-reshards=true", ""),
    "user priorities are one": in_text(r"\}p\d", "}"),
    "the last user priority comes first": in_text(r"\}p7", "}p0"),
    "closed dims are open": in_text(r'(\{"\w+")\}', r"\1, ?}"),
    "open dims are closed": in_text(r", \?\}", "}"),
    "replicated axes are free": in_text(r", replicated=\{[^}]*\}", ""),
    "groups are ignored": in_text(r"sdy\.sharding_group .*\n", "\n"),
    "barriers go the other way": in_text("allowed_direction=FORWARD", "allowed_direction=BACKWARD"),
    "reductions are ordinary factors": in_text(r" reduction=\{[^}]*\}", ""),
    "replication is not needed": in_text(r" need_replication=\{[^}]*\}", ""),
    "factors are not blocked": in_text(r" blocked_propagation=\{[^}]*\}", ""),
    "a sub-axis is the other half": in_text(r":\(1\)2", ":(2)2"),
    "results of main have no shardings": in_text(r"(-> \(tensor<\w+>) \{sdy[^}]*>\}", r"\1"),
}


def caught(seed: int, on_step: Callable[[str], None]) -> list[str]:
    """The bugs that the modules of a seed bring to light."""
    found = set()
    for text, pipeline in compare.of_seed(seed):
        on_step("reference")
        try:
            theirs = reference.canonical(reference.run(text, pipeline, verify=False))
        except reference.RejectedError:
            continue
        for name, bug in BUGS.items():
            changed = bug(text, pipeline)
            # Where nothing but reading happens, any change of the text shows.
            if name in found or changed == (text, pipeline) or pipeline == "builtin.module()":
                continue
            try:
                module = shardcore.Module.parse(changed[0])
                shardcore.PassManager.parse(changed[1]).run(module)
                mine = reference.canonical(str(module))
            except (shardcore.ShardcoreError, reference.RejectedError):
                continue
            if mine != theirs:
                found.add(name)
    return sorted(found)


def catch_all() -> dict[str, int]:
    """The number of modules it took to catch each bug."""
    when: dict[str, int] = {}
    for outcome in workers.run(range(MODULES), caught):
        for name in outcome.findings:
            when.setdefault(name, outcome.seed + 1)
        if len(when) == len(BUGS):
            break
    return when


@deep
def test_bugs_are_caught() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        when = pool.submit(catch_all).result()
    print(*(f"{seed:5} {name}" for name, seed in sorted(when.items())), sep="\n")
    assert not BUGS.keys() - when.keys()
