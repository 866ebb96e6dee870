"""Times that are known from other programs are those that a program has by itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from shardcore import Cost, Module, cost
from shardcore.calculus.hardware import hardware
from shardcore.costs import links, rates

CASES: list[dict[str, Any]] = [
    {"hardware": "tpu-v5p"},
    {"hardware": "h100"},
    {"topology": "4x2"},
    {"topology": "2x4", "mapping": "x=1 y=0"},
    {"topology": "4x2", "mapping": "x=0 y=1"},
    {"topology": "2x2x2", "mapping": "x=0,1 y=2"},
    {"topology": "4x2x2", "mapping": "x=0 y=1,2"},
    {"topology": "4x4x1", "mapping": "x=0 y=1,2"},
    {"topology": "4x2x2", "mapping": "x=1,2 y=0"},
    {"slices": 2},
    {"slices": 2, "dcn": 1e8},
    {"exact": True},
    {"efficiency": 0.5},
    {"one_way": True},
    {"combine": 0},
]
"""Meshes that do not fit a topology are refused."""

MESHES = ('["x"=4, "y"=2]', '["x"=2, "y"=4]', '["x"=4, "y"=4]')


def program(mesh: str, axis: str, element: str, op: str) -> str:
    """An op on two matrices, the second of which is gathered along ``axis``."""
    ty = f"tensor<1024x1024x{element}>"
    sharding = "{sdy.sharding = #sdy.sharding<@mesh, [%s, {}]>}"
    return f"""
sdy.mesh @mesh = <{mesh}>
func.func @main(
    %a: {ty}, %b: {ty} {sharding % f'{{"{axis}"}}'}) -> ({ty} {sharding % "{}"}) {{
  %w = sdy.sharding_constraint %b <@mesh, [{{}}, {{}}]> : {ty}
  %0 = {op} : ({ty}, {ty}) -> {ty}
  return %0 : {ty}
}}"""


OPS = (
    "stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]",
    '"stablehlo.add"(%a, %w)',
    '"stablehlo.add"(%w, %w)',
)
ELEMENTS = ("bf16", "f32", "f8E4M3FN", "i8")
TEXTS = [program(*parts) for parts in product(MESHES, "xy", ELEMENTS, OPS)]


def forget() -> None:
    links._known.cache_clear()
    links._placed.cache_clear()
    rates._known_times.cache_clear()


def figures(text: str, case: dict[str, Any]) -> dict[str, Any] | str:
    try:
        found: Cost = cost(Module.parse(text), **case)
    except ValueError as error:
        return str(error)
    return found.record()


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any] | str]:
    """What each program costs when nothing is known."""
    found = []
    for text, case in product(TEXTS, CASES):
        forget()
        found.append(figures(text, case))
    return found


@pytest.mark.parametrize("order", [list, lambda rows: list(rows)[::-1]], ids=["first", "last"])
def test_what_others_left_changes_nothing(
    alone: list[dict[str, Any] | str], order: Callable[[Any], list[Any]]
) -> None:
    forget()
    rows = order(zip(product(TEXTS, CASES), alone, strict=True))
    assert len({str(row) for _, row in rows}) > 100
    for (text, case), wanted in rows:
        assert figures(text, case) == wanted, (text, case)


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(links, "_MOST_TRANSFERS", 2)
    monkeypatch.setattr(rates, "_MOST_TIMES", 2)
    found = [figures(text, {"hardware": "tpu-v5p"}) for text in TEXTS]
    assert len(rates._known_times(hardware("tpu-v5p"), 1.0, False)) <= 2
    forget()
    monkeypatch.undo()
    assert [figures(text, {"hardware": "tpu-v5p"}) for text in TEXTS] == found


EXAMPLE = Path(__file__).parents[2] / "examples" / "mlp.mlir"


@pytest.mark.parametrize("chip", ["h100", "tpu-v5e", "mi300x"])
def test_what_is_asked_first_changes_nothing(chip: str) -> None:
    # Kernels, the peak and live ranges are read from what is found out for the first of them.
    def asked(*names: str) -> dict[str, Any]:
        rows = cost(Module.parse(EXAMPLE.read_text()), chip).rows
        return {name: getattr(rows, name) for name in names}

    names = ("kernels", "peak_bytes", "live_ranges")
    alone = {name: asked(name)[name] for name in names}
    assert alone["kernels"]
    for order in permutations(names):
        assert asked(*order) == alone, order


def test_an_edit_shares_the_kinds_of_ops() -> None:
    session = Module.parse(TEXTS[0]).session()
    before = session.cost("tpu-v5p").rows._work
    session.set("%a", '[{"x"}, {}]')
    after = session.cost("tpu-v5p").rows._work
    known = {kind: kind for kind, _ in before}
    shared = [kind for kind, _ in after if kind in known]
    assert shared
    assert all(known[kind] is kind for kind in shared)
