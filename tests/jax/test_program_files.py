"""What a person has opens: exported functions, HLO of each stage; pickles do not."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, exported, hlo, program_files
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


def test_pickles_are_refused_and_lowered_functions_have_none(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(jax.jit(function).lower(*SHAPES))
    path = tmp_path / "lowered.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(LoweringError, match="is a pickle, which may run any code") as caught:
        program_files.read(str(path))
    assert caught.value.code == "artifact"
    assert "lowered.as_text(debug_info=True)" in str(caught.value.hint)
