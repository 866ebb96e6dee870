"""Commands take a Python function that returns a program: ``model.py:build``."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

from tests.deep import sampled

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax needs Python 3.11"
)

MODEL = """
import os

import shardcore

print("printed by the model")


def module():
    # The folder of the file is the first of the search path.
    import beside

    return shardcore.Module.parse(beside.TEXT)


def result():
    return module().propagate()


def number():
    return 3


def pair():
    return 3, module


def fails():
    raise ZeroDivisionError("the user's own mistake")


def needs(shape):
    return module()


def invalid():
    return shardcore.Module.parse("func.func @main() {\\n  retrn\\n}")


def ends():
    os._exit(7)
"""
BESIDE = '''TEXT = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
'''
JAX_MODEL = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import shardcore.jax


def step(params, x):
    return jnp.tanh(x @ params["w"])


def arguments():
    shape = jax.ShapeDtypeStruct
    return {"w": shape((16, 32), jnp.float32)}, shape((8, 16), jnp.float32)


OPTIONS = {"mesh": {"data": 2}, "in_shardings": (None, P("data"))}


def build():
    return step, arguments(), OPTIONS


def lowered():
    return shardcore.jax.lower(step, *arguments(), **OPTIONS)


def propagated():
    return lowered().propagate()


def gradient():
    return jax.grad(lambda params, x: step(params, x).sum()), arguments(), OPTIONS


def traced():
    return jax.jit(step).trace(*arguments())


def one_by_one():
    params, x = arguments()
    return jax.jit(step, in_shardings=(None, jax.NamedSharding(MESH, P("data")))), params, x


def tuple_and_dict():
    params, x = arguments()
    inputs = jax.NamedSharding(MESH, P("data"))
    jitted = jax.jit(lambda xs, p: step(p, xs[0]), in_shardings=((inputs,), None))
    return jitted, (x,), params


def without_mesh():
    def constrained(x):
        return jax.lax.with_sharding_constraint(x, P("data"))

    return constrained, arguments()[1]


MESH = jax.sharding.AbstractMesh((2,), ("data",))
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "jax_model.py").write_text(JAX_MODEL)
    return str(tmp_path / "model.py")


@pytest.mark.parametrize("name", ["module", "result"])
def test_a_module_or_a_result(model: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["propagate", f"{model}:{name}", "--json"]) == 0
    out, err = capfd.readouterr()
    record = json.loads(out)
    assert record["schema"] == 1
    assert [value["sharding"] for value in record["values"]] == ['<@mesh, [{"x"}]>'] * 2
    assert "printed by the model" in err


@needs_jax
@pytest.mark.parametrize(
    "name", sampled(["build", "lowered", "one_by_one", "propagated", "tuple_and_dict"], 2)
)
def test_a_function_with_its_arguments(
    model: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model.replace("model.py", "jax_model.py")
    assert main(["propagate", f"{path}:{name}", "--json"]) == 0
    values = json.loads(capfd.readouterr().out)["values"]
    found = [str(value["sharding"]) for value in values]
    assert sorted(set(found)) == ['<@mesh, [{"data"}, {}]>', "None"]
    assert found.count("None") == 1
    assert any(f"{path}:10" in str(value["location"]) for value in values)


@needs_jax
def test_where_no_mesh_is_given_it_is_said_how(
    model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model.replace("model.py", "jax_model.py")
    assert main(["propagate", f"{path}:without_mesh"]) == 1
    assert 'return step, args, {"mesh": {"data": 2, "model": 4}}' in capfd.readouterr().err


@needs_jax
def test_what_jax_makes_by_itself_is_on_no_line_of_this_package(
    model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model.replace("model.py", "jax_model.py")
    assert main(["propagate", f"{path}:gradient", "--json"]) == 0
    out = capfd.readouterr().out
    assert "%cst" in out
    assert "entry_point" not in out


@needs_jax
def test_every_command_takes_one(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model.replace("model.py", "jax_model.py") + ":build"
    out = tmp_path / "out.html"
    assert main(["why", path, "result"]) == 0
    assert "the argument is annotated" in capfd.readouterr().out
    assert main(["report", path, "-o", str(out)]) == 0
    # The source is that of the model.
    assert "jnp.tanh(x @ params" in out.read_text()
    assert main(["opt", model + ":module", "--sdy-close-shardings"]) == 0
    assert "stablehlo.negate" in capfd.readouterr().out


def test_mistakes(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    for name, message in (
        ("modul", "it has no function modul; it has ends, fails, invalid, module, needs, number"),
        ("number", "it returned an object of type int"),
        ("pair", "it returned a tuple that does not begin with a function"),
        ("needs", "calling it fails: missing a required argument: 'shape'"),
        ("ends", "it ended with exit code 7"),
    ):
        assert main(["propagate", f"{model}:{name}"]) == 1
        error = capfd.readouterr().err
        assert f"error[lowering]: {name} of {model} makes no program: {message}" in error
        assert ("; did you mean module?\n" in error) == (name == "modul")
    assert main(["propagate", f"{model}:fails"]) == 1
    error = capfd.readouterr().err
    message = "fails of {} raised ZeroDivisionError: the user's own mistake"
    assert f"error[lowering]: {message.format(model)}\n" in error
    # Of the traceback only the user's frames.
    assert error.count("  File ") == 1
    assert f'File "{model}", line ' in error
    assert main(["propagate", model]) == 1
    error = capfd.readouterr().err
    assert f"error[lowering]: {model} is a Python file, and which function makes" in error
    assert f"help: name it: {model}:build" in error
    assert main(["propagate", "nowhere.py:build"]) == 1
    assert "error[io]: nowhere.py: No such file" in capfd.readouterr().err


def test_mistakes_with_a_code_keep_it(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["propagate", f"{model}:invalid"]) == 1
    error = capfd.readouterr().err
    with pytest.raises(shardcore.ParseError) as wanted:
        shardcore.Module.parse("func.func @main() {\n  retrn\n}")
    assert error.endswith(f"{wanted.value}\n")
    assert "Traceback" not in error


@needs_jax
def test_mistakes_in_annotations_are_told_without_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(
        "import jax, jax.numpy as jnp\nfrom jax.sharding import PartitionSpec as P\n"
        "def build():\n    x = jax.ShapeDtypeStruct((8, 4), jnp.float32)\n"
        '    return jnp.tanh, (x,), {"mesh": {"data": 2}, "in_shardings": P("dta")}\n'
    )
    assert main(["propagate", f"{tmp_path / 'model.py'}:build"]) == 1
    error = capfd.readouterr().err
    assert (
        "error[unknown-axis]: P('dta',) names axis \"dta\", which the mesh does not have\n"
        '  help: did you mean "data"?'
    ) in error
    assert "Traceback" not in error


def test_a_file_may_be_called_like_that(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        Path("a.py:b").write_text("func.func @main() { return }")
    except OSError:
        pytest.skip("this system has no such names")
    assert main(["propagate", "a.py:b"]) == 0
