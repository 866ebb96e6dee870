"""Edits that are constraints are given as code at a line of the user's file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import Cost, Module, Result
from shardcore.why.lines import Lines

SOURCE = """
import jax
import jax.numpy as jnp


def norm(x):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True))).astype(x.dtype)


def layer(x, w):
    h = norm(x)
    return x + jnp.tanh(h @ w["up"]) @ w["down"]


def loss(params, tokens):
    x = params["embed"][tokens]
    for w in params["layers"]:
        x = jax.checkpoint(layer)(x, w)
    return (norm(x) @ params["head"]).astype(jnp.float32).mean()
"""


def user(tmp_path: Path, text: str = SOURCE, name: str = "user_model") -> ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def completed(module: ModuleType, length: int = 1024) -> Result:
    def shape(*sizes: int, dtype: object = jnp.bfloat16) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, dtype)

    layers = [{"up": shape(1024, 4096), "down": shape(4096, 1024)} for _ in range(2)]
    params = {"embed": shape(32000, 1024), "layers": layers, "head": shape(1024, 32000)}
    spec = {"up": P("fsdp", "tensor"), "down": P("tensor", "fsdp")}
    specs = {"embed": P("tensor", "fsdp"), "layers": [spec] * 2, "head": P("fsdp", "tensor")}
    lowered = shardcore.jax.lower(
        jax.grad(module.loss),
        params,
        shape(64, length, dtype=jnp.int32),
        mesh={"fsdp": 4, "tensor": 2},
        in_shardings=(specs, P("fsdp")),
    )
    return Module.parse(lowered.as_text()).propagate()


def cost(module: ModuleType) -> Cost:
    return completed(module).cost("tpu-v5p")


def test_the_line_that_is_advised_removes_the_collective(tmp_path: Path) -> None:
    before = cost(user(tmp_path))
    edits = [row.why.edit for row in before.top_collectives(4)]
    lines = [edit for edit in edits if edit is not None and edit.line is not None]
    assert lines
    for number, edit in enumerate(lines[:2]):
        assert edit.place is not None
        assert edit.line is not None
        file, _, line = edit.place.rpartition(":")
        assert Path(file) == tmp_path / "user_model.py"
        texts = SOURCE.splitlines()
        old = texts[int(line) - 1]
        if " = " in edit.line:
            indent = old[: len(old) - len(old.lstrip())]
            texts.insert(int(line), f"{indent}{edit.line}")
        else:
            inner = edit.line.removeprefix("jax.lax.with_sharding_constraint(")
            inner = inner[: inner.rindex(", P(")]
            assert inner in old
            texts[int(line) - 1] = old.replace(inner, edit.line)
        text = "\n".join([*texts, "", "P = jax.sharding.PartitionSpec", ""])
        after = cost(user(tmp_path, text, f"edited_{number}"))
        told = before.step_seconds + edit.seconds
        # The line constrains the gradient, too.
        assert after.step_seconds <= told * 1.01
        assert abs(after.step_seconds - told) < 0.2 * before.step_seconds


def test_no_value_of_the_backward_pass_is_named(tmp_path: Path) -> None:
    found = cost(user(tmp_path))
    for row in found.top_collectives(6):
        edit = row.why.edit
        if edit is not None and edit.target.startswith(("%", "@")):
            assert edit.line is not None
            assert f"write {edit.line} at user_model.py:" in str(row.why)


TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8192x8192xf32>, %b: tensor<8192x8192xf32>
    {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8192x8192xf32> {
  %0 = stablehlo.custom_call @f(%a) : (tensor<8192x8192xf32>) -> tensor<8192x8192xf32>LOC0
  %1 = stablehlo.dot_general %b, %0, contracting_dims = [1] x [0]
    : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>LOC1
  return %1 : tensor<8192x8192xf32>
}
"""


def code(text: str) -> tuple[str | None, tuple[str | None, str | None]]:
    result = Module.parse(text).propagate()
    lines = Lines(result)
    target = lines.reach("%0")
    assert target is not None
    [sharding] = [port.sharding for port in result.arguments() if port.name == "%b"]
    assert sharding is not None
    return target, lines.code(target, sharding)


def test_files_that_are_not_here_and_texts_without_places() -> None:
    located = TEXT.replace("LOC0", ' loc("gone.py":3:4)').replace("LOC1", ' loc("gone.py":4:4)')
    line = "x = jax.lax.with_sharding_constraint(x, P(None, 'x'))"
    assert code(located) == ("%0", (line, "gone.py:3"))
    assert code(TEXT.replace("LOC0", "").replace("LOC1", "")) == ("%0", (None, None))


TRAINED = SOURCE.replace(
    'return (norm(x) @ params["head"]).astype(jnp.float32).mean()',
    'logits = jax.nn.log_softmax((norm(x) @ params["head"]).astype(jnp.float32))\n'
    "    return -jnp.take_along_axis(logits, tokens[..., None], -1).mean()",
)


def test_what_follows_from_a_root_is_below_it(tmp_path: Path) -> None:
    result = completed(user(tmp_path, TRAINED), 2048)
    root, *others = result.diagnostics("h100")
    assert root.code == "axis-lost"
    assert root.location is not None
    assert "user_model.py:17" in root.location
    assert "write x = jax.lax.with_sharding_constraint(x, P('fsdp')) at" in str(root.hint)
    assert {each.code for each in root.follows} == {"large-resharded"}
    assert "large-resharded" not in {each.code for each in others}
    assert str(root).count("from it follows large-resharded at ") == len(root.follows)
    assert len(root.record()["follows"]) == len(root.follows)
    assert not result.check({"diagnostics": {"forbid": ["large-resharded"]}})
    allowed = ["axis-lost", "output-moved", *(each.code for each in root.follows)]
    assert result.check({"diagnostics": {"forbid": ["all"], "allow": allowed}})
    alone = {each.code for each in result.diagnostics("h100", ignore=["axis-lost"])}
    assert "large-resharded" in alone
    assert "axis-lost" not in alone
