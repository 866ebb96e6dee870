"""Times from traces: of a run on hosts, and as XProf writes those of chips."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import shardcore
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import ParseError
from shardcore.cli import main
from shardcore.profiles.profile import read_profile

DUMP = """\
HloModule jit_f, num_partitions=4

ENTRY %main (x: f32[8]) -> f32[32] {
  %x = f32[8]{0:T(256)} parameter(0)
  %all-gather-start = (f32[8], f32[32]) all-gather-start(%x), replica_groups=[1,4]<=[4], dimensions={0}
  %all-gather-done = f32[32] all-gather-done(%all-gather-start)
  ROOT %all-reduce.1 = f32[32] all-reduce(%all-gather-done), replica_groups=[1,4]<=[4]
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, shardcore.Explained]:
    """A folder with the trace of a function that ran on eight host devices, and it explained."""
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def function(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        x, _ = jax.lax.scan(lambda x, _: (jnp.tanh(x @ w) @ v, None), x, None, length=3)
        return x.sum()

    def array(*sizes: int, on: P) -> jax.Array:
        return jax.device_put(jnp.ones(sizes), NamedSharding(mesh, on))

    arrays = (
        array(64, 128, on=P("data")),
        array(128, 256, on=P(None, "model")),
        array(256, 128, on=P("model")),
    )
    lowered = jax.jit(function).lower(*arrays)
    compiled = lowered.compile()
    folder = tmp_path_factory.mktemp("trace")
    with jax.profiler.trace(folder, create_perfetto_trace=True):
        for _ in range(2):
            compiled(*arrays).block_until_ready()
    return folder, shardcore.explain(compiled, lowered, folder)


def test_times_are_beside_collectives(ran: tuple[Path, shardcore.Explained]) -> None:
    folder, found = ran
    assert found.trace == str(folder)
    inner, outer = found.collectives
    assert (inner.runs, outer.runs) == (3, 1)
    assert inner.seconds is not None
    assert outer.seconds is not None
    assert found.step_seconds is not None
    assert found.step_seconds >= outer.seconds
    assert sum(part.seconds or 0 for part in inner.parts) == pytest.approx(inner.seconds)
    total = inner.seconds + outer.seconds
    for sums in (found.by_line(), found.by_scope(), found.by_annotation()):
        assert sum(each.seconds or 0 for each in sums.values()) >= total * (1 - 1e-9)
    [longest, *_] = found.longest(1)
    assert longest[0].seconds == max(inner.seconds, outer.seconds)
    page = str(found)
    assert "measured in " in page
    assert "step " in page
    assert all(f"by {what}" in page for what in ("line", "scope", "annotation"))
    [heading] = [line for line in page.splitlines() if line.startswith("collective ")]
    assert "time" in heading.split()


def test_formats_agree(ran: tuple[Path, shardcore.Explained]) -> None:
    folder, _ = ran
    [plane] = folder.rglob("*.xplane.pb")
    of_plane = read_profile(plane).events
    step = read_profile(plane).step_seconds("jit_function")
    assert step is not None
    # Eight devices run it twice, the loop three times.
    counts = {name: count for (own, name), (_, count) in of_plane.items() if own == "jit_function"}
    assert {counts["all-reduce"], counts["all-reduce.1"]} == {16, 48}
    for path in folder.rglob("*.json.gz"):
        of_json = read_profile(path).events
        # Traces in JSON have whole nanoseconds.
        assert read_profile(path).step_seconds("jit_function") == pytest.approx(step, abs=2e-9)
        for key, (seconds, count) in of_plane.items():
            if "all-reduce" in key[1]:
                assert of_json[key] == (pytest.approx(seconds), count)


def number(value: int) -> bytes:
    """The bytes of a number in a protocol buffer."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """The bytes of a message with these fields."""

    def parts() -> Iterator[bytes]:
        for field, value in fields:
            if isinstance(value, int):
                yield number(field << 3) + number(value)
            else:
                data = value.encode() if isinstance(value, str) else value
                yield number(field << 3 | 2) + number(len(data)) + data

    return b"".join(parts())


def plane(lines: dict[str, Iterable[tuple[int, int]]], names: dict[int, str]) -> bytes:
    """A trace of one chip: lines of events, each a name and picoseconds."""
    rows = [
        (3, message((2, line), *((4, message((1, key), (3, time))) for key, time in events)))
        for line, events in lines.items()
    ]
    entries = [
        (4, message((1, key), (2, message((1, key), (2, name))))) for key, name in names.items()
    ]
    return message((1, message((2, "/device:TPU:0"), *rows, *entries)))


NAMES = {
    1: "%all-gather-start = (f32[8], f32[32]) all-gather-start(%x)",
    2: "%all-gather-done = f32[32] all-gather-done(%all-gather-start)",
    3: "%all-reduce.1 = f32[32] all-reduce(%all-gather-done)",
    4: "%fusion.7 = f32[8] fusion(%x)",
    5: "jit_f(1234567)",
}
TRACE = plane(
    {
        "XLA Ops": [(1, 10**6), (2, 5 * 10**6), (3, 10**7), (3, 3 * 10**7), (4, 10**9)],
        "Async XLA Ops": [(1, 10**9)],
        "XLA Modules": [(5, 9 * 10**9), (5, 2 * 10**9), (5, 3 * 10**9)],
    },
    NAMES,
)


def test_a_trace_of_a_chip(tmp_path: Path) -> None:
    path = tmp_path / "run" / "host.xplane.pb"
    path.parent.mkdir()
    path.write_bytes(TRACE)
    found = shardcore.explain(DUMP, profile=tmp_path)
    assert found.platform == "tpu"
    assert found.step_seconds == pytest.approx(3e-3)
    # What the device waits, not what runs beside its ops; the mean of two events.
    assert [row.seconds for row in found.collectives] == [pytest.approx(6e-6), pytest.approx(2e-5)]


@pytest.mark.parametrize("size", range(1, len(TRACE), 7))
def test_a_trace_that_was_cut_off(size: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(TRACE[:size])
    with pytest.raises(ParseError, match=rf"byte \d+ of {size}\b") as caught:
        read_profile(path)
    assert caught.value.code == "invalid-trace"


def test_damaged_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [\n{"name": "all-reduce.1", "ph": "X", "dur": 5')
    with pytest.raises(ParseError, match="no JSON") as caught:
        read_profile(path)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("invalid-trace", 2, 45)
    path.write_text('{"traceEvents": 3}')
    with pytest.raises(ParseError, match="has no traceEvents"):
        read_profile(path)
    rows = [3, {}, {"ph": "X"}, {"ph": "X", "name": "all-reduce.1", "dur": "x", "args": 3}]
    rows += [{"ph": "X", "name": "all-reduce.1", "ts": float(x), "dur": 1} for x in ("nan", "inf")]
    good = {"ph": "X", "name": "all-reduce.1", "dur": 7, "pid": 1, "tid": 2}
    path.write_text(json.dumps({"traceEvents": [*rows, good]}))
    dump = tmp_path / "dump.txt"
    dump.write_text(DUMP)
    assert main(["explain", str(dump), "--profile", str(path)]) == 0
    assert "measured in trace.json: 7 us in 1 of 2 collectives" in capsys.readouterr().out
    packed = tmp_path / "cut.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:-12])
    with pytest.raises(OSError, match="damaged"):
        read_profile(packed)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ParseError, match="no trace is in"):
        read_profile(empty)
    with pytest.raises(OSError, match="No such file"):
        read_profile(tmp_path / "none.json")
