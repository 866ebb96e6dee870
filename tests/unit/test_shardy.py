"""Which version of Shardy is followed."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore import Module, ParseError, PassManager, PipelineError, shardy

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.abs %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
OLDEST, NEWEST = shardcore.SHARDY_VERSIONS[0], shardcore.SHARDY_VERSIONS[-1]


@pytest.mark.parametrize(
    ("name", "version"),
    [("0.10", "0.10"), ("0.10.2", "0.10"), ("0.12", "0.12"), ("0.12.0.1", "0.12")],
)
def test_a_release_of_jaxlib_names_a_version(name: str, version: str) -> None:
    assert Module.parse(PROGRAM, shardy=name).shardy == version


@pytest.mark.parametrize("name", ["", "0.1", "0.9.2", "99.0", "newest"])
def test_versions_that_are_not_known(name: str) -> None:
    with pytest.raises(ParseError) as caught:
        Module.parse(PROGRAM, shardy=name)
    [problem] = caught.value.diagnostics
    assert problem.code == "shardy-version"
    assert problem.hint == f"it knows those of {', '.join(shardcore.SHARDY_VERSIONS)}"


def test_the_default_is_that_of_the_installed_jaxlib() -> None:
    release = shardy.installed_release()
    default = Module.parse(PROGRAM).shardy
    assert default == shardy.default_shardy()
    if release is None:
        assert default == NEWEST
    else:
        known = [version for version in shardcore.SHARDY_VERSIONS if _key(version) <= _key(release)]
        assert default == (known[-1] if known else OLDEST)


def _key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")[:2]))


def test_without_jaxlib_the_default_is_the_newest() -> None:
    # A module that cannot be found, as if nothing were installed.
    code = (
        "import sys; sys.modules['jaxlib'] = None\n"
        "import shardcore; print(shardcore.Module.parse('').shardy)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == NEWEST


@pytest.mark.parametrize("version", shardcore.SHARDY_VERSIONS)
def test_everything_made_of_a_program_follows_its_version(version: str, tmp_path: Path) -> None:
    module = Module.parse(PROGRAM, shardy=version)
    path = tmp_path / "a.mlir"
    path.write_text(PROGRAM)
    result = module.propagate()
    made = [
        copy.copy(module),
        pickle.loads(pickle.dumps(module)),
        Module.from_file(path, shardy=version),
        result.module,
        result.with_collectives,
        result.partition().module,
        module.session().result.module,
        pickle.loads(pickle.dumps(module.session())).module,
    ]
    assert {each.shardy for each in made} == {version}
    assert result.summary()["shardy"] == result.cost("tpu-v5e").shardy == version
    assert result.cost("tpu-v5e").record()["shardy"] == version


def test_passes_are_those_of_the_module_unless_others_are_asked_for() -> None:
    text = "builtin.module(sdy-propagation-pipeline)"
    for version in shardcore.SHARDY_VERSIONS:
        module = Module.parse(PROGRAM, shardy=version)
        manager = PassManager.parse(text)
        assert manager.shardy is None
        manager.run(module)
        assert module.shardy == version
        for other in shardcore.SHARDY_VERSIONS:
            manager = PassManager.parse(text, shardy=other)
            assert manager.shardy == other
            manager.run(module)
            assert module.shardy == other


def test_a_pass_of_a_later_version() -> None:
    name = "sdy-verify-unreduced-axes"
    assert name in PassManager.pass_names(shardy=NEWEST)
    assert name not in PassManager.pass_names(shardy=OLDEST)
    text = f"builtin.module(func.func({name}))"
    PassManager.parse(text).run(Module.parse(PROGRAM, shardy=NEWEST))
    with pytest.raises(PipelineError) as caught:
        PassManager.parse(text, shardy=OLDEST)
    [problem] = caught.value.diagnostics
    assert problem.hint == (
        f'the Shardy of jaxlib {NEWEST} has it, not that of {OLDEST}: shardy="{NEWEST}"'
    )
    module = Module.parse(PROGRAM, shardy=OLDEST)
    with pytest.raises(PipelineError):
        PassManager.parse(text).run(module)
    assert module.shardy == OLDEST


@pytest.mark.parametrize("version", shardcore.SHARDY_VERSIONS)
def test_on_the_command_line(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "shardcore", "propagate", str(path), "--shardy", version]
    table = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"as the Shardy of jaxlib {version}" in table.stdout
    record = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(record.stdout)["summary"]["shardy"] == version
    command = [sys.executable, "-m", "shardcore", "opt", str(path), f"--shardy={version}"]
    passes = ["--sdy-close-shardings"]
    done = subprocess.run([*command, *passes], capture_output=True, text=True, check=True)
    assert "stablehlo.abs" in done.stdout
