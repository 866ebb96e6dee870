"""How long do edits of a session take, beside runs from scratch and Shardy inside jaxlib?

For the GPT step: milliseconds from an edit of one argument, and of one role in all layers, each of
four roles in turn, until shardings can be read, and until the cost is known, for annotations that
were not costed before and for those that were, as median and 99th percentile; and rows a second of
``Session.evaluate``, the first quarter left out, those with cost of annotations that all differ.
Random edits of single arguments are followed by reading the sharding of an argument, of one value
by name, or of all values; the first few of these are left out. The first edit is that of a new
session, which it includes, but not the first of the process, which imports modules.
From scratch are a new run of shardcore on the program, parsed already, and one of jaxlib. Large
edits, of half of the weights, are given as times a new run on the program with the same
annotations. Run it with `python -m benches.edits [--layers N ...]`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from shardcore import Module, Port, Result, Session

from benches.engines import PIPELINE, Reference
from benches.programs import gpt

HARDWARE = "tpu-v5p"
SHARDINGS = ('[{"fsdp"}, {}]', '[{}, {"tensor"}]', '[{"tensor"}, {"fsdp"}]', "[{}, {}]")


def milliseconds(runs: int, run: Callable[[int], object]) -> tuple[float, float]:
    """The median and the 99th percentile of the processor time of ``run``, called with 0, 1, ..."""
    times = list[float]()
    for number in range(runs):
        start = time.process_time()
        run(number)
        times.append((time.process_time() - start) * 1e3)
    return of_times(times)


def of_times(times: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile of ``times``, which are sorted."""
    times.sort()
    return statistics.median(times), times[min(len(times) - 1, len(times) * 99 // 100)]


def roles(arguments: list[Port], layers: int) -> list[list[str]]:
    """The weights of each role: those of one type of matrices that all layers have."""
    by_type: dict[str, list[str]] = {}
    for port in arguments:
        by_type.setdefault(port.type, []).append(port.name)
    return [names for ty, names in by_type.items() if ty.count("x") == 2 and len(names) >= layers]


def edit(choices: list[list[str]], number: int) -> dict[str, object]:
    """Another role for each number; when all had their turn, another sharding."""
    turn, role = divmod(number, len(choices))
    return dict.fromkeys(choices[role], SHARDINGS[turn % len(SHARDINGS)])


def unseen(choices: list[list[str]]) -> Iterator[dict[str, object]]:
    """Random edits of one role each, after each of which the annotations are other ones."""
    chance, state = random.Random(0), [0] * len(choices)
    seen = {tuple(state)}
    while len(seen) < len(SHARDINGS) ** len(choices):
        role, sharding = chance.randrange(len(choices)), chance.randrange(len(SHARDINGS))
        state[role] = sharding
        if tuple(state) not in seen:
            seen.add(tuple(state))
            yield dict.fromkeys(choices[role], SHARDINGS[sharding])


def differing(choices: list[list[str]]) -> list[dict[str, object]]:
    """Each role with each sharding of its dims along one axis or none, in a random order."""
    axes = ("", '"data"', '"fsdp"', '"tensor"')
    pairs = [(row, column) for row in axes for column in axes if row != column or not row]
    shardings = [f"[{{{row}}}, {{{column}}}]" for row, column in pairs]
    edits = [dict[str, object](dict.fromkeys(names, it)) for names in choices for it in shardings]
    random.Random(0).shuffle(edits)
    return edits


def rows_a_second(session: Session, edits: list[dict[str, object]], hardware: str | None) -> float:
    """Rows a second of ``edits`` of the program as it came, after the first quarter of them."""
    session.reset()
    warm = len(edits) // 4
    list(session.evaluate(edits[:warm], hardware))
    start = time.perf_counter()
    list(session.evaluate(edits[warm:], hardware))
    return (len(edits) - warm) / (time.perf_counter() - start)


def ratios(session: Session, weights: list[str], runs: int) -> tuple[float, float]:
    """How many times a new run takes an edit of half of ``weights``: the median and the 99th
    percentile."""
    chance, found = random.Random(0), list[float]()
    for _ in range(runs):
        names = chance.sample(weights, len(weights) // 2)
        session.set({name: chance.choice(SHARDINGS) for name in names})
        ours, _ = milliseconds(1, lambda _: session.result.arguments())
        module = session.module
        new, _ = milliseconds(1, lambda _, module=module: module.propagate().arguments())
        found.append(ours / new)
    found.sort()
    return statistics.median(found), found[min(len(found) - 1, len(found) * 99 // 100)]


def figures(layers: int, runs: int) -> dict[str, tuple[float, ...]]:
    """The figures of a step of ``layers`` layers, by name."""
    text = gpt(layers)
    module = Module.parse(text)
    session, reference = module.session(), Reference()
    choices = roles(module.arguments(), layers)
    weights = [name for names in choices for name in names]
    fewer = max(3, runs // 20)
    names = [value.name for value in module.propagate().values()]

    def read(of: list[list[str]]) -> Callable[[int], object]:
        def run(number: int) -> Any:
            session.set(edit(of, number))
            return [port.sharding for port in session.result.arguments()[:4]]

        return run

    def after_edit(read: Callable[[Result], object]) -> tuple[float, float]:
        """The times to read from the result of random edits of one argument each."""
        session.reset()
        found = list[float]()
        for _ in range(warm + max(60, runs // 2)):
            session.set({chance.choice(weights): chance.choice(SHARDINGS)})
            found.append(milliseconds(1, lambda _: read(session.result))[0])
        return of_times(found[warm:])

    def first(_: int) -> object:
        begun = module.session()
        begun.set({chance.choice(weights): chance.choice(SHARDINGS)})
        return begun.result.arguments()[0].sharding

    chance, warm = random.Random(0), 4 * len(choices)
    new = unseen(choices)

    def cost(_: int) -> object:
        session.set(next(new))
        return session.cost(HARDWARE).step_seconds_upper

    def again(number: int) -> object:
        session.set(edit(choices, number))
        return session.cost(HARDWARE).step_seconds_upper

    def timed(run: Callable[[int], object], times: int) -> tuple[float, float]:
        session.reset()
        # The annotations of the second turn of each role are those of all later ones, and a session
        # remembers some 30 costs of the smaller step before it forgets the first.
        milliseconds(4 * len(choices) * len(SHARDINGS), run)
        return milliseconds(times, run)

    def theirs(_: int) -> None:
        parsed = reference.parse(text)
        reference.run(parsed, PIPELINE)

    return {
        "one argument": timed(read([choices[0][:1]]), runs),
        "one role": timed(read(choices), runs),
        "random arguments": after_edit(lambda result: result.arguments()[0].sharding),
        "one value by name": after_edit(lambda result: result[chance.choice(names)].sharding),
        "all values": after_edit(lambda result: [value.sharding for value in result.values()]),
        "the first edit": milliseconds(max(20, fewer), first),
        "half, times a new run": ratios(session, weights, max(20, fewer)),
        "one role, with cost": timed(cost, max(20, fewer)),
        "the same, costed before": timed(again, fewer),
        "from scratch": milliseconds(fewer, lambda _: module.propagate()),
        "from scratch, all values": milliseconds(
            fewer, lambda _: [value.sharding for value in module.propagate().values()]
        ),
        "from scratch, with cost": milliseconds(fewer, lambda _: module.propagate().cost(HARDWARE)),
        "jaxlib, with parsing": milliseconds(3, theirs),
        "rows a second": (
            rows_a_second(session, [edit(choices, number) for number in range(runs)], None),
        ),
        "rows a second, with cost": (rows_a_second(session, differing(choices), HARDWARE),),
    }


def main() -> None:
    """Print the figures of each number of layers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="*", default=[12, 96])
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    for layers in args.layers:
        print(f"GPT step, {layers} layers")
        for name, found in figures(layers, args.runs).items():
            print(f"  {name:26}", *(f"{figure:10.3f}" for figure in found))


if __name__ == "__main__":
    main()
