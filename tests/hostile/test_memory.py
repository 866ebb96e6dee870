"""Where the address space is limited, what may need more is refused, and nothing aborts."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems set no such limit")

HEAD = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2)
from shardcore import Mesh, Module, OpShardingRule, PassManager, ShardcoreError, TensorSharding

def chain(count):
    names = ["%a", *(f"%{i}" for i in range(count))]
    ops = "".join(f"{y} = stablehlo.add {x}, %a : tensor<8xf32>\\n" for x, y in zip(names, names[1:]))
    return f"func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{\\n{ops}return {names[-1]} : tensor<8xf32>}}"
"""  # noqa: E501
WORK = """
try:
    WORK
except ShardcoreError as error:
    print(error.code)
"""

CASES = {
    "parse": ("text = chain(300_000)", "Module.parse(text)"),
    "propagate": (
        "module = Module.parse(chain(60_000))",
        "[module.propagate() for _ in range(90)]",
    ),
    "pipeline": (
        'text = f\'builtin.module({",".join(["canonicalize"] * 400_000)})\'',
        "PassManager.parse(text)",
    ),
    "rule": (
        'text = f\'#sdy.op_sharding_rule<([{", ".join("i" * 1_500_000)}])->([i]) {{i=2}}>\'',
        "OpShardingRule.parse(text)",
    ),
    "sharding": (
        'text = f\'#sdy.sharding<@m, [{", ".join(["{}"] * 1_000_000)}]>\'',
        "TensorSharding.parse(text)",
    ),
    "mesh": (
        'text = f\'<["a"=400000], device_ids=[{", ".join(map(str, range(399_999, -1, -1)))}]>\'',
        "Mesh.parse(text)",
    ),
    "text": ("module = Module.parse(chain(60_000))", "[str(module) for _ in range(200)]"),
    "values": ("module = Module.parse(chain(60_000))", "[module.values() for _ in range(90)]"),
    "ops": ("module = Module.parse(chain(60_000))", "[module.ops() for _ in range(90)]"),
    "session": (
        "module = Module.parse(chain(60_000))",
        "[(it := module.session(), it.result.module) for _ in range(90)]",
    ),
    "devices": (
        'mesh = Mesh({"x": 1 << 21}, device_ids=range((1 << 21) - 1, -1, -1))',
        "[(str(mesh), mesh.device_ids) for _ in range(90)]",
    ),
    "devices of a new mesh": (
        "ids = range((1 << 23) - 1, -1, -1)",
        '[Mesh({"x": 1 << 23}, device_ids=ids) for _ in range(90)]',
    ),
    "shards of devices": (
        'sharding = TensorSharding(Mesh({"x": 1 << 18}), ["x"])',
        "[sharding.padding([1 << 18]) for _ in range(90)]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_may_take_more_than_there_is_is_refused(name: str) -> None:
    setup, work = CASES[name]
    code = HEAD + setup + WORK.replace("WORK", work)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr[-200:]) == (0, "program-too-large\n", "")
