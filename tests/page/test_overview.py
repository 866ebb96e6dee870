"""The head of the page, memory by kind, and arguments in groups, in Chromium."""

from __future__ import annotations

from pathlib import Path

from shardcore import Module

from tests.page.browser import Browser
from tests.page.test_browser import gpt, gpt_page, search, texts

__all__ = ["gpt", "gpt_page"]

MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
TENSOR = "tensor<8x16xf32>"


def test_memory_and_groups(gpt: Browser) -> None:
    assert texts(gpt, ".card span")[:3] == ["memory", "predicted step", "MFU"]
    assert any(text.startswith("activations") for text in texts(gpt, "#memory .legend li"))
    said = texts(gpt, "#memory .count")[0]
    assert said.startswith("the peak, ")
    gpt.run("document.querySelector('#memory svg').focus()")
    gpt.press("ArrowRight")
    assert texts(gpt, "#memory .count")[0] != said
    # Arguments of one kind and sharding are one row; what is sought is shown by itself.
    assert len(texts(gpt, "#arguments tbody tr")) <= 12
    gpt.click("#arguments tbody tr")
    assert len(texts(gpt, "#details .rows li")) > 1
    search(gpt, "state['params']")
    assert len(texts(gpt, "#arguments tbody tr")) == 16


def test_what_is_computed_and_what_is_waited_for_add_up(gpt: Browser) -> None:
    cost = gpt.run(
        "({ step: data.cost.step, exposed: data.cost.exposed, copied: data.cost.copied })"
    )
    cards = dict(zip(texts(gpt, ".card span"), texts(gpt, ".card b"), strict=True))
    ms = {name: float(value.split()[0]) for name, value in cards.items() if value.endswith(" ms")}
    parts = ms["computing"] + ms["waiting for collectives"]
    assert abs(parts - ms["predicted step"]) < 0.1
    # Cards show three digits.
    assert abs(ms["waiting for collectives"] - 1e3 * cost["exposed"]) < 0.05
    assert "32 devices" in texts(gpt, "header > p")[0]


def test_what_is_replicated_says_so(gpt: Browser) -> None:
    for section, column in (("arguments", 6), ("results", 5), ("values", 4)):
        gpt.run(f"document.querySelector('#{section} button.more:not([hidden])')?.click()")
        shown = texts(gpt, f"#{section} tbody tr > :nth-child({column})")
        assert "replicated" in shown
        assert "" not in shown
    names = texts(gpt, "#values tbody th")
    inserted = ["%shc" in name for name in names]
    assert any(inserted)
    assert inserted == sorted(inserted)


def test_places_in_diagnostics_are_links(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    program = tmp_path / "model.mlir"
    given = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    program.write_text(
        f"{MESH}func.func @main(%a: {TENSOR} {given}, %b: {TENSOR}) -> {TENSOR} {{\n"
        f"  %0 = stablehlo.custom_call @unknown(%a, %b) : ({TENSOR}, {TENSOR}) -> {TENSOR} "
        'loc("model.py":2:12)\n'
        f"  return %0 : {TENSOR}\n}}\n"
    )
    Module.from_file(program).propagate().report(tmp_path / "out.html")
    browser.open(tmp_path / "out.html")
    assert "model.py:2" in texts(browser, "#diagnostics .link")
    browser.click("#diagnostics .link")
    assert browser.run("document.querySelector('.line.marked code').textContent") == "    return x"
