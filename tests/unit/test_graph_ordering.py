"""Rows of a drawn graph: what depends on what is above it, and few edges cross."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore.report.graph.ordering import Edge, Rows, parts


def crossings(rows: Rows, cut: list[Edge]) -> int:
    """Counted pair by pair."""
    row = {item: number for number, each in enumerate(rows) for item in each}
    place = {item: at for each in rows for at, item in enumerate(each)}
    return sum(
        row[a] == row[c] and (place[a] - place[c]) * (place[b] - place[d]) < 0
        for (a, b), (c, d) in combinations(cut, 2)
    )


@given(st.sets(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=40))
def test_edges_lead_down_by_one_row(steps: set[tuple[int, int]]) -> None:
    edges = [(source, source + step) for source, step in steps]
    nodes = {node for edge in edges for node in edge}
    seen: list[int] = []
    for rows, cut in parts(edges, 29):
        row = {item: number for number, each in enumerate(rows) for item in each}
        assert all(row[target] == row[source] + 1 for source, target in cut)
        assert all(rows)
        seen += [item for item in row if item < 29]
        # Followed from a node, the edges are those that were given.
        for source, target in edges:
            if source in row:
                assert row[source] < row[target]
        after: dict[int, list[int]] = {}
        for source, target in cut:
            after.setdefault(source, []).append(target)
        for node in seen:
            ends = [_end(other, after) for other in after.get(node, [])]
            assert node not in row or sorted(ends) == sorted(b for a, b in edges if a == node)
    assert sorted(seen) == sorted(nodes)


def _end(item: int, after: dict[int, list[int]]) -> int:
    while item >= 29:
        [item] = after[item]
    return item


@pytest.mark.parametrize(
    "edges",
    [
        # A tree whose leaves come in another order.
        [(0, 7), (1, 8), (2, 7), (3, 9), (4, 8), (5, 9), (6, 9), (7, 10), (8, 10), (9, 10)],
        # Two chains side by side, with an edge that passes rows.
        [(0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7), (6, 8), (7, 8), (0, 8)],
    ],
)
def test_what_can_be_drawn_without_crossings_is(edges: list[Edge]) -> None:
    [(rows, cut)] = parts(edges, 11)
    assert crossings(rows, cut) == 0


def test_arguments_are_beside_what_uses_them() -> None:
    [(rows, _)] = parts([(0, 2), (2, 4), (4, 6), (1, 6)], 7)
    assert rows[2] == [4, 1] or rows[2] == [1, 4]
