"""Bad arguments: sequences that lie about their length or never end, sizes beyond all memory.

As in `test_hostile`: a result or an error of Python's own or ours, in seconds and within 4 GiB.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import shardcore
from shardcore import Mesh, Module, ParseError, TensorSharding

from tests.unit.test_hostile import ROOT

PRELUDE = """
import itertools, json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import shardcore
from shardcore import *
from shardcore.rules import EdgeGroup, data_flow_edges

class Long(list):
    def __len__(self): return 2**62
class Negative(list):
    def __len__(self): return -1
class Ones:
    "A sequence of ones without end."
    def __len__(self): return 3
    def __getitem__(self, index): return 1
class Names:
    "A sequence of names without end."
    def __getitem__(self, index): return "x"
class Endless(dict):
    def items(self): return itertools.repeat(("x", 2))
class Falling:
    def __iter__(self): return self
    def __next__(self): raise KeyError("fell")

x = Mesh({"x": 2})
sharding = TensorSharding(x, ["x"])
def huge(count): return TensorSharding(Mesh({"x": count}), ["x"])
"""

FINE = [
    "sharding.local_shape(Long([5]))",
    "sharding.local_shape(Negative([5]))",
    'PassManager.from_flags(Long(["--sdy-close-shardings"]))',
    'TensorSharding("@m", Long([None]))',
    'DimSharding(Long(["x"]))',
    "Mesh({'x': 4}, device_ids=Long([3, 2, 1, 0]))",
    "Mesh(Long([('x', 2)]))",
    "OpShardingRule(Long([2]), Long([Long([Long([0])])]), [[[0]]], reduction=Long([]))",
    'OpShardingRule.parse("i -> i", Long([Long([2])]), Negative([[2]]))',
    "sharding.is_equivalent(sharding, Long([4]))",
    "sharding.visualize(Long([4]))",
    "sharding.to_hlo(Negative([]))",
    "huge(2**40).to_hlo()",
    "huge(2**30).visualize([2**30])",
    "TensorSharding(Mesh({'x': 2**61}), [AxisRef('x', 2**30, 2)]).visualize([2**62])",
    "huge(2**20).padding([2**20])",
    'TensorSharding.fully_replicated("@m", 2**20)',
    'data_flow_edges("a.b", EdgeGroup(returns=itertools.repeat(1)))',
    'data_flow_edges("a.b", EdgeGroup(block_args=Long([1])))',
    "Mesh({'x': 2**20}, device_ids=reversed(range(2**20)))",
]

TOO_LARGE = [
    'TensorSharding.fully_replicated("@m", 10**8)',
    'TensorSharding.fully_replicated("@m", 2**62)',
    "TensorSharding.fully_replicated(x, 2**63)",
    'TensorSharding.from_hlo("{replicated}", x, rank=2**62)',
    'HloSharding.parse("{unknown}").to_sharding(x, rank=2**40)',
    'TensorSharding("@m", itertools.repeat(None))',
    'TensorSharding("@m", Names())',
    'TensorSharding("@m", [Names()])',
    'TensorSharding("@m", [], replicated=Names())',
    'TensorSharding("@m", [], unreduced=itertools.repeat("x"))',
    "DimSharding(Names())",
    'DimSharding([f"x{i}" for i in range(2**20 + 1)])',
    "Mesh(itertools.repeat(('x', 2)))",
    "Mesh(Endless())",
    "Mesh({'x': 10**9}, device_ids=range(10**9))",
    "Mesh({'x': 2**61}, device_ids=itertools.count())",
    "OpShardingRule(Ones(), [], [])",
    "OpShardingRule([2], [[[0]]], [[[0]]], reduction=Ones())",
    'OpShardingRule.parse("i -> i", [Ones()], [[2]])',
    "sharding.local_shape(Ones())",
    "sharding.shard_slice(Ones(), 0)",
    "sharding.shard_padding(Ones(), 0)",
    "sharding.device_slices(Ones())",
    "sharding.padding(Ones())",
    "sharding.bytes_per_device(Ones(), 'f32')",
    "sharding.is_equivalent(sharding, Ones())",
    "sharding.visualize(Ones())",
    "sharding.to_hlo(Names())",
    "PassManager.from_flags(Names())",
    "huge(2**24).padding([2**24])",
    "huge(2**24).device_slices([2**24])",
    "huge(2**61).padding([2**61])",
    'TensorSharding(Mesh({"x": 2**18}), ["x"] + [None] * 100).padding([2**18] + [1] * 100)',
    'Module.parse("x" * 2**31)',
    'Module.from_file("/dev/zero")',
]

MISTAKEN = [
    ("Mesh({'x': 4}, device_ids=Ones())", "VerificationError"),
    ("Mesh({'x': 4}, device_ids=itertools.count())", "VerificationError"),
    ("Mesh(Names())", "TypeError"),
    ("TensorSharding.parse('<@m, []>', Endless(x=x))", "TypeError"),
    ("Mesh(Ones())", "TypeError"),
    ('TensorSharding("@m", Ones())', "TypeError"),
    ('TensorSharding("@m", Falling())', "KeyError"),
    ("Mesh(Falling())", "KeyError"),
    ("Mesh({'x': 2}, device_ids=Falling())", "KeyError"),
    ("OpShardingRule([2], Names(), [])", "TypeError"),
    ("OpShardingRule([2], itertools.repeat([]), [])", "TypeError"),
    ("sharding.local_shape({4: 4})", "TypeError"),
    ("sharding.local_shape('4')", "TypeError"),
    ("sharding.local_shape({4})", "TypeError"),
    ('TensorSharding.fully_replicated("@m", -1)', "ValueError"),
    ('data_flow_edges("a.b", EdgeGroup(returns=itertools.count()))', "ValueError"),
    ('data_flow_edges("a.b", EdgeGroup(returns=[2**40]))', "ValueError"),
    ('Module.from_file("/")', "IsADirectoryError"),
    ('Module.from_file("")', "FileNotFoundError"),
    ('Module.from_file("/no/such/file")', "FileNotFoundError"),
    ('Module.from_file("a\\0b")', "ValueError"),
]

RUN = """
for code in json.loads(sys.stdin.read()):
    try:
        eval(code)
    except Exception as error:
        print(json.dumps([code, type(error).__name__]), flush=True)
    else:
        print(json.dumps([code, "fine"]), flush=True)
"""


def outcomes(codes: list[str]) -> list[list[str]]:
    """What comes of each of `codes`, one after the other in a process with 4 GiB."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + RUN],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        timeout=240,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sequences_that_lie_about_their_length() -> None:
    assert outcomes(FINE) == [[code, "fine"] for code in FINE]


def test_sizes_are_checked_before_memory_is_asked_for() -> None:
    kinds = dict(outcomes(TOO_LARGE))
    larger = kinds.pop("TensorSharding.fully_replicated(x, 2**63)")
    assert larger in ("ProgramTooLargeError", "ValueError")
    assert set(kinds.values()) == {"ProgramTooLargeError"}, kinds


def test_mistaken_arguments() -> None:
    codes = [code for code, _ in MISTAKEN]
    assert outcomes(codes) == [list(pair) for pair in MISTAKEN]


def test_files_larger_than_any_program(tmp_path: Path) -> None:
    path = tmp_path / "sparse.mlir"
    with path.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(shardcore.ProgramTooLargeError):
        Module.from_file(path)


@pytest.mark.parametrize("command", ["from_file", "propagate", "opt"])
def test_a_fifo_that_nobody_writes_to_can_be_interrupted(tmp_path: Path, command: str) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    if command == "from_file":
        code = (
            f"import shardcore; print('go', flush=True); shardcore.Module.from_file({str(path)!r})"
        )
    else:
        code = (
            "from shardcore.cli import main; import sys; print('go', flush=True); "
            f"sys.exit(main([{command!r}, {str(path)!r}]))"
        )
    # A parent that ignores Ctrl-C would have the child ignore it as well.
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {code}"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert process.returncode in (-signal.SIGINT, 130)
    assert "KeyboardInterrupt" in error or "interrupted" in error


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    path, text = tmp_path / "fifo", "func.func private @f()\n" + "// a comment\n" * 200_000
    os.mkfifo(path)
    code = (
        f"open({str(path)!r}, 'w').write('func.func private @f()\\n' + '// a comment\\n' * 200_000)"
    )
    with subprocess.Popen([sys.executable, "-c", code]):
        module = Module.from_file(path)
    assert str(module) == str(Module.parse(text))


EVIL = "import sys\nopen({mark!r}, 'w').write('run')\n"


# Where a module or a library is started, Python itself looks into the directory first, for the
# process that the user starts.
PYTHON_LOOKS_THERE = ["jaxlib", "ml_dtypes"]
STARTS = {
    "script": [
        *("encodings", "jaxlib", "json", "numpy", "runpy", "shardcore", "site", "sitecustomize"),
    ],
    "module": PYTHON_LOOKS_THERE,
    "library": PYTHON_LOOKS_THERE,
}


@pytest.mark.parametrize("start", STARTS)
def test_no_child_imports_from_where_the_user_stands(tmp_path: Path, start: str) -> None:
    here, marks = tmp_path / "here", tmp_path / "marks"
    here.mkdir()
    marks.mkdir()
    (here / "x.mlirbc").write_bytes(b"ML\xefRjunk")
    for name in STARTS[start]:
        evil = EVIL.format(mark=str(marks / name))
        (here / f"{name}.py").write_text(evil, encoding="utf-8")
    commands = {
        "script": [str(Path(sys.executable).parent / "shardcore"), "propagate", "x.mlirbc"],
        "module": [sys.executable, "-m", "shardcore", "propagate", "x.mlirbc"],
        "library": [
            sys.executable,
            "-c",
            "import shardcore\ntry: shardcore.Module.from_file('x.mlirbc')\n"
            "except shardcore.ParseError as error: sys = __import__('sys'); sys.exit(str(error))",
        ],
    }
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        commands[start], cwd=here, capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 1
    assert "error[bytecode]" in done.stderr
    assert os.listdir(marks) == []


PROGRAMS = {
    "plain": "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }",
    "sharded": """
        sdy.mesh @m = <["x"=2]>
        func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
            -> tensor<8xf32> {
          %0 = stablehlo.add %a, %a : tensor<8xf32>
          %1 = call @g(%0) : (tensor<8xf32>) -> tensor<8xf32>
          %2 = chlo.square %1 : tensor<8xf32> -> tensor<8xf32>
          return %2 : tensor<8xf32>
        }
        func.func private @g(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }""",
    "other dialects": """
        module @foo attributes {mhlo.num_partitions = 2 : i32} {
          func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
            %c = arith.constant 3 : i32
            %d = mhlo.copy %a : tensor<8xf32>
            %0 = "my.op"(%a) {a = 3 : i32} : (tensor<8xf32>) -> tensor<8xf32>
            return %0 : tensor<8xf32>
          }
        }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytecode_as_mlir_writes_it(name: str) -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jax._src.lib.mlir").ir
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        data = io.BytesIO()
        parsed = ir.Module.parse(PROGRAMS[name])
        parsed.operation.write_bytecode(data)
        read = Module.parse(data.getvalue())
        again = ir.Module.parse(str(read))
        assert str(again) == str(parsed)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"ML\xefR", "attempting to parse a byte at the end"),
        (b"ML\xefR\x0dStableHLO_v1.0\0junk", "invalid section ID"),
    ],
)
def test_why_bytecode_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        Module.parse(data)
    assert f"bytecode of <string>: {reason}" in caught.value.message


def test_bytecode_that_is_none_is_refused() -> None:
    with pytest.raises(ParseError, match="damaged"):
        Module.parse(b"ML\xefRjunk")


def test_shards_of_many_devices_are_asked_for_one_by_one() -> None:
    sharding = TensorSharding(Mesh({"x": 2**30}), ["x"])
    with pytest.raises(shardcore.ProgramTooLargeError, match="ask for one"):
        sharding.padding([2**31])
    assert sharding.shard_slice([2**31], 5) == (slice(10, 12, 1),)
    assert list(itertools.chain(*[sharding.shard_padding([2**31], 5)])) == [0]
