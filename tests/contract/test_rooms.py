"""The rooms of propagation: each uses those above it in the table of `propagation/mod.rs` only."""

from __future__ import annotations

import re

from tests.contract.test_circles import SOURCE, graph

PAGE = (SOURCE / "propagation" / "mod.rs").read_text(encoding="utf-8")
# Passes and tests, which stand on all rooms.
ABOVE = {"populate_op_sharding_rules", "tests"}


def rooms() -> list[str]:
    """The rooms, lowest first."""
    section = PAGE.split("//! # Rooms")[1].split("//! # ")[0]
    return re.findall(r"^//! \| \[`(\w+)`\] \|", section, re.MULTILINE)


def test_every_room_is_listed() -> None:
    listed = rooms()
    assert set(re.findall(r"^(?:pub )?mod (\w+);$", PAGE, re.MULTILINE)) == {*listed, *ABOVE}
    assert len(listed) == len(set(listed))


def test_rooms_use_those_above_them_only() -> None:
    height = {room: index for index, room in enumerate(rooms())}
    wrong = [
        f"{'/'.join(file)} uses {'/'.join(used)}"
        for file, targets in graph().items()
        if file[0:1] == ("propagation",) and len(file) > 1 and file[1] not in ABOVE
        for used in targets
        if len(used) < 2 or height[used[1]] > height[file[1]]
    ]
    assert not wrong


def test_shardings_change_in_the_state_only() -> None:
    # Groups are made equal before the clock starts.
    allowed = {"state.rs", "plan/groups.rs", "tests.rs"}
    setters = re.compile(r"\.(?:assign_sharding|set_\w*sharding\w*|value_shardings)\b")
    root = SOURCE / "propagation"
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.rs")
        if setters.search(path.read_text(encoding="utf-8"))
    }
    assert "state.rs" in found
    assert found <= allowed


def test_the_readable_form_and_the_tests_of_shortcuts_exist() -> None:
    for path in re.findall(r"`((?:tests|rust)/[\w/]+\.py)`", PAGE):
        assert (SOURCE.parents[1] / path).exists(), path
    section = PAGE.split("//! # Shortcuts")[1].split("\nmod ")[0]
    rows = [row.split("|") for row in re.findall(r"^//! \|(.*)\|$", section, re.MULTILINE)][2:]
    assert rows
    root = SOURCE.parents[1]
    files = [*SOURCE.rglob("*.rs"), *(root / "tests").rglob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    defined = set(re.findall(r"\b(?:fn|def) (\w+)", text))
    for row in rows:
        names = re.findall(r"`(\w+)[^`]*`", row[-1])
        assert names, row
        for name in names:
            assert name in defined, name
