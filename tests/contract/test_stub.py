"""The stub alone documents the extension: comments of its Rust side say in a line or two what a
member is, and leave arguments, units and errors to the stub.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "rust" / "src" / "python"
MOST_LINES = 2
BLOCK = re.compile(r"^impl\b.*?^}", re.MULTILINE | re.DOTALL)
ITEM = r"^ *(?:pub\S* )?(?:fn|struct|enum)"
ATTRIBUTES = rf"(?:^(?! *///)(?!{ITEM} ).*\n)*?"
DOC = re.compile(rf"((?:^ *///.*\n)+){ATTRIBUTES}{ITEM} ([a-zA-Z]\w*)", re.MULTILINE)
EXPORTED = re.compile(r"^#\[py(?:class|function)\b", re.MULTILINE)


def documented() -> Iterator[tuple[str, str]]:
    """The comment of each class, function and method that Python sees, by file and name."""
    for path in sorted(SOURCE.glob("*.rs")):
        text = path.read_text(encoding="utf-8")
        for part in text.split("#[pymethods]\n")[1:]:
            block = BLOCK.match(part)
            assert block, path
            yield from ((f"{path.name}: {name}", doc) for doc, name in DOC.findall(block[0]))
        for found in DOC.finditer(text):
            if EXPORTED.search(found[0]):
                yield f"{path.name}: {found[2]}", found[1]


def test_comments_are_found() -> None:
    names = {name for name, _ in documented()}
    assert {"mesh.rs: PyMesh", "module.rs: factor_table", "rule_registry.rs: set_rule"} <= names


def test_the_rest_is_in_the_stub() -> None:
    long = [name for name, doc in documented() if doc.count("///") > MOST_LINES]
    assert long == []
