"""The head of the page, memory by kind, and arguments in groups, in Chromium."""

from __future__ import annotations

from tests.page.browser import Browser
from tests.page.test_browser import gpt, gpt_page, search, texts

__all__ = ["gpt", "gpt_page"]


def test_memory_and_groups(gpt: Browser) -> None:
    assert texts(gpt, ".card span")[:3] == ["memory", "predicted step", "MFU"]
    assert any(text.startswith("activations") for text in texts(gpt, "#memory .legend li"))
    said = texts(gpt, "#memory .count")[0]
    assert said.startswith("peak")
    gpt.run("document.querySelector('#memory svg').focus()")
    gpt.press("ArrowRight")
    assert texts(gpt, "#memory .count")[0] != said
    # Arguments of one kind and sharding are one row; what is sought is shown by itself.
    assert len(texts(gpt, "#arguments tbody tr")) <= 12
    gpt.click("#arguments tbody tr")
    assert len(texts(gpt, "#details .rows li")) > 1
    search(gpt, "state['params']")
    assert len(texts(gpt, "#arguments tbody tr")) == 16
