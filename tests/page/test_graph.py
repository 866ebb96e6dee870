"""The graph on a page, and propagation step by step on it, in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcore import Module

from tests.page.browser import Browser
from tests.page.test_browser import gpt, gpt_page, texts
from tests.page.test_page import TWO

__all__ = ["gpt", "gpt_page"]


@pytest.fixture(scope="module")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "two.html"
    Module.parse(TWO).propagate().report(path)
    return path


def test_propagation_is_stepped_through(browser: Browser, small_page: Path) -> None:
    browser.open(small_page)
    assert "after propagation" in texts(browser, "#frame")[0]
    browser.click("#back")
    assert "dot_general" in texts(browser, "#frame")[0]
    assert texts(browser, "#steps li")[0].startswith("%0  none \u2192 [{")
    browser.click("#back")
    assert "before propagation" in texts(browser, "#frame")[0]
    assert texts(browser, "#steps li") == []


def test_the_graph_shows_each_frame(browser: Browser, small_page: Path) -> None:
    browser.open(small_page)
    assert {"%a", "%b", "%0", "dot_general"} <= set(texts(browser, "#graph .label"))
    assert len(browser.run("[...document.querySelectorAll('#graph .annotated')].map(String)")) == 1
    assert "none" not in texts(browser, "#graph .label")
    browser.click("#back")
    assert len(browser.run("[...document.querySelectorAll('#graph .changed')].map(String)")) == 1
    browser.click("#back")
    assert "none" in texts(browser, "#graph .label")


def test_a_node_of_the_graph_opens(browser: Browser, small_page: Path) -> None:
    browser.open(small_page)
    browser.run("document.querySelector('#graph svg [tabindex=\"0\"]').focus()")
    browser.press("Enter")
    assert texts(browser, "#details h2") == ["%a"]
    # Its neighbours lead on, and the value to where its axes come from.
    browser.click("#details .rows .link")
    assert texts(browser, "#details h2") == ["dot_general"]
    assert [text.partition(",")[0] for text in texts(browser, "#details .rows .link")] == [
        "%a",
        "%b",
        "%0",
    ]
    browser.click("#details .rows .link")
    browser.click("#details dl > dd > .link")
    assert "an annotated argument" in texts(browser, "#details .why .origin")[0]


def test_the_graph_of_a_large_program_is_there(gpt: Browser) -> None:
    shown = texts(gpt, "#graph svg text")
    assert "gpt_step.py:77" in shown
    assert any(text.startswith("backward, 96 ops") for text in shown)
    assert any("--scope gpt_step.py:" in text for text in texts(gpt, "#graph p"))
    # It is seen as a whole, until one zooms.
    wide = "document.querySelector('#graph svg').getBoundingClientRect().width"
    assert gpt.run(wide) <= gpt.run("document.querySelector('.graph-view').clientWidth")
    gpt.click("#graph .tools button:last-child")
    assert gpt.run(wide) > gpt.run("document.querySelector('.graph-view').clientWidth")
    # Drawn without a scroll of the whole page.
    assert gpt.run("document.documentElement.scrollWidth <= window.innerWidth")
