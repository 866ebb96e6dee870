"""`docs/shardy.md` lists what each version of Shardy changed, as `rust/src/shardy.rs` has it.

`python tests/contract/test_shardy_page.py` writes the list anew.
"""

from __future__ import annotations

from pathlib import Path

from shardcore import _core

PAGE = Path(__file__).resolve().parents[2] / "docs" / "shardy.md"
HEADING = "## What each version changed\n"


def changes() -> str:
    sections = [
        f"### Shardy of jaxlib {version}\n\n" + "".join(f"- {text}\n" for text in texts)
        for version, texts in _core.shardy_changes().items()
        if texts
    ]
    return HEADING + "\n" + "\n".join(sections)


def test_the_page_lists_every_change() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(HEADING) :] == changes()


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page[: page.index(HEADING)] + changes(), encoding="utf-8")
