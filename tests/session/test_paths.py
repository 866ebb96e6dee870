"""Paths of arguments and patterns of them."""

from __future__ import annotations

import pytest
from shardcore.session.paths import Pattern, steps


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x", ("x",)),
        ("params['layers'][3]['w']", ("params", "layers", "3", "w")),
        ("params/layers/3/w", ("params", "layers", "3", "w")),
        ("state.params['w']", ("state", "params", "w")),
        ("result[0]['loss']", ("result", "0", "loss")),
        ("p['Dense_0/kernel']", ("p", "Dense_0/kernel")),
        ("p['it\\'s']", ("p", "it's")),
        ('p["a.b"]', ("p", "a.b")),
        ("params**['w']", ("params", "**", "w")),
        ("[", ("[",)),
        ("", ()),
    ],
)
def test_steps(path: str, expected: tuple[str, ...]) -> None:
    assert steps(path) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("params/**/w", ["params['w']", "params['l'][0]['w']"], ["params['w']['b']", "x['w']"]),
        ("params['layers'][*]['w']", ["params['layers'][7]['w']"], ["params['layers']['w']"]),
        ("layer_*/q", ["layer_1['q']", "layer_['q']"], ["layer['q']", "layer_1['x']['q']"]),
        ("**", ["x", "params['w']"], []),
        ("**/w", ["w", "a['w']", "a['b']['w']"], ["a['w']['b']"]),
        ("a/**/b/**/c", ["a['b']['c']", "a['x']['b']['b']['c']"], ["a['c']['b']"]),
        ("p['a.*']", ["p['a.b']"], ["p['ab']"]),
    ],
)
def test_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    found = Pattern(pattern)
    assert [path for path in (*matching, *other) if found.matches(steps(path))] == matching


def test_patterns_take_time_linear_in_the_path() -> None:
    assert not Pattern("**/a" * 200).matches(("a",) * 199 + ("b",))
