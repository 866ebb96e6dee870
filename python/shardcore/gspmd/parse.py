"""Parses GSPMD's notation.

Words inside the braces may be in any order. ``metadata`` is skipped: it does not change the
sharding.
"""

from __future__ import annotations

from math import prod

from shardcore.bounded import MOST_ITEMS
from shardcore.expected import expect
from shardcore.gspmd.cursor import Cursor
from shardcore.gspmd.hlo_sharding import SUBGROUPS, HloSharding
from shardcore.gspmd.metadata import read_metadata
from shardcore.gspmd.named import is_named, parse_named
from shardcore.gspmd.tiles import MAX_LISTED, TileAssignment

__all__ = ["parse"]

_KINDS = ("replicated", "manual", "unknown", "unreduced", "maximal")


def parse(text: str) -> HloSharding:
    """Parse all of ``text``; see :meth:`HloSharding.parse`."""
    expect(text, str)
    if "Sharding(" in text:
        # The calculus is imported only for shardings that JAX prints.
        from shardcore.calculus.pasted import unwrap

        text = unwrap(text).text
    cursor = Cursor(text)
    if not cursor.sees("{"):
        raise cursor.error("a sharding starts with '{'")
    sharding = _sharding(cursor)
    if cursor.at < len(text):
        raise cursor.error("text after the end of the sharding", "drop it", (cursor.at, len(text)))
    return sharding


def _sharding(cursor: Cursor) -> HloSharding:
    ahead = Cursor(cursor.text)
    ahead.at = cursor.at
    ahead.expect("{", "to start a sharding")
    if not (ahead.sees("{") or ahead.sees("}")):
        return _single(cursor)
    cursor.at = ahead.at
    elements: list[HloSharding] = []
    start = cursor.at
    while not cursor.accept("}"):
        if elements:
            cursor.expect(",", "between the shardings of a tuple")
        if len(elements) == MOST_ITEMS:
            raise cursor.bad(f"a tuple of more than {MOST_ITEMS} shardings", start)
        elements.append(_single(cursor))
    return HloSharding("tuple", elements=tuple(elements))


class _Words:
    """The words read in the braces so far."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.device: int | None = None
        self.tiles: TileAssignment | None = None
        self.subgroups: list[str] | None = None
        self.group: tuple[str, int] | None = None


def _single(cursor: Cursor) -> HloSharding:
    start = cursor.at
    cursor.expect("{", "to start a sharding")
    if is_named(cursor):
        return HloSharding("named", named=parse_named(cursor))
    words = _Words()
    while not cursor.accept("}"):
        _word(cursor, words)
    return _finish(cursor, words, start)


def _word(cursor: Cursor, words: _Words) -> None:
    start = cursor.at
    word = cursor.word()
    span = (start, max(start + len(word or ""), start + 1))
    if word in _KINDS:
        if words.kind not in (None, word):
            raise cursor.error(f"{word} after {words.kind}", "a sharding is one of them", span)
        words.kind = word
    elif word == "device":
        cursor.equals(span[1], word)
        words.device = cursor.number("a device")
    elif word == "devices":
        if words.tiles is not None:
            raise cursor.error("devices are given twice", "drop one", span)
        cursor.equals(span[1], word)
        words.tiles = _tiles(cursor)
    elif word in ("last_tile_dim_replicate", "last_tile_dims"):
        if words.subgroups is not None:
            raise cursor.error("the last tile dims are given twice", "drop one", span)
        if word == "last_tile_dims":
            cursor.equals(span[1], word)
            words.subgroups = _subgroups(cursor)
        else:
            words.subgroups = ["replicated"]
    elif word in ("shard_as", "shard_like"):
        if words.group is not None:
            raise cursor.error("a second shard group", "a sharding is in one group", span)
        words.group = (word, cursor.number("a shard group"))
    elif word == "metadata":
        cursor.equals(span[1], word)
        read_metadata(cursor)
    else:
        if cursor.at >= len(cursor.text):
            raise cursor.error("the sharding is never closed", "add '}'")
        raise cursor.error("this is no part of a sharding", span=span)


def _subgroups(cursor: Cursor) -> list[str]:
    cursor.expect("{", "to start the last tile dims")
    kinds: list[str] = []
    while not cursor.accept("}"):
        if kinds:
            cursor.expect(",", "between the last tile dims")
        start = cursor.at
        kind = cursor.word() or ""
        if kind not in SUBGROUPS:
            hint = f"it is one of {', '.join(SUBGROUPS)}"
            span = (start, start + max(len(kind), 1))
            raise cursor.error("this is no kind of tile dim", hint, span)
        kinds.append(kind)
    return kinds


def _sizes(cursor: Cursor, what: str) -> tuple[int, ...]:
    cursor.expect("[", f"to start the {what}")
    start = cursor.at
    sizes = cursor.numbers("a size")
    if min(sizes) < 1:
        raise cursor.bad("sizes start at 1", start, "a dim that is not cut has size 1")
    cursor.product(sizes, start)
    cursor.expect("]", f"to end the {what}")
    return tuple(sizes)


def _tiles(cursor: Cursor) -> TileAssignment:
    start = cursor.at
    dims = _sizes(cursor, "tile dims")
    if cursor.accept("<="):
        reshape = _sizes(cursor, "dims of the devices")
        perm = cursor.iota_order(reshape)
        if prod(reshape) != prod(dims):
            message = f"{prod(dims)} tiles and {prod(reshape)} devices"
            raise cursor.bad(message, start, "both products have to be the same")
        return TileAssignment.iota(dims, reshape, perm)
    listed = cursor.at
    devices = cursor.numbers("a device", MAX_LISTED + 1)
    if len(devices) > MAX_LISTED:
        raise cursor.bad(f"more than {MAX_LISTED} devices", listed, "count them: <=[...]")
    if len(devices) != prod(dims):
        message = f"{prod(dims)} tiles and {len(devices)} devices"
        raise cursor.bad(message, start, "list one device for each tile")
    if len(set(devices)) != len(devices) or min(devices) < 0:
        raise cursor.bad("a device is listed twice, or negative", listed, "list each device once")
    if len(devices) == 1:
        raise cursor.bad("one device is no tiling", start, f"say {{maximal device={devices[0]}}}")
    return TileAssignment(dims, devices=tuple(devices))


def _finish(cursor: Cursor, words: _Words, start: int) -> HloSharding:
    if words.kind is None:
        if words.tiles is None:
            raise cursor.bad("the devices are missing", start)
        kinds = words.subgroups or []
        if words.device is not None:
            raise cursor.bad("a device and a list of devices", start, "drop one")
        if len(kinds) > len(words.tiles.dims):
            raise cursor.bad(
                f"{len(kinds)} last tile dims of {len(words.tiles.dims)}",
                start,
                "each kind is about one of the last dims",
            )
        return HloSharding.tiled(words.tiles, kinds).in_group(words.group)
    if words.tiles is not None or words.subgroups is not None:
        raise cursor.bad(f"{words.kind} shardings have no tiles", start, "drop one of both")
    if (words.kind == "maximal") != (words.device is not None):
        if words.kind == "maximal":
            raise cursor.bad("the device is missing", start, "say {maximal device=0}")
        raise cursor.bad(f"{words.kind} shardings have no device", start, "drop device=...")
    if words.device is not None and words.device < 0:
        raise cursor.bad("devices start at 0", start, "say {maximal device=0}")
    return HloSharding(words.kind, words.device, shard_group=words.group)
