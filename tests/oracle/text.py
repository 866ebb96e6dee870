"""Parses the `sdy` text of meshes, shardings and rules; `str` prints it.

The attribute's name may be in front (`#sdy.sharding<..>`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from .axis import AxisRef
from .mesh import Mesh
from .rule import OpShardingRule, TensorMapping
from .sharding import DimSharding, TensorSharding

T = TypeVar("T")

TOKEN = re.compile(r'\s*(?:#sdy\.\w+|("[^"]*"|@"[^"]*"|@[\w.$-]+|->|\w+|[^\s\w]))\s*')


class OracleSyntaxError(ValueError):
    """A text that the oracle cannot parse."""


class Reader:
    """A list of tokens, read from the front."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        end = 0
        while end < len(text):
            match = TOKEN.match(text, end)
            if match is None:
                raise OracleSyntaxError(f"unexpected text at {text[end:]!r}")
            if match.group(1) is not None:
                self.tokens.append(match.group(1))
            end = match.end()

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def next(self) -> str:
        if not self.tokens:
            raise OracleSyntaxError(f"text ends too early: {self.text!r}")
        return self.tokens.pop(0)

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.next()
        return True

    def expect(self, token: str) -> None:
        got = self.next()
        if got != token:
            raise OracleSyntaxError(f"expected {token!r}, got {got!r} in {self.text!r}")

    def number(self) -> int:
        got = self.next()
        if not got.isdecimal():
            raise OracleSyntaxError(f"expected a number, got {got!r} in {self.text!r}")
        return int(got)

    def name(self) -> str:
        got = self.next()
        if not got.startswith('"'):
            raise OracleSyntaxError(f"expected a name, got {got!r} in {self.text!r}")
        return got.strip('"')

    def items(self, opening: str, item: Callable[[], T], closing: str) -> list[T]:
        """Read `opening item, item closing`."""
        self.expect(opening)
        found: list[T] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(item())
        return found


def _parse(text: str, read: Callable[[Reader], T]) -> T:
    reader = Reader(text)
    result = read(reader)
    if reader.tokens:
        raise OracleSyntaxError(f"left over: {reader.tokens} in {text!r}")
    return result


def _mesh(reader: Reader) -> Mesh:
    def mesh_axis() -> tuple[str, int]:
        name = reader.name()
        reader.expect("=")
        return name, reader.number()

    reader.expect("<")
    axes = reader.items("[", mesh_axis, "]")
    device_ids: list[int] = []
    if reader.accept(","):
        reader.expect("device_ids")
        reader.expect("=")
        device_ids = reader.items("[", reader.number, "]")
    reader.expect(">")
    return Mesh(tuple(axes), tuple(device_ids))


def _axis_ref(reader: Reader) -> AxisRef:
    name = reader.name()
    if not reader.accept(":"):
        return AxisRef(name)
    reader.expect("(")
    pre_size = reader.number()
    reader.expect(")")
    return AxisRef(name, pre_size, reader.number())


def _dim_sharding(reader: Reader) -> DimSharding:
    axes: list[AxisRef] = []
    is_closed = True
    reader.expect("{")
    while not reader.accept("}"):
        if axes:
            reader.expect(",")
        if reader.accept("?"):
            is_closed = False
            reader.expect("}")
            break
        axes.append(_axis_ref(reader))
    priority = None
    if re.fullmatch(r"p(0|[1-9]\d*)", reader.peek()):
        priority = int(reader.next()[1:])
    return DimSharding(tuple(axes), is_closed, priority)


def _tensor_sharding(reader: Reader) -> TensorSharding:
    reader.expect("<")
    mesh: str | Mesh
    mesh = _mesh(reader) if reader.accept("mesh") else reader.next().removeprefix("@").strip('"')
    reader.expect(",")
    dims = reader.items("[", lambda: _dim_sharding(reader), "]")
    lists: dict[str, list[AxisRef]] = {"replicated": [], "unreduced": []}
    while reader.accept(","):
        kind = reader.next()
        if lists.get(kind, True):
            raise OracleSyntaxError(f"unexpected {kind!r}")
        reader.expect("=")
        lists[kind] = reader.items("{", lambda: _axis_ref(reader), "}")
    reader.expect(">")
    return TensorSharding(mesh, tuple(dims), tuple(lists["replicated"]), tuple(lists["unreduced"]))


def _sharding_per_value(reader: Reader) -> list[TensorSharding]:
    reader.expect("<")
    shardings = reader.items("[", lambda: _tensor_sharding(reader), "]")
    reader.expect(">")
    return shardings


def _factors(symbols: str) -> tuple[int, ...]:
    """Read a run of factor symbols, such as `ijz_2`."""
    factors = []
    for symbol, number in re.findall(r"z_(?=(\d+))\d+|([i-z])", symbols):
        factors.append(int(symbol) + 17 if symbol else ord(number) - ord("i"))
    return tuple(factors)


def _rule(reader: Reader) -> OpShardingRule:
    def mapping() -> TensorMapping:
        return tuple(reader.items("[", lambda: _factors(reader.next()), "]"))

    def factor() -> int:
        (only,) = _factors(reader.next())
        return only

    def factor_and_size() -> int:
        factor()
        reader.expect("=")
        return reader.number()

    reader.expect("<")
    operands = reader.items("(", mapping, ")")
    reader.expect("->")
    results = reader.items("(", mapping, ")")
    sizes = reader.items("{", factor_and_size, "}") if reader.peek() == "{" else []
    special: dict[str, tuple[int, ...]] = {}
    for kind in ("reduction", "need_replication", "permutation", "blocked_propagation"):
        special[kind] = ()
        if reader.accept(kind):
            reader.expect("=")
            special[kind] = tuple(reader.items("{", factor, "}"))
    is_custom = reader.accept(",")
    if is_custom:
        reader.expect("custom")
    reader.expect(">")
    return OpShardingRule(
        tuple(sizes),
        tuple(operands),
        tuple(results),
        special["reduction"],
        special["need_replication"],
        special["permutation"],
        special["blocked_propagation"],
        is_custom,
    )


def parse_mesh(text: str) -> Mesh:
    return _parse(text, _mesh)


def parse_axis_ref(text: str) -> AxisRef:
    return _parse(text, _axis_ref)


def parse_dim_sharding(text: str) -> DimSharding:
    return _parse(text, _dim_sharding)


def parse_sharding(text: str) -> TensorSharding:
    return _parse(text, _tensor_sharding)


def parse_sharding_per_value(text: str) -> list[TensorSharding]:
    return _parse(text, _sharding_per_value)


def parse_rule(text: str) -> OpShardingRule:
    return _parse(text, _rule)
