"""What notebooks and ``print`` show of results and others."""

from __future__ import annotations

import re
from html import escape
from typing import Any
from unittest.mock import patch

import pytest
import shardcore
from shardcore import Diagnostic, Module, Session, VerificationError
from shardcore.units import format_bytes

from tests.page.test_page import TWO
from tests.session.test_session import TEXT as SESSION

EVIL = "<script>alert(1)</script>"


def shown() -> dict[str, tuple[Any, str]]:
    """What is displayed, and a text that it has to have."""
    module = Module.parse(TWO.replace('"x"', f'"{EVIL}"'))
    result = module.propagate()
    cost = result.cost("tpu-v5e")
    session = module.session()
    edited = module.session()
    edited.set(edited.module.arguments()[0].name, "P()")
    return {
        "Module": (module, "5 ops; 1 of 3 values are sharded"),
        "Result": (result, "values are sharded"),
        "Cost": (cost, "values that are live at the peak"),
        "Comparison": (shardcore.compare(cost, cost), "step, at least"),
        "Check": (
            result.check({"shardings": {"%0": "[{}, {}]"}}),
            "1 of 1 expectation does not hold",
        ),
        "FactorTable": (module.factor_table("%0"), "reduction"),
        "Why": (result.why("%0"), "the argument is annotated"),
        "WhyNot": (result.why_not("%0", 1, "y"), "is not on dim 1"),
        "Partitioned": (result.partition(), "a device sends"),
        "Session": (session, "annotated"),
        "EditedSession": (edited, "changed by the last edit"),
    }


@pytest.mark.parametrize("name", shown())
def test_they_display_as_escaped_html(name: str) -> None:
    value, text = shown()[name]
    html = value._repr_html_()
    assert text in html
    assert html.startswith(("<div", "<pre"))
    assert "<script" not in html
    opened = re.findall(r"<([a-z]+)[\s>]", html)
    closed = re.findall(r"</([a-z]+)>", html)
    assert sorted(tag for tag in opened if tag != "br") == sorted(closed)


@pytest.mark.parametrize("name", shown())
def test_their_text_has_no_escapes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Jupyter sets it, and has no terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in str(shown()[name][0])


@pytest.mark.parametrize("name", shown())
def test_their_text_is_returned_in_a_notebook(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = str(shown()[name][0])
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(shown()[name][0]) == outside


def test_axes_are_named_in_them() -> None:
    for name in ("Module", "Result", "Why", "Session", "FactorTable"):
        assert "&lt;script&gt;" in shown()[name][0]._repr_html_(), name


def test_a_lowered_function_displays_as_its_module() -> None:
    pytest.importorskip("jax")
    import jax
    import jax.numpy as jnp
    import shardcore.jax

    lowered = shardcore.jax.lower(jnp.tanh, jax.ShapeDtypeStruct((8,), jnp.float32))
    assert "tanh" in lowered._repr_html_() or "8xf32" in lowered._repr_html_()
    assert lowered._repr_html_() == lowered.module._repr_html_()  # type: ignore[attr-defined]
    assert "per device" in str(lowered.propagate())


def test_print_shows_arguments_and_results_with_layers_folded() -> None:
    arguments = ", ".join(
        f"%w{n}: tensor<{8 if n < 5 else 16}x8xf32> loc(\"params['layers'][{n}]['w']\")"
        for n in range(6)
    )
    text = f"""func.func @main({arguments}) -> (tensor<8x8xf32> {{jax.result_info = "result"}}) {{
  return %w0 : tensor<8x8xf32>
}}"""
    lines = str(Module.parse(text).propagate()).splitlines()
    assert lines[0].split() == ["argument", "shape", "sharding", "local", "shape", "per", "device"]
    assert lines[1].split()[:4] == ["params['layers'][*]['w']", "x", "5", "8x8xf32"]
    assert lines[2].split()[:2] == ["params['layers'][5]['w']", "16x8xf32"]
    assert lines[5].split()[:2] == ["result", "8x8xf32"]
    # The program is still what the module prints.
    assert str(Module.parse(text).propagate().module).startswith("func.func @main")


def rows_of(html: str) -> list[list[str]]:
    """The cells of the rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_a_session_shows_what_an_edit_changed_by_value_and_by_cost() -> None:
    session = Module.parse(SESSION).session()
    assert "changed" not in session._repr_html_()
    old, before = session.result, session.cost("tpu-v5e")
    session.set("x", "P('model')")
    session.set("params/b/w", "P()")
    session.undo()
    html = session._repr_html_()
    rows = rows_of(html)
    new, after = session.result, session.cost("tpu-v5e")
    places = {"x": "%arg0", "params['a']['w']": "%arg1", "params['b']['w']": "%arg2"}
    places |= {f"%{number}": f"%{number}" for number in range(6)}
    both = {
        escape(name): [escape(str(result[place].sharding or "")) for result in (old, new)]
        for name, place in places.items()
    }
    changed = {name: ["1", *texts] for name, texts in both.items() if len(set(texts)) > 1}
    assert 1 < len(changed) < len(both)
    listed = {row[0]: row[1:] for row in rows if len(row) == 4}
    assert {name: listed.get(name) for name in both} == {**dict.fromkeys(both), **changed}
    [arguments] = [row for row in rows if row[0] == "arguments"]
    assert arguments[1:3] == [format_bytes(cost.argument_bytes) for cost in (before, after)]
    assert "times are for tpu-v5e" in html
    session.set("x", "P('model')")
    assert "the last edit changed no sharding" in session._repr_html_()


def test_a_session_of_what_cannot_be_completed_says_so() -> None:
    session = Module.parse(SESSION).session()
    session.set("x", "P()")
    problem = VerificationError(Diagnostic("unsupported", "no <way>", "take another"))
    with patch.object(Session, "_propagated", side_effect=problem):
        assert "cannot be completed: no &lt;way&gt;" in session._repr_html_()
