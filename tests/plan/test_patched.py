"""The diff of a plan is one that `patch` takes; the changed file runs, and costs what it says."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jax")

import shardcore
from shardcore import Module, Plan, entry_point, program_files
from shardcore.cli import main
from shardcore.plan.applied import _cost
from shardcore.plan.edits import Edits
from shardcore.plan.literal import UnwritableError, written, written_tuple
from shardcore.plan.patch import FREE, LINES, changed
from shardcore.plan.stated import constraints_of, statements
from shardcore.plan.step_in_file import decorators, jits
from shardcore.session.targets import listed
from shardcore.signature import Tree

from tests.deep import sampled
from tests.plan.cases import FAMILY, MODEL
from tests.plan.families import FAMILIES
from tests.plan.styles import STYLES
from tests.shardy.xla.models import catalog

CHIP = "tpu-v5e"
ROOT = Path(__file__).resolve().parents[2]
MEMORY = "400KiB"
"""Little enough that scripts shard their parameters, and constrain values."""
CASES = {
    **{name: FAMILY.format(name=name) for name in sampled(FAMILIES, 3)},
    **{name: MODEL.format(name=name) for name in sampled(catalog.names(), 20)},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which scripts find this package and the tests."""
    paths = Path(shardcore.__file__).parents[1], ROOT
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(text: str, memory: str | None) -> Plan:
    Path("case.py").write_text(text)
    return shardcore.plan(program_files.read("case.py:build"), CHIP, memory, seconds=60)


def loss() -> float:
    """What the script prints."""
    command = [sys.executable, "case.py"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", sampled(STYLES, 6))
def test_a_changed_script_runs_and_costs_what_was_planned(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    plan = planned(STYLES[name], MEMORY)
    before = loss()
    diff = plan.patch("case.py", "build")
    first, *_ = diff.splitlines()
    assert first.startswith("# build_planned: step ")
    assert first.endswith(", as planned")
    subprocess.run(["patch", "-s", "-p0"], input=diff, text=True, check=True)
    assert main(["cost", "case.py:build_planned", "--hardware", CHIP, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step_seconds"] == pytest.approx(plan.cost.step_seconds, rel=1e-9)
    assert found["peak_bytes"] == plan.cost.peak_bytes
    assert loss() == pytest.approx(before, rel=1e-5)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", CASES)
def test_a_changed_program_of_the_bench_costs_what_was_planned(name: str) -> None:
    plan = planned(CASES[name], None)
    assert not plan.unreached
    first, *_ = plan.patch("case.py", "build").splitlines()
    assert first.startswith("# build_planned: step ")
    assert first.endswith(", as planned")


@pytest.mark.usefixtures("folder")
def test_values_that_no_line_reaches_are_counted_and_make_another_step() -> None:
    Path("case.py").write_text(MODEL.format(name="experts-experts"))
    # Without locations.
    plan = shardcore.plan(Module.parse(catalog.text("experts-experts")), CHIP, seconds=60)
    count = len(plan.unreached)
    assert count == plan.record()["unreached"] > 0
    assert f"no line of a file reaches {count} constrained values" in str(plan)
    first, *rest = plan.patch("case.py", "build").splitlines()
    assert re.match(r"# build_planned: step .*, peak .*, against the plan: ", first)
    assert sum(each.startswith("# no line constrains ") for each in rest) == count


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "returned",
    ["train_step, shapes(first), shapes(batch)", "train_step, [shapes(first), shapes(batch)]"],
)
def test_a_step_may_be_returned_with_its_arguments_in_any_way(returned: str) -> None:
    own = 'train_step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}'
    Path("case.py").write_text(STYLES["jit"].replace(own, returned))
    module = program_files.read("case.py:build")
    plan = shardcore.plan(module, CHIP, MEMORY, {"data": 4, "model": 2}, seconds=2)
    first, *_ = plan.patch("case.py", "build").splitlines()
    assert first.endswith(", as planned")


@pytest.mark.usefixtures("folder")
def test_a_file_that_fails_as_changed_gets_its_diff_and_is_said_to() -> None:
    own = STYLES["called"].replace(
        "    step = jax.jit(train_step, donate", "    step = jitted(donate"
    )
    options = "def jitted(**options):\n    return jax.jit(train_step, **options)\n\n\ndef build"
    text = own.replace("def build", options).replace(
        "jitted(donate_argnums=(0,))", "jitted(in_shardings=(None, None))"
    )
    plan = planned(text, None)
    first, *rest = plan.patch("case.py", "build").splitlines()
    assert first.startswith("# build_planned fails as changed: ")
    assert any(each.startswith("+IN_SHARDINGS") for each in rest)


@pytest.mark.usefixtures("folder")
def test_each_value_of_a_constraint_has_its_line_and_so_have_those_of_gradients() -> None:
    plan = planned(MODEL.format(name="experts-data"), None)
    named = [name for target in plan.specs for name in listed(target)]
    assert {each.target for each in plan.constraints} == {each for each in named if each[0] == "%"}
    assert {each.is_gradient for each in plan.constraints} == {True, False}
    assert not plan.unreached
    assert "no line" not in str(plan)
    text = plan.patch("case.py", "build")
    for each in plan.constraints:
        assert (
            each.is_gradient == ("constrained_gradient(" in each.line) == each.record()["gradient"]
        )
        assert each.is_gradient == ("gradient" in str(each))
        assert each.line in plan.to_python()
    assert "y = constrained_gradient(y, P(('data', 'expert')))" in text
    assert text.count("constrained_gradient.defvjp(") == 1
    assert plan.to_python().count("constrained_gradient.defvjp(") == 1


def with_logits_by_batch(plan: Plan) -> Plan:
    """``plan`` of a script with only its table sharded, and its logits constrained."""
    module = plan.program
    [logits] = {
        value.name
        for value in module.values()
        if value.op == "stablehlo.dot_general" and value.shape == (64, 16, 512)
    }
    specs = {"state/*/table": "P('model')", logits: "P('data')"}
    session = module.session(mesh=plan.mesh)
    session.set(specs)
    [stated, *_] = statements(session, specs, constraints_of(session, module, [logits]))
    session.set(stated.edit())
    cost = session.cost(CHIP, **plan.cost_options)
    return replace(plan, specs=specs, session=session, cost=cost, stated=stated)


@pytest.mark.usefixtures("folder")
def test_a_constrained_gradient_costs_other_than_planned() -> None:
    plan = with_logits_by_batch(planned(STYLES["partial"], None))
    signature = entry_point.signature("case.py", "build")
    lines, free = (
        _cost(plan, "case.py", changed(plan, "case.py", "build", signature, by))
        for by in (LINES, FREE)
    )
    assert lines.step_seconds != pytest.approx(plan.cost.step_seconds, rel=0.01)
    assert free.step_seconds == pytest.approx(plan.cost.step_seconds, rel=1e-9)
    assert free.peak_bytes == plan.cost.peak_bytes
    assert "constrained.defjvp(" in plan.patch("case.py", "build")


def given(text: str) -> str:
    """``text`` whose function ``step`` gets shardings where it is jitted."""
    tree = ast.parse(text)
    [step] = [node for node in ast.walk(tree) if getattr(node, "name", "") == "step"]
    assert isinstance(step, ast.FunctionDef)
    edits = Edits(text)
    for each in (*jits(tree, step), *decorators(step)):
        each.give(edits, {"in_shardings": "A", "out_shardings": "B"})
    return edits.text()


BOTH = "in_shardings=A, out_shardings=B"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@jax.jit\nDEF", f"@partial(jax.jit, {BOTH})\nDEF"),
        ("@jit\nDEF", f"@partial(jit, {BOTH})\nDEF"),
        (
            "@partial(jax.jit, donate_argnums=0)\nDEF",
            f"@partial(jax.jit, {BOTH}, donate_argnums=0)\nDEF",
        ),
        ("@functools.partial(jax.jit)\nDEF", f"@functools.partial(jax.jit, {BOTH})\nDEF"),
        ("@jax.jit(donate_argnums=0)\nDEF", f"@jax.jit({BOTH}, donate_argnums=0)\nDEF"),
        ("DEF\nf = jax.jit(step)", f"DEF\nf = jax.jit(step, {BOTH})"),
        ("DEF\nf = jax.jit((step), )", f"DEF\nf = jax.jit((step), {BOTH})"),
        (
            "DEF\nf = jax.jit(\n    step,  # é\n)",
            f"DEF\nf = jax.jit(\n    step,  # é\n    {BOTH})",
        ),
        (
            "DEF\nf = jit(step, out_shardings=(P(\n  'x')), donate_argnums=(0, 1))",
            "DEF\nf = jit(step, out_shardings=B, in_shardings=A, donate_argnums=(0, 1))",
        ),
        (
            "DEF\ng = 'é'; f = jax.jit(partial(self.step, 1), in_shardings=g)",
            f"DEF\ng = 'é'; f = jax.jit(partial(self.step, 1), {BOTH})",
        ),
        ("DEF\nf = nnx.jit(step); g = jit(other)", "DEF\nf = nnx.jit(step); g = jit(other)"),
    ],
)
def test_shardings_are_given_where_the_step_is_jitted(before: str, after: str) -> None:
    whole = "def step(x): return x"
    found = given(before.replace("DEF", whole))
    assert found.strip() == after.replace("DEF", whole)
    ast.parse(found)


def test_trees_are_written_as_short_as_they_are() -> None:
    specs = "P('x')", "P()", "P('x')", "P()", "P('y')"

    def node(kind: str, *items: object) -> Tree:
        return {"kind": kind, "items": list(items)}

    def text(tree: Tree) -> str:
        return written(tree, specs.__getitem__)

    layers = (node("dict", ["up", n], ["down", n + 1]) for n in (0, 2))
    assert text(node("list", *layers)) == "[{'up': P('x'), 'down': P()}] * 2"
    assert text(node("tuple", 0, 2)) == "P('x')"
    assert text(node("tuple", 0, None, node("none"))) == "(P('x'), None, None)"
    assert text(node("other", 0, 2)) == "P('x')"
    assert text(node("tuple", node("dict", ["a", 0], ["b", 1]))) == "({'a': P('x'), 'b': P()},)"
    with pytest.raises(UnwritableError):
        text(node("other", 0, 4))
    assert written_tuple([0], specs.__getitem__) == "(P('x'),)"
    names = [f"parameter_{n}" for n in range(9)]
    long = text(node("dict", *([name, n % 5] for n, name in enumerate(names))))
    assert max(map(len, long.splitlines())) <= 88
    assert list(eval(long, {"P": lambda *dims: dims})) == names


def test_edits_at_one_place_keep_their_order() -> None:
    edits = Edits("f(a) # \x0c é\ny\n")
    edits.wrap((1, 2), (1, 3), "in(", ")")
    edits.wrap((1, 0), (1, 4), "out(", ")")
    edits.wrap((1, 0), (1, 1), "own(", ")")
    edits.insert_line(1, "x")
    edits.replace((2, 0), (2, 1), "z")
    assert edits.text() == "out(own(f)(in(a))) # \x0c é\nx\nz\n"
