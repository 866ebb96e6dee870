"""The answer: what it says, its code, its errors, and the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, PlanError, Remat
from shardcore.cli import main
from shardcore.remat.choices import Choice, uniform
from shardcore.remat.loss import Loss

from tests.remat import models, oracle

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "remat.py"
MLP = models.mlp(4)
MANY = 60.0
"""Seconds that no search here takes."""


@pytest.fixture(scope="module")
def unrolled() -> Remat:
    """Blocks one after the other within 0.6 of what they take."""
    whole = oracle.cost(MLP.plain, MLP, "h100").peak_bytes
    return shardcore.remat(
        MLP.plain, *MLP.shapes, hardware="h100", memory=int(0.6 * whole), seconds=MANY
    )


def test_layers_may_differ_where_they_are_unrolled(unrolled: Remat) -> None:
    [runs] = unrolled.setting
    assert sum(count for count, _ in runs) == 4
    assert len(runs) == 2
    [policies] = unrolled.policies()
    assert len(policies) == 4
    # The last ones keep more, and would not fit if all did.
    trials = {trial.setting: trial for trial in unrolled.trials}
    _, last = (choice for _, choice in runs)
    assert trials[(((4, last),),)].peak_bytes > unrolled.limit >= unrolled.best.peak_bytes
    assert unrolled.stopped == "done"
    assert unrolled.best_built_in is not None
    assert unrolled.best.step_seconds < unrolled.best_built_in.step_seconds


def test_the_search_is_the_same_each_time(unrolled: Remat) -> None:
    again = shardcore.remat(
        MLP.plain, *MLP.shapes, hardware="h100", memory=int(unrolled.limit), seconds=MANY
    )
    assert again.record() == unrolled.record()


def test_the_report_and_the_record(unrolled: Remat) -> None:
    record = json.loads(json.dumps(unrolled.record()))
    assert record["best"]["peak_bytes"] <= record["limit_bytes"]
    [stack] = record["stacks"]
    assert (stack["kind"], stack["layers"]) == ("blocks", 4)
    assert sum(each["layers"] for each in stack["choices"]) == 4
    assert record["code"] == unrolled.to_python()
    text = str(unrolled)
    assert unrolled.best.label in text
    assert "no recomputation" in text


def test_the_code_is_that_of_the_program() -> None:
    """Written into the user's function, lines and policy make the program that was costed."""
    model = models.gpt(2)
    whole = oracle.cost(model.plain, model, "tpu-v5p").peak_bytes
    found = shardcore.remat(
        model.plain, *model.shapes, hardware="tpu-v5p", memory=int(0.8 * whole), seconds=MANY
    )
    [(count, choice)] = found.setting[0]
    assert count == 2
    assert choice.names
    source = Path(models.__file__).read_text(encoding="utf-8").splitlines()
    for value in sorted(found.values[0], key=lambda value: -value.site.end[0]):
        assert value.site is not None
        first, last = value.site.start[0] - 1, value.site.end[0] - 1
        if value.site.name is not None:
            source.insert(last + 1, f"{value.site.indent}{value.line}")
        else:
            assert first == last
            source[first] = source[first].replace(value.site.text, value.line, 1)
    changed: dict[str, Any] = {"__name__": "changed"}
    exec(compile("\n".join(source), "changed.py", "exec"), changed)
    names: dict[str, Any] = {"jax": jax}
    exec(f"policy = {choice.code()}", names)
    cost = oracle.cost(
        lambda *args: changed["gpt"](2).loss(
            lambda layer: jax.checkpoint(layer, policy=names["policy"], prevent_cse=False), *args
        ),
        model,
        "tpu-v5p",
    )
    assert (cost.step_seconds, cost.peak_bytes) == (found.best.step_seconds, found.best.peak_bytes)


@pytest.mark.parametrize(
    "choice",
    [
        Choice("dots_saveable"),
        Choice(),
        Choice(kept=frozenset({"a", "b"})),
        Choice(kept=frozenset({"a"}), offloaded=frozenset({"b"})),
    ],
    ids=str,
)
def test_policies_as_code_are_those_that_are_used(choice: Choice) -> None:
    """They keep the same, of a function with names."""
    from jax.ad_checkpoint import checkpoint_name

    names: dict[str, Any] = {"jax": jax}
    exec(f"policy = {choice.code()}", names)

    def layer(x: jax.Array) -> jax.Array:
        return jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "a") @ x), "b"))

    def program(policy: Callable[..., Any]) -> str:
        wrapped = jax.checkpoint(layer, policy=policy)
        return str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(wrapped(x))))(jnp.ones((4, 4))))

    ours, code = program(choice.policy_of_jax()), program(names["policy"])
    # Policies that are closures are shown with their addresses.
    assert len(ours) == pytest.approx(len(code), abs=40)
    assert ours.count("sin") == code.count("sin")
    assert ours.count("device_put") == code.count("device_put")


def test_a_step_and_its_shardings() -> None:
    """What counts is the step, of one of eight devices, with the state of its optimizer."""

    def make_step(loss: Callable[..., Any]) -> Callable[..., Any]:
        def step(params: Any, moments: Any, x: Any) -> Any:
            value, gradients = jax.value_and_grad(loss)(params, x)
            moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
            return value, jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments

        return step

    params, x = MLP.shapes
    found = shardcore.remat(
        MLP.plain,
        *(params, params, x),
        hardware="h100",
        seconds=0.01,
        step=make_step,
        mesh={"data": 8},
        in_shardings=(None, None, P("data")),
        donate_argnums=(0, 1),
    )
    plain = shardcore.remat(MLP.plain, *MLP.shapes, hardware="h100", seconds=0.01)
    state = sum(leaf.size * 2 for leaf in jax.tree.leaves(params))
    assert 2 * state < found.whole.peak_bytes < 3 * state + plain.whole.peak_bytes / 4
    assert found.stacks[0].count == 4
    assert found.stopped == "seconds"


def test_the_function_takes_other_sizes() -> None:
    model = models.mlp(2, 8, 4, jnp.float32)
    found = shardcore.remat(model.plain, *model.shapes, hardware="h100", seconds=0.01)
    params, x = models.mlp(2, 8, 16, jnp.float32).arrays()
    expected, got = (jax.value_and_grad(each)(params, x) for each in (model.plain, found.apply()))
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def without_layers(params: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x @ params))


SQUARE = jax.ShapeDtypeStruct((8, 8), jnp.float32)
MISTAKES: dict[str, tuple[str, Any, Any, str]] = {
    "no layers": ("no-layers", without_layers, (SQUARE, SQUARE), "jax.lax.scan"),
    "a step": ("not-a-loss", jax.value_and_grad(MLP.plain), MLP.shapes, "step="),
    "no number": ("not-a-loss", lambda x: x @ x, (SQUARE,), "step="),
    "a module": ("not-a-loss", shardcore.Module.parse("func.func @f() { return }"), (), "JAX"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    code, loss, shapes, hint = MISTAKES[name]
    with pytest.raises(PlanError) as raised:
        shardcore.remat(loss, *shapes, hardware="h100")
    assert raised.value.code == code
    assert hint in (raised.value.hint or "")


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["shardcore.remat"], "find_spec", lambda _: None)
    with pytest.raises(LoweringError, match="not installed"):
        shardcore.remat(MLP.plain, *MLP.shapes)


def test_the_host_keeps_what_layers_start_with() -> None:
    """Less is then in memory than where all is computed anew from that."""
    model = models.gpt(8, vocab=128)
    loss = Loss(model.plain)
    loss.program(model.shapes, {})
    nothing, less = (
        oracle.cost(loss.with_setting(uniform(choice, [8])), model, "h100")
        for choice in (Choice(), Choice.of_names([], ["layer_input"]))
    )
    size = 8 * 512 * 512 * 2
    assert nothing.peak_bytes - 8 * size <= less.peak_bytes <= nothing.peak_bytes - 6 * size
    assert less.host_memory_peak_bytes == 8 * size
    assert nothing.host_memory_peak_bytes == 0


def test_the_host_helps_where_nothing_else_fits() -> None:
    model = models.gpt(2, vocab=128)
    kept = [row for row in oracle.tried(model, "h100") if not row.policy.startswith("offload")]
    least = min(row.peak_bytes for row in kept)
    found = shardcore.remat(
        model.plain, *model.shapes, hardware="h100", memory=int(0.97 * least), seconds=MANY
    )
    [(_, choice)] = found.setting[0]
    assert choice.offloaded
    assert found.best.host_bytes > 0
    assert found.best.peak_bytes <= 0.97 * least


def test_what_does_not_fit() -> None:
    with pytest.raises(PlanError) as raised:
        shardcore.remat(MLP.plain, *MLP.shapes, hardware="h100", memory="1MiB", seconds=0.01)
    assert raised.value.code == "does-not-fit"
    assert "the least is" in raised.value.message


@pytest.mark.parametrize(
    "options", [{"memory": "much"}, {"host_memory": "much"}, {"seconds": 0}], ids=str
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        shardcore.remat(MLP.plain, *MLP.shapes, hardware="h100", **options)


def test_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["remat", f"{EXAMPLE}:build", "--hardware", "h100", "--seconds", "0.01"]
    assert main([*command, "--memory", "12GiB", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["stacks"][0]["function"] == "layer"
    assert record["best"]["label"] == "nothing_saveable"
    assert "layer = jax.checkpoint(layer, policy=policy, prevent_cse=False)" in record["code"]
    assert main([*command, "--memory", "1MiB"]) == 1
    assert "error[does-not-fit]" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("file", "part"),
    [("model.mlir", "model.py:build"), (str(EXAMPLE), "remat.py:build")],
    ids=["a program", "a file"],
)
def test_files_that_have_no_loss(file: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remat", file, "--hardware", "h100"]) == 1
    assert part in capsys.readouterr().err
