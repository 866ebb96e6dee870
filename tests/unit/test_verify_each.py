"""What a pass leaves is verified where that is asked for, and not otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shardcore import Module, PassManager, ShardcoreError

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
PRIORITY = f"""{MESH}func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}p1]>}})
    -> tensor<8xf32> {{
  return %a : tensor<8xf32>
}}
"""  # noqa: E501
CLOSE = "builtin.module(sdy-close-shardings)"
SAID = "empty and closed but has a priority"


def manager(pipeline: str, verify: bool = True) -> PassManager:
    made = PassManager.parse(pipeline)
    made.enable_verifier(verify)
    return made


def test_what_a_pass_leaves_is_verified() -> None:
    module = Module.parse(PRIORITY)
    with pytest.raises(ShardcoreError, match=SAID) as caught:
        manager(CLOSE).run(module)
    assert caught.value.hint == "sdy-close-shardings has left the program like this"
    assert str(module) == PRIORITY


def test_the_pass_that_left_it_is_named() -> None:
    module = Module.parse(PRIORITY)
    pipeline = "builtin.module(symbol-dce,sdy-close-shardings,func.func(sdy-drop-sharding-rules))"
    with pytest.raises(ShardcoreError, match=SAID) as caught:
        manager(pipeline).run(module)
    assert "sdy-close-shardings" in str(caught.value.hint)


def test_it_is_off_unless_asked_for() -> None:
    for made in (PassManager.parse(CLOSE), manager(CLOSE, verify=False)):
        module = Module.parse(PRIORITY)
        made.run(module)
        assert "[{}p1]" in str(module)


def test_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "a.mlir"
    file.write_text(PRIORITY)
    command = [sys.executable, "-m", "shardcore", "opt", str(file), "--sdy-close-shardings"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "[{}p1]" in done.stdout
    verified = subprocess.run([*command, "--verify-each"], capture_output=True, text=True)
    assert verified.returncode == 1
    assert SAID in verified.stderr
    assert not verified.stdout
