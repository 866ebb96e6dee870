"""What a person has opens: exported functions, HLO of each stage; pickles do not."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest
import shardcore
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, bytecode, exported, hlo, program_files
from shardcore.cli import main

SHAPES = (jax.ShapeDtypeStruct((8, 4, 16), jnp.float32), jax.ShapeDtypeStruct((16, 8), jnp.float32))


def function(x: jax.Array, w: jax.Array) -> jax.Array:
    scores = jnp.einsum("abc,cd->dab", x, w)
    return jnp.einsum("dab,abc->dc", jax.nn.softmax(scores, -1), jnp.tanh(x))


def shardings() -> tuple[NamedSharding, NamedSharding]:
    mesh = AbstractMesh((2, 4), ("data", "model"))
    return NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))


@pytest.fixture(scope="module")
def exported_bytes() -> bytes:
    pytest.importorskip("flatbuffers")
    jitted = jax.jit(function, in_shardings=shardings())
    return bytes(jax.export.export(jitted)(*SHAPES).serialize())


def test_an_exported_function(
    exported_bytes: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(exported_bytes)
    assert main(["propagate", str(path)]) == 0
    shown = capsys.readouterr().out
    assert '[{"data"}, {},' in shown
    assert "test_program_files.py:" in shown
    standard_input = io.TextIOWrapper(io.BytesIO(exported_bytes))
    monkeypatch.setattr(sys, "stdin", standard_input)
    assert main(["propagate", "-"]) == 0
    assert capsys.readouterr().out.splitlines()[:5] == shown.splitlines()[:5]


def test_damaged_exports_are_no_exports(exported_bytes: bytes) -> None:
    assert exported.program(exported_bytes) is not None
    for cut in range(0, len(exported_bytes), 7):
        exported.program(exported_bytes[:cut])
        damaged = bytearray(exported_bytes)
        damaged[cut : cut + 4] = b"\xff\xff\xff\xff"
        exported.program(bytes(damaged))
    assert exported.program(exported_bytes[: len(exported_bytes) // 2]) is None
    for root in (0, 4, len(exported_bytes) - 2, 2**32 - 1):
        assert exported.program(struct.pack("<I", root) + exported_bytes[4:]) is None
    assert exported.program(b"func.func @main() { return }") is None


def stages() -> dict[str, Callable[[Any], str | bytes]]:
    def compiled(lowered: Any) -> Any:
        return lowered.compile().runtime_executable().hlo_modules()[0]

    return {
        "lowered-text": lambda lowered: lowered.as_text(dialect="hlo"),
        "lowered-proto": lambda lowered: lowered.compiler_ir(
            "hlo"
        ).as_serialized_hlo_module_proto(),
        "compiled-text": lambda lowered: lowered.compile().as_text(),
        "compiled-proto": lambda lowered: compiled(lowered).as_serialized_hlo_module_proto(),
    }


@pytest.mark.parametrize("stage", stages())
def test_hlo_of_each_stage_computes_the_same(stage: str) -> None:
    text = stages()[stage](jax.jit(function).lower(*SHAPES))
    data = text.encode() if isinstance(text, str) else text
    assert hlo.is_hlo(data) != hlo.is_proto(data)
    module = program_files.parse(data, "dump")
    values = [np.random.default_rng(0).normal(size=each.shape).astype("f") for each in SHAPES]
    [found] = module.simulate(*values)
    wanted = np.asarray(function(*map(jnp.asarray, values)))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)


def test_a_bitcast_between_layouts() -> None:
    """What is in memory in one order is read in another."""
    text = """HloModule m, entry_computation_layout={(f32[4,6]{0,1})->f32[3,8]{0,1}}

ENTRY main {
  x = f32[4,6]{0,1} parameter(0)
  ROOT y = f32[3,8]{0,1} bitcast(x)
}
"""
    module = program_files.parse(text.encode(), "dump")
    x = np.arange(24, dtype="f").reshape(4, 6)
    [found] = module.simulate(x)
    np.testing.assert_array_equal(np.asarray(found), x.T.reshape(8, 3).T)


MESH_GROUPS = """HloModule m, num_partitions=8

ENTRY main {
  x = f32[8,4] parameter(0)
  ROOT y = f32[8,4] all-to-all(x), channel_id=1, replica_groups=GROUPS, dimensions={0}
}
"""


@pytest.mark.parametrize(
    ("groups", "devices"),
    [
        ("mesh['a'=4,'b'=2] {'a'}", "[[0, 2, 4, 6], [1, 3, 5, 7]]"),
        ("mesh['a'=4,'b'=2] {'b','a'}", "[[0, 2, 4, 6, 1, 3, 5, 7]]"),
        (
            "mesh['a'=4,'b'=2], device_ids=(7,6,5,4,3,2,1,0) {'b'}",
            "[[7, 6], [5, 4], [3, 2], [1, 0]]",
        ),
    ],
)
def test_groups_by_the_axes_of_a_mesh(groups: str, devices: str) -> None:
    """XLA writes them so since jaxlib 0.10, and its converter takes them in few ops."""
    try:
        module = program_files.parse(MESH_GROUPS.replace("GROUPS", groups).encode(), "dump")
    except shardcore.ParseError:
        if tuple(map(int, jaxlib.__version__.split(".")[:2])) >= (0, 10):
            raise
        pytest.skip("this jaxlib does not read them")
    assert f"dense<{devices}>" in str(module)


def test_what_is_wrong_with_an_op_is_told_without_its_call_stack() -> None:
    stack = " at ".join(f'"f"("/a/long/path/of/a/file_{n}.py":{n}:1)' for n in range(40))
    printed = f"error: \"a/b\"(callsite({stack})): 'mhlo.op' op attribute 'x' is missing\n"
    done: Any = subprocess.CompletedProcess([], 1, b"", printed.encode())
    assert bytecode._reason(done) == "'mhlo.op' op attribute 'x' is missing"


def test_pickles_are_refused_and_lowered_functions_have_none(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(jax.jit(function).lower(*SHAPES))
    path = tmp_path / "lowered.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(LoweringError, match="is a pickle, which may run any code") as caught:
        program_files.read(str(path))
    assert caught.value.code == "artifact"
    assert "lowered.as_text(debug_info=True)" in str(caught.value.hint)
