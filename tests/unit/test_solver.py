"""The solver that chooses one strategy for each node, against slow Python."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcore import ShardcoreError, StrategyProblem

ROOT = Path(__file__).resolve().parents[2]
Node = tuple[list[float], list[int], tuple[int, int]]
Edge = tuple[tuple[int, int], list[float]]

# The example of the contest's announcement.
EXAMPLE: dict[str, Any] = {
    "problem": {
        "name": "example",
        "nodes": {
            "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
            "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
            "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]],
        },
        "edges": {
            "nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
            "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]],
        },
        "usage_limit": 50,
    }
}


def evaluate(nodes: list[Node], edges: list[Edge], chosen: tuple[int, ...]) -> tuple[float, int]:
    """The cost and the peak of a choice, time by time."""
    cost = sum(costs[s] for (costs, _, _), s in zip(nodes, chosen, strict=True))
    for (a, b), costs in edges:
        cost += costs[chosen[a] * len(nodes[b][0]) + chosen[b]]
    times = range(max((end for _, _, (_, end) in nodes), default=0))
    live = [
        sum(
            usages[s]
            for (_, usages, (start, end)), s in zip(nodes, chosen, strict=True)
            if start <= time < end
        )
        for time in times
    ]
    return cost, max(live, default=0)


def best_of_all(nodes: list[Node], edges: list[Edge], limit: int | None) -> float:
    """The lowest cost of a choice that meets the limit, by trying all."""
    best = math.inf
    for chosen in itertools.product(*(range(len(costs)) for costs, _, _ in nodes)):
        cost, peak = evaluate(nodes, edges, chosen)
        if limit is None or peak <= limit:
            best = min(best, cost)
    return best


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Node], list[Edge], int | None]:
    """Small problems with forbidden costs, parallel edges, edges of a node to itself, mappings."""
    cost = st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0, 7.0, 30.0, 0.5, -3.0])
    entry = st.one_of(cost, cost, st.just(math.inf))
    nodes: list[Node] = []
    for _ in range(draw(st.integers(0, 6))):
        size = draw(st.integers(1, 4))
        usages = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
        start, length = draw(st.integers(0, 8)), draw(st.integers(-1, 6))
        own = draw(st.lists(entry, min_size=size, max_size=size))
        nodes.append((own, usages, (start, max(start + length, 0))))
    edges: list[Edge] = []
    for _ in range(draw(st.integers(0, 9)) if nodes else 0):
        a, b = (draw(st.integers(0, len(nodes) - 1)) for _ in range(2))
        rows, columns = len(nodes[a][0]), len(nodes[b][0])
        if draw(st.booleans()):
            image = draw(st.lists(st.integers(0, columns - 1), min_size=rows, max_size=rows))
            pairs = itertools.product(range(rows), range(columns))
            costs = [0.0 if image[row] == column else math.inf for row, column in pairs]
        else:
            costs = draw(st.lists(entry, min_size=rows * columns, max_size=rows * columns))
        edges.append(((a, b), costs))
    return nodes, edges, draw(st.none() | st.integers(0, 30))


@given(problems(), st.integers(0, 3), st.sampled_from([1, 2]))
@settings(max_examples=150, deadline=None)
def test_small_problems_are_solved_exactly(
    problem: tuple[list[Node], list[Edge], int | None], seed: int, threads: int
) -> None:
    nodes, edges, limit = problem
    solution = StrategyProblem(nodes, edges, limit).solve(rounds=2, seed=seed, threads=threads)
    best = best_of_all(nodes, edges, limit)
    assert solution.bound <= best + 1e-6
    cost, peak = evaluate(nodes, edges, tuple(solution.strategies))
    assert (solution.cost, solution.peak) == (pytest.approx(cost), peak)
    if best == math.inf:
        assert solution.status != "feasible"
    else:
        assert solution.status == "feasible"
        assert solution.cost == pytest.approx(best)
        assert limit is None or solution.peak <= limit


@given(problems())
@settings(max_examples=100, deadline=None)
def test_evaluation_is_that_of_slow_python(
    problem: tuple[list[Node], list[Edge], int | None],
) -> None:
    nodes, edges, limit = problem
    chosen = tuple(len(costs) - 1 for costs, _, _ in nodes)
    cost, peak = StrategyProblem(nodes, edges, limit).evaluate(chosen)
    assert (cost, peak) == (pytest.approx(evaluate(nodes, edges, chosen)[0]), peak)
    assert peak == evaluate(nodes, edges, chosen)[1]


def test_a_search_by_rounds_is_the_same_each_time() -> None:
    problem = layers(40)
    first, second = (problem.solve(rounds=3, seed=7).strategies for _ in range(2))
    assert first == second


def layers(count: int) -> StrategyProblem:
    """A chain of layers, where faster strategies take more memory than there is."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    for layer in range(count):
        nodes.append(([9.0, 4.0, 1.0], [1, 4, 9 + layer % 3], (layer, layer + 5)))
        if layer:
            edges.append(((layer - 1, layer), [0, 1, 2, 1, 0, 1, 2, 1, 0]))
        if layer > 3:
            edges.append(((layer - 4, layer), [0, 3, 3, 3, 0, 3, 3, 3, 0]))
    return StrategyProblem(nodes, edges, 22)


def test_progress_tells_cost_and_bound_and_ends_the_search() -> None:
    told: list[tuple[float | None, float]] = []

    def progress(cost: float | None, bound: float) -> bool:
        told.append((cost, bound))
        return len(told) < 2

    solution = layers(60).solve(rounds=50, progress=progress)
    assert solution.rounds == len(told) <= 2
    assert solution.status == "feasible"
    assert told[-1][0] is not None
    assert solution.bound <= solution.cost <= told[-1][0] + 1e-6


def test_an_exception_of_progress_ends_the_search() -> None:
    def progress(cost: float | None, bound: float) -> None:
        raise LookupError(cost, bound)

    with pytest.raises(LookupError):
        layers(20).solve(rounds=50, progress=progress)


def test_an_infeasible_limit_is_said_with_the_least_that_would_do() -> None:
    problem = layers(10).with_limit(4)
    solution = problem.solve(rounds=5)
    assert (solution.status, solution.bound, solution.rounds) == ("infeasible", math.inf, 0)
    assert solution.least_peak == 5
    least = problem.with_limit(solution.least_peak).solve(rounds=5)
    assert (least.status, least.peak) == ("feasible", 5)


def test_a_node_of_many_strategies_does_not_hold_up_the_search() -> None:
    """More than the tables of most moves have entries, and no neighbour to be kept instead."""
    costs = [1000 - 0.5 * more for more in range(999)] + [0.0]
    node: Node = (costs, list(range(1, 1001)), (0, 2))
    problem = StrategyProblem([node] * 30, [], limit=15_000)
    solution = problem.solve(rounds=11, threads=1)
    assert (solution.status, solution.rounds) == ("feasible", 11)
    assert 14_000 <= solution.bound <= 15_016 <= solution.cost <= 17_000


def test_the_contests_example() -> None:
    problem = StrategyProblem.from_json(json.dumps(EXAMPLE))
    assert (problem.num_nodes, problem.num_edges, problem.limit) == (5, 5, 50)
    solution = problem.solve(rounds=5)
    assert (solution.strategies, solution.cost) == ([0, 0, 2, 1, 0], 445)
    assert problem.evaluate([0, 0, 2, 0, 0])[0] == 545


def test_the_program_for_instances(tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    command = [sys.executable, str(ROOT / "benches/iopddl.py"), str(path), "1"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(lines[-1]) == [0, 0, 2, 1, 0]
    assert lines[0].startswith("feasible, cost 445, bound ")
    assert lines[1] == "memory 50 of 50"


def changed(*path: str | int, to: Any) -> str:
    """The example with one member replaced."""
    data = json.loads(json.dumps(EXAMPLE))
    at: Any = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected '{'"),
        ("{}{", "goes on"),
        ('{"problem', "within a string"),
        ('{"problem": {"nodes": {"costs": [[1', "expected ']'"),
        ('{"problem": {"nodes": {"costs": [[nan]]}}}', "expected a number"),
        ('{"problem": {"nodes": {"costs": [[1e999]]}}}', "expected a number"),
        ('{"a": ' + "[" * 5000, "too deeply"),
        ('{"a": ' * 5000, "too deeply"),
        (changed("problem", "nodes", "costs", to=[[1]]), "5 intervals, 1 costs and 5 usages"),
        (changed("problem", "nodes", "costs", 1, to=[]), "node 1 has 0 strategies"),
        (changed("problem", "nodes", "usages", 2, to=[1]), "node 2 has 3 costs and 1 usages"),
        (changed("problem", "nodes", "usages", 0, to=[-1]), "node 0 has the usage -1"),
        (changed("problem", "nodes", "intervals", 0, to=[1]), "interval 0 has 1 numbers"),
        (changed("problem", "nodes", "intervals", 0, to=[-1, 3]), "node 0 is live from -1 to 3"),
        (changed("problem", "edges", "costs", to=[[1]]), "5 pairs of nodes and 1 costs of edges"),
        (changed("problem", "edges", "nodes", 3, to=[2, 9]), "edge 3 names node 9; there are 5"),
        (changed("problem", "edges", "nodes", 3, to=[1, 2, 3]), "edge 3 has 3 numbers"),
        (changed("problem", "edges", "costs", 0, to=[1, 2, 3]), "its nodes have 2 pairs"),
    ],
)
def test_mistakes_in_files(text: str, message: str) -> None:
    with pytest.raises(ShardcoreError) as caught:
        StrategyProblem.from_json(text)
    assert message in str(caught.value)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_files_are_problems_or_mistakes(data: st.DataObject) -> None:
    text = json.dumps(EXAMPLE)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    put = data.draw(st.text(alphabet='[]{},:"\\0159-e.x é', max_size=4))
    try:
        problem = StrategyProblem.from_json(text[:start] + put + text[end:])
    except ShardcoreError:
        return
    problem.solve(rounds=1)


def test_mistakes_in_arguments() -> None:
    problem = StrategyProblem([([1.0, 2.0], [1, 1], (0, 1))], [])
    for chosen in ([], [2], [0, 0]):
        with pytest.raises(ShardcoreError):
            problem.evaluate(chosen)
    for cost in (math.nan, -math.inf):
        with pytest.raises(ShardcoreError, match="node 0 has the cost"):
            StrategyProblem([([cost], [1], (0, 1))], [])
    for arguments in ({"seconds": -1.0}, {"seconds": math.nan}, {"threads": 0}):
        with pytest.raises(ValueError, match=r"seconds|threads"):
            problem.solve(**arguments)  # type: ignore[arg-type]
    assert problem.limit is None
    assert "1 nodes" in repr(problem)
    assert "feasible" in repr(problem.solve(rounds=1))
