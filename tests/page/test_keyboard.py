"""The page without a mouse: what Tab reaches, what is seen of it, and what keys do there."""

from __future__ import annotations

from tests.page.browser import Browser
from tests.page.test_browser import gpt, gpt_page, texts

__all__ = ["gpt", "gpt_page"]

FOCUSED = """(() => {
  const one = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  return { id: one.id, tag: one.tagName, kind: one.getAttribute("class") ?? "",
    section: one.closest("section")?.id ?? one.closest("nav, header, aside")?.tagName ?? "",
    name: one.getAttribute("aria-label") ?? one.textContent,
    labels: [...(one.labels ?? [])].map((label) => label.textContent).join(" "),
    outline: outlineStyle === "none" ? 0 : parseFloat(outlineWidth),
    seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight };
})()"""


def test_tab_reaches_every_section_and_shows_where_it_is(gpt: Browser) -> None:
    gpt.press("Tab")
    assert gpt.run(FOCUSED)["kind"] == "skip"
    reached = []
    for _ in range(2000):
        found = gpt.run(FOCUSED)
        if found["tag"] == "BODY":
            break
        reached.append(found)
        gpt.press("Tab")
    sections = gpt.run("[...document.querySelectorAll('main > section')].map(({ id }) => id)")
    assert {each["section"] for each in reached} >= {"NAV", *sections}
    for each in reached:
        assert each["outline"] >= 2, each
        assert each["seen"], each
        assert each["name"].strip() or each["labels"].strip(), each
    # One stop for the rows of a table: arrows move between them.
    rows = [each for each in reached if each["tag"] == "TR"]
    assert len(rows) == len({each["section"] for each in rows})


def test_the_first_link_skips_to_the_sections(gpt: Browser) -> None:
    gpt.press("Tab")
    gpt.press("Enter")
    assert gpt.run("document.activeElement.id") == "main"
    gpt.press("Tab")
    first = gpt.run("document.querySelector('main section').id")
    assert gpt.run(FOCUSED)["section"] == first


def test_enter_and_space_open_and_escape_closes(gpt: Browser) -> None:
    for key in ("Enter", " "):
        gpt.run("document.querySelector('#values tbody tr').focus()")
        gpt.press("End")
        gpt.press(key)
        assert not gpt.run("document.getElementById('details').hidden")
        assert gpt.run("document.activeElement.id") == "details"
        # The next stop is in the panel.
        gpt.press("Tab")
        assert gpt.run(FOCUSED)["section"] == "ASIDE"
        gpt.press("Escape")
        assert gpt.run("document.getElementById('details').hidden")
        last = "document.activeElement === document.querySelector('#values tbody tr:last-child')"
        assert gpt.run(last)


def test_buttons_summaries_and_choices_act_on_keys(gpt: Browser) -> None:
    gpt.run("document.querySelector('#values thead button').focus()")
    gpt.press("Enter")
    order = "document.querySelector('#values thead th').getAttribute('aria-sort')"
    assert gpt.run(order) == "ascending"
    gpt.press(" ")
    assert gpt.run(order) == "descending"
    gpt.run("document.querySelector('#source summary').focus()")
    gpt.press("Enter")
    assert not gpt.run("document.querySelector('#source details').open")
    gpt.run("document.querySelector('#memory input').focus()")
    before = texts(gpt, "#memory .legend li")
    gpt.press("ArrowRight")
    assert gpt.run("document.querySelectorAll('#memory input')[1].checked")
    assert texts(gpt, "#memory .legend li") != before


def test_the_graph_is_walked_by_keys(gpt: Browser) -> None:
    gpt.run("document.querySelector('#graph svg [tabindex=\"0\"]').focus()")
    first = gpt.run("document.activeElement.getAttribute('aria-label')")
    gpt.press("ArrowRight")
    second = gpt.run("document.activeElement.getAttribute('aria-label')")
    assert second != first
    wide = "document.querySelector('#graph svg').getBoundingClientRect().width"
    whole = gpt.run(wide)
    gpt.press("+")
    assert gpt.run(wide) > whole
    gpt.press("0")
    assert gpt.run(wide) == whole
    # What is opened is shown in full size, left of the panel.
    gpt.press("Enter")
    assert texts(gpt, "#details h2")[0] in second
    assert gpt.run(wide) > whole
    right = "document.querySelector('#graph g.open').getBoundingClientRect().right"
    assert gpt.run(right) <= gpt.run("document.getElementById('details').getBoundingClientRect().x")
    gpt.press("Escape")
    assert gpt.run("document.activeElement.getAttribute('aria-label')") == second


def test_the_timeline_opens_what_the_cursor_is_on(gpt: Browser) -> None:
    gpt.run("document.querySelector('#timeline svg').focus()")
    # So that arrows stop at each piece.
    for _ in range(8):
        gpt.press("+")
    for _ in range(60):
        if texts(gpt, "#timeline .count")[0].startswith(("all_", "collective_", "reduce_scatter")):
            break
        gpt.press("ArrowRight")
    gpt.press("Enter")
    assert texts(gpt, "#details h2")[0].split()[0] in texts(gpt, "#timeline .count")[0]


def test_heads_of_rows_and_columns_have_a_scope(gpt: Browser) -> None:
    heads = gpt.run(
        "[...document.querySelectorAll('main th')].map((head) => "
        "[head.closest('thead') ? 'col' : 'row', head.scope])"
    )
    assert heads
    assert all(wanted == found for wanted, found in heads)
    unnamed = "[...document.querySelectorAll('main table')].filter((one) => !one.ariaLabel).length"
    assert gpt.run(unnamed) == 0
