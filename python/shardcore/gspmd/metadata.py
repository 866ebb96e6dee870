"""Parses the ``metadata={...}`` of a sharding, which names its op. It is checked and dropped.

Source: XLA's text of ``OpMetadata``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.gspmd.cursor import Cursor

__all__ = ["read_metadata"]

_STRINGS = (
    "deduplicated_name",
    "metadata_payload",
    "op_name",
    "op_type",
    "scheduling_name",
    "source_file",
)
_NUMBERS = (
    "source_column",
    "source_end_column",
    "source_end_line",
    "source_line",
    "stack_frame_id",
)
_LISTS = ("profile_type",)


def read_metadata(cursor: Cursor) -> None:
    """Step over ``{op_name="a" source_line=3}``, or several of them in braces."""
    cursor.expect("{", "to start the metadata")
    if not cursor.sees("{"):
        _one(cursor)
        return
    while True:
        cursor.expect("{", "to start the metadata of one op")
        _one(cursor)
        if not cursor.accept(","):
            break
    cursor.expect("}", "to end the metadata")


def _one(cursor: Cursor) -> None:
    seen: set[str] = set()
    while not cursor.accept("}"):
        cursor.accept(",")
        start = cursor.at
        name = cursor.attribute()
        span = (start, max(start + len(name), start + 1))
        if name in seen:
            raise cursor.error(f"{name} is given twice", "drop one", span)
        seen.add(name)
        if name in _STRINGS:
            cursor.string("a text")
        elif name in _NUMBERS:
            cursor.number(name)
        elif name in _LISTS:
            cursor.expect("{", "to start the list")
            if not cursor.accept("}"):
                cursor.numbers(name)
                cursor.expect("}", "to end the list")
        else:
            known = ", ".join(sorted((*_STRINGS, *_NUMBERS, *_LISTS)))
            raise cursor.error("this is no metadata of an op", f"there is {known}", span)
