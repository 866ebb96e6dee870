"""Expectations of trees that are alike are joined."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcore import Module
from shardcore.expect.trees import joined
from shardcore.session.paths import end_of

X, Y = '[{"x"}, {}]', "[{}, {}]"


def test_trees_that_end_alike_are_one_row() -> None:
    labels = [
        f"{tree}['layers'][{number}]['{leaf}']"
        for tree in ("state['params']", "state['adam']['m']", "result[0]['params']")
        for number in range(3)
        for leaf in "qb"
    ]
    rows = [
        (f"{tree}['layers'][*]['{leaf}']", X if leaf == "q" else Y)
        for tree in ("state['params']", "state['adam']['m']", "result[0]['params']")
        for leaf in "qb"
    ]
    assert joined(rows, labels) == [
        ("**['layers'][*]['q']", X),
        ("**['layers'][*]['b']", Y),
    ]
    # One leaf that has another sharding is no part of it, and keeps the end from standing for all.
    other = "state['adam']['v']['layers'][0]['q']"
    found = joined([*rows, (other, Y)], [*labels, other])
    assert ("**['layers'][*]['q']", X) not in found
    assert found[0] == ("**['params']['layers'][*]['q']", X)
    assert (other, Y) in found
    # So does one that no row stands for.
    assert joined(rows, [*labels, other])[0] == ("**['params']['layers'][*]['q']", X)


@pytest.mark.parametrize(
    ("path", "count", "end"),
    [
        ("s['params']['w']", 1, "['w']"),
        ("s[0]['kernel'].value", 2, "['kernel'].value"),
        ("state.params.w", 2, ".params.w"),
        ("params/w", 2, "params/w"),
        ("w", 3, "w"),
        ("**['a']['w']", 1, "['w']"),
    ],
)
def test_ends_of_paths(path: str, count: int, end: str) -> None:
    assert end_of(path, count) == end


def test_new_files_of_training_steps_are_short(tmp_path: Path) -> None:
    """Four layers with their moments."""
    leaves = {"q": '{"x"}, {}', "k": '{"x"}, {}', "o": '{}, {"x"}', "scale": "{}, {}"}
    trees = ["params", "m", "v"]
    arguments, results = [], []
    for tree in trees:
        for number in range(4):
            for leaf, dims in leaves.items():
                name = f"%{tree}{number}{leaf}"
                sharding = f"sdy.sharding = #sdy.sharding<@mesh, [{dims}]>"
                path = f"['layers'][{number}]['{leaf}']"
                arguments.append(
                    f"{name}: tensor<8x8xf32> {{{sharding}}} loc(\"state['{tree}']{path}\")"
                )
                info = f"jax.result_info = \"result['{tree}']{path}\""
                results.append((name, f"tensor<8x8xf32> {{{info}, {sharding}}}"))
    names = ", ".join(name for name, _ in results)
    types = ", ".join(type_ for _, type_ in results)
    plain = ", ".join(["tensor<8x8xf32>"] * len(results))
    result = Module.parse(
        f'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main({", ".join(arguments)}) -> ({types}) '
        f"{{\n  return {names} : {plain}\n}}"
    ).propagate()
    path = tmp_path / "new.toml"
    assert result.check(path, update=True)
    rows = path.read_text().split("\n\n")[0].splitlines()[1:]
    assert rows == [f"\"**['layers'][*]['{leaf}']\" = '[{dims}]'" for leaf, dims in leaves.items()]
    assert result.check(path)
