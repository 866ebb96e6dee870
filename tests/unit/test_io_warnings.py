"""Annotations of inputs and outputs that the export trims: a warning, a flag that keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import Module
from shardcore.cli import main

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def program(argument: str, result: str = "", shape: str = "6x8") -> str:
    """The absolute of a tensor, sharded as annotated."""
    of_argument = f"{{sdy.sharding = #sdy.sharding<@mesh, {argument}>}}" if argument else ""
    of_result = f"{{sdy.sharding = #sdy.sharding<@mesh, {result}>}}" if result else ""
    return f"""{MESH}func.func @main(%a: tensor<{shape}xf32> {of_argument})
    -> (tensor<{shape}xf32> {of_result}) {{
  %0 = stablehlo.abs %a : tensor<{shape}xf32>
  return %0 : tensor<{shape}xf32>
}}
"""


LOST = [
    ('[{"x"}, {}]', "", ["%arg0", "dim 0", "its size 6 is no multiple of 4", 'it keeps "x":(1)2']),
    ('[{}, {"y"}]', '[{"x", ?}, {}]', ["result 0", "dim 0", "its size 6 is no multiple of 4"]),
    ('[{"x", "y"}, {}]', "", ["%arg0", "no multiple of 8", 'it keeps "x":(1)2']),
]


@pytest.mark.parametrize(("argument", "result", "words"), LOST)
def test_what_is_lost_is_said(argument: str, result: str, words: list[str]) -> None:
    found = Module.parse(program(argument, result)).propagate()
    [warning] = found.warnings
    assert warning.code == "non-divisible"
    assert warning.severity == "warning"
    assert str(warning).startswith("warning[non-divisible]: ")
    assert "keep_non_divisible_on_io" in (warning.hint or "")
    for word in words:
        assert word.replace("%arg0", "%a") in warning.message
    kept = Module.parse(program(argument, result)).propagate(keep_non_divisible_on_io=True)
    assert kept.warnings == ()
    for old, new in zip(kept._annotated()[0], kept.arguments(), strict=True):
        assert str(old.sharding) == str(new.sharding)


@pytest.mark.parametrize(
    ("argument", "shape"),
    [
        ('[{"x"}, {}]', "8x8"),
        ('[{"x", ?}, {?}]', "8x8"),
        ("", "6x6"),
        ("[{?}, {?}]", "6x6"),
        ('[{"x":(1)2}, {}]', "6x8"),
        ('[{"x"}, {}]', "0x8"),
    ],
)
def test_what_is_not_lost_is_not_said(argument: str, shape: str) -> None:
    assert Module.parse(program(argument, shape=shape)).propagate().warnings == ()


def test_parts_of_axes_in_open_dims() -> None:
    [warning] = Module.parse(program('[{"x":(1)2, ?}, {}]')).propagate().warnings
    assert warning.code == "sub-axis"
    assert "none of it" in warning.message


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(program('[{"x"}, {}]'), encoding="utf-8")
    for command in (
        ["propagate", str(path)],
        ["cost", str(path), "--hardware", "h100"],
        ["partition", str(path)],
        ["check", str(path), "--expect", str(tmp_path / "e.toml"), "--update"],
    ):
        main(command)
        assert "warning[non-divisible]: dim 0 of %a is annotated with" in capsys.readouterr().err
    main(["propagate", str(path), "--json"])
    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert warning["code"] == "non-divisible"
    assert main(["propagate", str(path), "--json", "--keep-non-divisible-on-io"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["warnings"] == []
    assert said.err == ""


def test_results_of_jax_have_them_too() -> None:
    jax = pytest.importorskip("jax")
    import shardcore.jax

    # JAX itself refuses inputs and outputs that do not divide.
    spec, x = jax.sharding.PartitionSpec("x"), jax.ShapeDtypeStruct((8, 8), "float32")
    lowered = shardcore.jax.lower(lambda x: x * 2, x, mesh={"x": 4}, in_shardings=spec)
    assert lowered.propagate().warnings == ()
