"""GSPMD's notation, random and broken: what XLA takes we print alike, what it refuses we refuse.

XLA ends the process on some texts, so it is asked in a process that is started anew when it dies.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from math import prod

import pytest
from shardcore import HloSharding, Mesh, ShardcoreError

from tests.deep import IS_DEEP

pytest.importorskip("jaxlib._hlo")

CASES = 5_000 if IS_DEEP else 100

# What docs/gspmd.md lists: XLA takes it, though it makes no sense.
REFUSED = (
    "tiles and",
    "devices on a mesh of",
    "listed twice",
    "sizes start at 1",
    "no permutation",
    "have no tiles",
    "have no device",
    "must be at least 1",
    "negative",
    "devices start at 0",
    "this is no kind of tile dim",
    "no tiling",
    "after",
    "second shard group",
    "too large",
)
XLA = """
import json, sys
from jaxlib import _hlo

for line in sys.stdin:
    try:
        answer = str(_hlo.HloSharding.from_string(json.loads(line)))
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"""


class Xla:
    """XLA's reading of shardings, in a process of its own."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def read(self, text: str) -> tuple[str, str | None]:
        """``("takes", canonical text)``, ``("refuses", None)`` or ``("dies", None)``."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", XLA],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.close()
            return "dies", None
        found = json.loads(line)
        return ("refuses" if found is None else "takes"), found

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def xla():
    asked = Xla()
    yield asked
    asked.close()


class Writer:
    """Writes random shardings."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def cut(self, total: int, count: int) -> list[int]:
        """``count`` sizes whose product is ``total``."""
        sizes = [1] * count
        for prime in (2, 3, 5, 7):
            while total % prime == 0:
                sizes[self.random.randrange(count)] *= prime
                total //= prime
        return sizes

    def iota(self, count: int) -> str:
        """``[2,4]T(1,0)`` of so many devices."""
        sizes = self.cut(count, self.random.randint(1, 4))
        order = self.random.sample(range(len(sizes)), len(sizes))
        text = f"[{','.join(map(str, sizes))}]"
        return text + (f"T({','.join(map(str, order))})" if len(order) > 1 else "")

    def listed(self, count: int) -> str:
        return ",".join(map(str, self.random.sample(range(count), count)))

    def suffix(self) -> str:
        return self.random.choice(
            [""] * 8 + [" shard_as 3", " shard_like 0", ' metadata={op_name="a" source_line=3}']
        )

    def tiled(self) -> str:
        count = self.random.choice([1, 2, 4, 6, 8, 12, 16, 24, 30, 64])
        kinds = self.random.choices(
            ("manual", "unreduced", "replicated"), k=self.random.randrange(4)
        )
        dims = self.cut(count, self.random.randint(1, 4) + len(kinds))
        text = f"{{devices=[{','.join(map(str, dims))}]"
        text += self.listed(count) if self.random.random() < 0.4 else "<=" + self.iota(count)
        if kinds == ["replicated"] and self.random.random() < 0.5:
            text += " last_tile_dim_replicate"
        elif kinds:
            text += f" last_tile_dims={{{','.join(kinds)}}}"
        return text + self.suffix() + "}"

    def named(self) -> str:
        names = "xyzw"[: self.random.randint(0, 4)]
        sizes = {name: self.random.choice([1, 2, 2, 3, 4, 8]) for name in names}
        count = prod(sizes.values())
        parts = ["mesh[" + ",".join(f"'{name}'={size}" for name, size in sizes.items()) + "]"]
        if names and self.random.random() < 0.2:
            order = self.listed(count) if self.random.random() < 0.5 else self.iota(count)
            parts.append(f"device_ids=({order})")
        axes = []
        for name, size in sizes.items():
            if size > 3 and size % 2 == 0 and self.random.random() < 0.3:
                axes += [f"'{name}':(1)2", f"'{name}':(2){size // 2}"]
            else:
                axes.append(f"'{name}'")
        self.random.shuffle(axes)
        dims: list[list[str]] = [[] for _ in range(self.random.randint(0, 3))]
        others: dict[str, list[str]] = {"replicated": [], "unreduced": [], "manual": []}
        places = [*dims, *others.values(), [], []]
        for axis in axes:
            self.random.choice(places).append(axis)
        for dim in dims:
            dim += ["?"] * (self.random.random() < 0.3)
        whole = self.random.random() < 0.1
        parts.append(
            self.random.choice(["replicated", "manual", "unreduced", "unknown"])
            if whole
            else "[" + ", ".join("{" + ", ".join(dim) + "}" for dim in dims) + "]"
        )
        for name in self.random.sample(list(others), 3):
            if others[name] and not (whole and self.random.random() < 0.9):
                parts.append(f"{name}={{{', '.join(others[name])}}}")
        return "{" + ", ".join(parts) + "}"

    def plain(self) -> str:
        kinds = ["replicated", "manual", "unknown", "unreduced"]
        maximal = f"maximal device={self.random.randrange(9)}"
        return "{" + self.random.choice([*kinds, maximal]) + self.suffix() + "}"

    def one(self) -> str:
        return self.random.choices([self.tiled, self.named, self.plain], [6, 3, 1])[0]()

    def sharding(self) -> str:
        if self.random.random() > 0.1:
            return self.one()
        return "{" + ", ".join(self.one() for _ in range(self.random.randint(0, 7))) + "}"

    def broken(self) -> str:
        """A sharding with one or two mistakes of typing."""
        text = self.sharding()
        pieces = [
            *"{}[](),=?:0127x' \n", "<=", "T(", "devices", "devices=", "replicated", "manual",
            "maximal", "device=1", "last_tile_dim_replicate", "last_tile_dims={", "shard_as", "-1",
            "unreduced", "mesh", "metadata={", "/*c*/", "unknown", "{}", "'0'",
        ]  # fmt: skip
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randrange(len(text) + 1)
            skipped = self.random.choice([0, 0, 1, 1, 2, 5])
            added = self.random.choice([*pieces, *[""] * 20])
            text = text[:at] + added + text[at + skipped :]
        return text


def ours(text: str) -> tuple[str | None, str]:
    """Our canonical text, or what the error shows."""
    try:
        return str(HloSharding.parse(text)), ""
    except ShardcoreError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", range(4))
def test_what_xla_takes_and_how_it_prints_it(seed: int, xla: Xla) -> None:
    writer = Writer(seed)
    seen: Counter[str] = Counter()
    for number in range(CASES):
        text = writer.broken() if number % 2 else writer.sharding()
        mine, message = ours(text)
        verdict, canonical = xla.read(text)
        if mine is not None and verdict == "dies":
            # What an earlier text has broken in it may show later: only a new process counts.
            verdict, canonical = xla.read(text)
        seen[verdict] += 1
        assert mine is not None or "^" in message, text
        if mine is None and verdict == "takes":
            assert any(words in message for words in REFUSED), (text, message)
        else:
            assert mine == canonical, (text, verdict, message)
    assert min(seen["takes"], seen["refuses"]) > CASES // 5


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2]<=[2]T(0)}",
        "{devices=[1,1]<=[1]T(0)}",
        "{devices=[4]<=[2,2]T(0,1)}",
        "{devices=[4]<=[2,2]}",
        "{mesh['a'=4], device_ids=([4]T(0)), [{'a'}]}",
        "{mesh['a'=4], device_ids=([4]), [{'a'}]}",
        "{mesh['a'=4], device_ids=([2,2]T(1,0)), [{'a'}]}",
    ],
)
def test_the_order_of_dims_follows_several(text: str, xla: Xla) -> None:
    assert ours(text)[0] == xla.read(text)[1]


HOSTILE = [
    "{devices=[1000000000]<=[1000000000]}",
    "{devices=[1000000000,2]<=[2,1000000000]T(1,0)}",
    "{devices=[999983,3,2]<=[2,999983,3]T(2,0,1) last_tile_dims={manual,replicated}}",
    "{devices=[999999999999999999,999999999999999999]<=[999999999999999999,999999999999999999]}",
    "{devices=[7,3,2]<=[42]T(0)}",
    "{mesh['x'=1000000000], device_ids=([1000,1000000]T(1,0)), [{'x'}]}",
    "{mesh['x'=4611686018427387904], []}",
    "{maximal device=9999999999999999999}",
    "{devices=[2]" + "1," * 200_000 + "1}",
    "{devices=[" + "1," * 50_000 + "1]<=[1]}",
    "{" * 50_000,
    "{" + ",".join(["{replicated}"] * 20_000) + "}",
    "{replicated" + "/*" * 20_000,
    '{replicated metadata={op_name="' + "\\" * 50_001,
    "{devices=[٢]<=[2]}",
    "\0",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_take_neither_time_nor_memory(text: str) -> None:
    start = time.process_time()
    shown = ""
    for mesh in (None, Mesh({"x": 2, "y": 3})):
        try:
            shown = str(HloSharding.parse(text).to_sharding(mesh, rank=1).to_hlo())
        except ShardcoreError as error:
            shown = str(error)
    assert len(shown) < 2000
    assert time.process_time() - start < 5
