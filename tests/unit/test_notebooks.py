"""What notebooks and ``print`` show of results and others."""

from __future__ import annotations

import re
from typing import Any

import pytest
import shardcore
from shardcore import Module

from tests.page.test_page import TWO

EVIL = "<script>alert(1)</script>"


def shown() -> dict[str, tuple[Any, str]]:
    """What is displayed, and a text that it has to have."""
    module = Module.parse(TWO.replace('"x"', f'"{EVIL}"'))
    result = module.propagate()
    cost = result.cost("tpu-v5e")
    session = module.session()
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
