"""More bad input: each part of a program blown up, and every parser that takes text by itself.

As in `test_hostile`: a result or a `ShardcoreError`, in seconds and within 4 GiB.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import shardcore
from shardcore import Module, PassManager, ShardcoreError

from tests.unit.test_hostile import MESH, PIPELINE, ROOT, bounded, chain, function

RETURN = "return %a : tensor<8xf32>"
DIGITS = "9" * 1_000_000


def sharded(dims: str, ty: str = "tensor<8xf32>") -> str:
    sharding = f"sdy.sharding = #sdy.sharding<@mesh, {dims}>"
    return MESH + function(RETURN, f"%a: tensor<8xf32>, %b: {ty} {{{sharding}}}")


def with_attribute(value: str) -> str:
    return f'"a.b"() {{x = {value}}} : () -> ()\n' + function(RETURN)


TEXTS: dict[str, Callable[[], str | bytes]] = {
    "carriage returns": lambda: (MESH + function(RETURN)).replace("\n", "\r"),
    "UTF-16": lambda: function(RETURN).encode("utf-16"),
    "Latin-1": lambda: b'"a\xe9"() : () -> ()',
    "half a surrogate pair": lambda: '"a\ud800"() : () -> ()',
    "bytecode": lambda: b"ML\xefR\x0dMLIR22.0.0git\x00\x1d\x03\x01\x05",
    "bytecode as text": lambda: "ML\xefR\rMLIR",
    "aliases that double": lambda: (
        "#a0 = [1]\n"
        + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(60))
        + with_attribute("#a60")
    ),
    "types that double": lambda: (
        "!t0 = i32\n"
        + "".join(f"!t{i + 1} = tuple<!t{i}, !t{i}>\n" for i in range(60))
        + '%0 = "a.b"() : () -> !t60\n'
    ),
    "aliases in a row": lambda: (
        "#a0 = 1\n"
        + "".join(f"#a{i + 1} = #a{i}\n" for i in range(100_000))
        + with_attribute("#a100000")
    ),
    "largest dim": lambda: sharded('[{"x"}]', f"tensor<{2**63 - 1}xf32>"),
    "dim too large": lambda: sharded('[{"x"}]', f"tensor<{2**63}xf32>"),
    "dim of a million digits": lambda: function(RETURN, f"%a: tensor<{DIGITS}xf32>"),
    "sub-axis of a million digits": lambda: sharded(f'[{{"x":(1){DIGITS}}}]'),
    "priority of a million digits": lambda: sharded(f'[{{"x"}}p{DIGITS}]'),
    "integer of a million digits": lambda: with_attribute(f"{DIGITS} : i64"),
    "type of a million digits": lambda: with_attribute(f"1 : i{DIGITS}"),
    "type of no bits": lambda: with_attribute("1 : i0"),
    "group of many digits": lambda: function(
        f"sdy.sharding_group %a group_id={'9' * 30} : tensor<8xf32>\n{RETURN}"
    ),
    "20,000 groups of one value": lambda: function(
        "".join(f"sdy.sharding_group %a group_id={i} : tensor<8xf32>\n" for i in range(20_000))
        + RETURN
    ),
    "50,000 meshes": lambda: (
        "".join(f'sdy.mesh @m{i} = <["x"=2]>\n' for i in range(50_000)) + function(RETURN)
    ),
    "a million devices in reverse": lambda: (
        f'sdy.mesh @m = <["x"=1000000], device_ids={list(range(999_999, -1, -1))}>\n'
        + function(RETURN)
    ),
    "one function three times": lambda: function(RETURN) * 3,
    "a million elements": lambda: with_attribute(
        f"dense<[{'1, ' * 1_000_000}1]> : tensor<1000001xi32>"
    ),
    "a million integers": lambda: with_attribute(f"array<i64: {'1, ' * 1_000_000}1>"),
    "100,000 keys": lambda: with_attribute(
        "{" + ", ".join(f"a{i} = {i}" for i in range(100_000)) + "}"
    ),
    "one key 100,000 times": lambda: with_attribute("{" + "a = 1, " * 100_000 + "a = 1}"),
    "resource": lambda: (
        function(RETURN)
        + '{-#\n dialect_resources: { builtin: { b: "0x'
        + "00" * 1_000_000
        + '" } }\n#-}\n'
    ),
    "resource without end": lambda: function(RETURN) + "{-#\n dialect_resources: {",
    "name of ten million letters": lambda: function(RETURN).replace("%a", "%" + "a" * 10**7),
    "comment of ten million letters": lambda: "//" + "x" * 10**7 + "\n" + function(RETURN),
    "100,000 blocks": lambda: (
        '"a.b"() ({\n'
        + "".join(f'^bb{i}:\n "a.br"()[^bb{i}] : () -> ()\n' for i in range(100_000))
        + "}) : () -> ()\n"
    ),
    "100,000 quotes": lambda: '"\n' * 100_000,
    "dims that are none": lambda: function(
        f"%0 = stablehlo.transpose %a, dims = [{2**63 - 1}] : (tensor<8xf32>) -> tensor<8xf32>\n"
        "%1 = stablehlo.iota dim = 77 : tensor<8xf32>\n"
        "%2 = stablehlo.dot_general %a, %a, contracting_dims = [5] x [-7] "
        f": (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>\n{RETURN}"
    ),
    "slices beyond all bounds": lambda: function(
        f"%0 = stablehlo.slice %a [{-(2**63)}:{2**63 - 1}:0] : (tensor<8xf32>) -> tensor<8xf32>\n"
        f"{RETURN}"
    ),
    "no elements": lambda: function(
        f"%0 = stablehlo.reshape %b : (tensor<0x4xf32>) -> tensor<7x0xf32>\n{RETURN}",
        "%a: tensor<8xf32>, %b: tensor<0x4xf32>",
    ),
}

NESTED: dict[str, Callable[[int], str]] = {
    "locations by name": lambda n: '"a.b"() : () -> () loc(' + '"a"(' * n + '"x"' + ")" * n + ")",
    "encodings": lambda n: f'%0 = "a.b"() : () -> {"tensor<2xf32, " * n}1{">" * n}',
    "complex types": lambda n: f'%0 = "a.b"() : () -> {"complex<" * n}f32{">" * n}',
    "function types": lambda n: with_attribute("() -> (" * n + ")" * n),
    "bodies of dialects": lambda n: with_attribute("#a.b" + "<" * n + ">" * n),
    "symbols": lambda n: with_attribute("@a::" * n + "@a"),
    "loops": lambda n: function(
        "%c = stablehlo.constant dense<true> : tensor<i1>\n"
        + "".join(
            f"%w{i} = stablehlo.while(%i{i} = %a) : tensor<8xf32> cond {{\n"
            "stablehlo.return %c : tensor<i1>\n} do {\n"
            for i in range(n)
        )
        + "stablehlo.return %a : tensor<8xf32>\n}\n" * n
        + RETURN
    ),
}

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sys.path.insert(0, {root!r})
from tests.unit import test_hostile_parts as parts
for name, make in parts.TEXTS.items():
    print(name, parts.bounded(make()), flush=True)
for name, passes in parts.CALLS:
    print(name, parts.bounded(parts.chain(60), passes), flush=True)
"""

CALLS = [
    (passes, passes)
    for passes in (
        PIPELINE,
        "sdy-flatten-call-graph",
        "sdy-import-func-calls",
        "sdy-import-func-calls{add-data-flow-edges-on-named-computations=false}",
        "sdy-unflatten-call-graph",
        "sdy-propagate-to-func-results",
        "sdy-basic-propagate",
    )
]


def test_parts_blown_up_stay_within_4_gib() -> None:
    command = [sys.executable, "-c", LIMITED.format(root=str(ROOT))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    names = [line.rsplit(" ", 1)[0] for line in done.stdout.splitlines()]
    assert names == [*TEXTS, *(name for name, _ in CALLS)]


@pytest.mark.parametrize("kind", NESTED)
def test_deeply_nested_parts(kind: str) -> None:
    for depth in (1, 10, 300, 900, 1_900, 100_000):
        bounded(NESTED[kind](depth))


def test_calls_that_multiply_are_refused_before_they_do() -> None:
    for passes in ("sdy-flatten-call-graph", "sdy-import-func-calls"):
        with pytest.raises(ShardcoreError) as caught:
            PassManager.parse(f"builtin.module({passes})").run(Module.parse(chain(60)))
        assert caught.value.code == "program-too-large"


ALONE = [
    "",
    "\0",
    "<" * 100_000,
    "[" * 100_000,
    "{" * 9_999,
    "(" * 100_000,
    '"',
    "é" * 100,
    "<[{" * 1_000,
    DIGITS,
    f'<["x"={DIGITS}]>',
    '<["x"=2' + ', "x"=2' * 1_000 + "]>",
    f'<@m, [{{"x":({"1" * 30})2}}]>',
    f"{{devices=[{DIGITS}]<=[8]}}",
    "{devices=[" + "2," * 100 + "2]<=[8]}",
    f"{{devices=[{2**62},4]<=[8]}}",
    "{devices=[-1]0}",
    "{devices=[2,2]<=[4]T(9)}",
    "{devices=[0]<=[0]}",
    f"{{devices=[{2**40}]<=[{2**40}]}}",
    "{maximal device=99999999999999999999}",
    f"{{mesh['x'={2**63 - 1},'y'=9], [{{'x'}}]}}",
    f"([i])->([i]) {{i={DIGITS}}}",
    f"([{'i' * 100_000}])->([i]) {{i=2}}",
    "\n" * 100_000,
]
PARSERS: list[Any] = [
    shardcore.Mesh,
    shardcore.AxisRef,
    shardcore.DimSharding,
    shardcore.TensorSharding,
    shardcore.OpShardingRule,
    shardcore.HloSharding,
]


@pytest.mark.parametrize("kind", PARSERS, ids=lambda kind: kind.__name__)
def test_texts_that_stand_alone(kind: Any) -> None:
    for text in ALONE:
        shown = ""
        try:
            shown = str(kind.parse(text))
        except ShardcoreError as error:
            shown = str(error)
        assert shown


@pytest.mark.parametrize(
    "pipeline",
    [
        "builtin.module(" * 5_000 + "symbol-dce" + ")" * 5_000,
        "builtin.module(sdy-basic-propagate{" + "x" * 10**6 + "=true})",
        f"builtin.module(canonicalize{{max-iterations={'9' * 1_000}}})",
        "builtin.module(sdy-basic-propagate{conservative-propagation=maybe})",
        "builtin.module(\0)",
        "builtin.module(sdy-é)",
    ],
)
def test_pipelines(pipeline: str) -> None:
    with pytest.raises(ShardcoreError):
        PassManager.parse(pipeline)


def test_many_passes() -> None:
    passes = ",".join(["symbol-dce"] * 50_000)
    PassManager.parse(f"builtin.module({passes})").run(Module.parse(function(RETURN)))
