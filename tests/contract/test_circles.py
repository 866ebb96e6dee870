"""Imports among the files of a module do not go round in circles, but for those listed here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "rust" / "src"

# The size of the largest circle that a module may have, and why it has one. A circle that is gone
# goes from the list, and one that became smaller gets its new size.
ALLOWED = {
    "ir": (
        8,
        "`Program` holds the tables, and each file adds the methods of its table to `Program`",
    ),
    "cost": (2, "the rows of a cost, and the walk that fills them"),
    "work": (5, "the work of an op by its name, and families that ask for that of others"),
    "import": (3, "the call graph in `mod.rs` and what clones by it"),
    "partition": (2, "a halo is reversed, and a reversal leaves a halo"),
    "verify": (2, "`Verifier` holds the names that one of its parts looks for"),
    "python": (5, "classes that return each other"),
}

File = tuple[str, ...]


def code(path: Path) -> str:
    """The text of a file without comments and without the tests at its end."""
    text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
    return re.sub(r"//.*", "", text)


def read_files() -> dict[File, str]:
    """The code of every file but tests, by the path of its module."""
    files = {}
    for path in sorted(SOURCE.rglob("*.rs")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if not any("tests" in part for part in parts):
            parts = parts[:-1] if parts[-1] in ("mod", "lib") else parts
            files[parts] = code(path)
    return files


FILES = read_files()


def leaves(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of a tree of imports, `a::{b, c::{d, e}}`."""
    nested = re.fullmatch(r"((?:\w+\s*::\s*)*)\{(.*)\}", tree.strip(), re.DOTALL)
    if nested is None:
        path = re.sub(r"\s+as\s+\w+$", "", tree.strip())
        yield prefix + tuple(part.strip() for part in path.split("::"))
        return
    prefix += tuple(part.strip() for part in nested[1].split("::") if part.strip())
    depth, item = 0, ""
    for char in nested[2] + ",":
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if item.strip():
                yield from leaves(item, prefix)
            item = ""
        else:
            item += char


def absolute(file: File, path: tuple[str, ...]) -> tuple[File, tuple[str, ...]] | None:
    """The module that a path starts from, and the rest of it; None if that is another crate."""
    if path[0] == "crate":
        return (), path[1:]
    if path[0] == "self":
        return file, path[1:]
    start = file
    while path and path[0] == "super":
        start, path = start[:-1], path[1:]
    if start is file and (*file, path[0]) not in FILES:
        return None
    return start, path


@cache
def imports(file: File) -> list[tuple[File, tuple[str, ...]]]:
    """What `use` says in a file."""
    uses = re.findall(r"\buse\s+([^;]+);", FILES[file])
    paths = (absolute(file, path) for tree in uses for path in leaves(tree))
    return [path for path in paths if path is not None]


@cache
def definitions(file: File) -> frozenset[str]:
    """The names of what a file defines."""
    kinds = r"\b(?:struct|enum|fn|trait|type|const|static|macro_rules!)"
    return frozenset(re.findall(rf"{kinds}\s+(\w+)", FILES[file]))


def defining_file(start: File, path: tuple[str, ...], hops: int = 6) -> File | None:
    """The file that defines what a path from `start` names, through what is exported anew."""
    while path and (*start, path[0]) in FILES:
        start, path = (*start, path[0]), path[1:]
    if not path or not hops:
        return start
    if path[0] not in definitions(start):
        for module, inner in imports(start):
            if inner and inner[-1] == path[0] and (module, inner) != (start, path):
                return defining_file(module, inner + path[1:], hops - 1)
    return start


@cache
def graph() -> dict[File, set[File]]:
    """For each file the other files of its module that it names."""
    edges: dict[File, set[File]] = {}
    for file, text in FILES.items():
        body = re.sub(r"\buse\s+[^;]+;|pub\([^)]*\)", "", text)
        inline = (
            m[1].split("::") for m in re.finditer(r"\b((?:crate|super|self)(?:::\w+)+)", body)
        )
        named = [*imports(file), *filter(None, (absolute(file, tuple(path)) for path in inline))]
        targets = {defining_file(*path) for path in named}
        edges[file] = {to for to in targets if to and to != file and to[:1] == file[:1]}
    return edges


def circles(edges: dict[File, set[File]]) -> list[set[File]]:
    """The sets of files of which each leads to all others (Kosaraju's algorithm)."""
    order: list[File] = []
    seen: set[File] = set()

    def visit(file: File, along: dict[File, set[File]], out: list[File]) -> None:
        seen.add(file)
        stack = [(file, iter(sorted(along[file])))]
        while stack:
            here, others = stack[-1]
            following = next((other for other in others if other not in seen), None)
            if following is None:
                out.append(here)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(along[following]))))

    for file in sorted(edges):
        if file not in seen:
            visit(file, edges, order)
    back: dict[File, set[File]] = defaultdict(set)
    for file, others in edges.items():
        for other in others:
            back[other].add(file)
    seen.clear()
    found = []
    for file in reversed(order):
        if file not in seen:
            members: list[File] = []
            visit(file, back, members)
            if len(members) > 1:
                found.append(set(members))
    return found


def test_a_circle_is_found() -> None:
    edges: dict[File, set[File]] = {
        ("a",): {("b",)},
        ("b",): {("c",)},
        ("c",): {("a",)},
        ("d",): {("a",)},
    }
    assert circles(edges) == [{("a",), ("b",), ("c",)}]
    assert circles({("a",): {("b",)}, ("b",): set()}) == []


def test_imports_are_followed_to_the_file_that_defines() -> None:
    assert set(leaves("a::{b, c::{d as e, self}}")) == {
        ("a", "b"),
        ("a", "c", "d"),
        ("a", "c", "self"),
    }
    assert defining_file(("mlir",), ("AttrValue",)) == ("mlir", "attributes", "value")
    assert defining_file((), ("mlir", "reader", "parse")) == ("mlir", "reader", "read")


def test_no_circles_but_those_listed() -> None:
    largest: dict[str, set[File]] = {}
    for circle in circles(graph()):
        module = min(circle)[0]
        largest[module] = max(largest.get(module, set()), circle, key=len)
    wrong = {
        module: sorted("/".join(file) for file in circle)
        for module, circle in largest.items()
        if len(circle) > ALLOWED.get(module, (0, ""))[0]
    }
    assert not wrong
    assert set(ALLOWED) <= set(largest), "these have no circle any more"
