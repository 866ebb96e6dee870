"""Bad input: each gives a result or a clear error, in bounded time and memory, and never a panic.

What takes the reference down comes first, then texts that were cut, changed, nested, inflated,
tied in knots or made up. Nothing here is random between runs.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore import Module, PassManager, ShardcoreError

ROOT = Path(__file__).resolve().parents[2]
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
PIPELINE = "sdy-propagation-pipeline"
PROPAGATION_PASSES = [
    "sdy-basic-propagate",
    "sdy-aggressive-propagate",
    "sdy-op-priority-propagate",
    "sdy-user-priority-propagate",
]


def run(text: str, passes: str = PIPELINE) -> Module:
    module = Module.parse(text)
    PassManager.parse(f"builtin.module({passes})").run(module)
    return module


def refused(text: str, passes: str = PIPELINE) -> ShardcoreError:
    with pytest.raises(ShardcoreError) as caught:
        run(text, passes)
    # Whatever it is, it can be shown.
    assert str(caught.value).startswith("error[")
    return caught.value


def function(body: str, args: str = "%a: tensor<8xf32>", name: str = "main") -> str:
    return f"func.func @{name}({args}) -> tensor<8xf32> {{\n  {body}\n}}\n"


def call(target: str, name: str = "main") -> str:
    return function(
        f"%0 = call @{target}(%a) : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>",
        name=name,
    )


DECLARATION = "func.func private @g(tensor<8xf32>) -> tensor<8xf32>\n"


@pytest.mark.parametrize("passes", [PIPELINE, "sdy-flatten-call-graph", *PROPAGATION_PASSES])
def test_recursion(passes: str) -> None:
    assert refused(call("main"), passes).code == "recursive-call"
    circle = call("g") + call("h", "g") + call("g", "h")
    assert refused(circle, passes).code == "recursive-call"


@pytest.mark.parametrize(
    "passes", [PIPELINE, PIPELINE + "{dedup-functions-fully=true}", *PROPAGATION_PASSES]
)
def test_calls_of_functions_without_body(passes: str) -> None:
    error = refused(DECLARATION + call("g"), passes)
    assert (error.code, error.line) == ("unknown-symbol", 3)


@pytest.mark.parametrize("passes", [PIPELINE, *PROPAGATION_PASSES])
def test_modules_without_function(passes: str) -> None:
    for text in ("", MESH, "module {\n}"):
        assert refused(text, passes).code == "unknown-symbol"


@pytest.mark.parametrize(
    "axes",
    [
        f'"a"={2**62}',
        f'"a"={2**63 - 1}',
        f'"a"={2**31}, "b"={2**31}',
        ", ".join(f'"a{i}"=2' for i in range(62)),
        f'"a"={2**40}, "b"={2**40}, "c"={2**48}',
    ],
)
def test_meshes_of_2_62_devices(axes: str) -> None:
    error = refused(f"sdy.mesh @m = <[{axes}]>\n" + function("return %a : tensor<8xf32>"))
    assert error.code == "invalid-mesh"


def test_the_largest_mesh_works() -> None:
    module = run(
        f'sdy.mesh @m = <["a"={2**61}]>\n'
        + function(
            "return %a : tensor<8xf32>",
            '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}',
        )
    )
    assert module["%a"].local_shape == (1,)


@pytest.mark.parametrize("passes", PROPAGATION_PASSES)
def test_values_in_two_groups_without_import(passes: str) -> None:
    groups = "\n".join(f"sdy.sharding_group %a group_id={i} : tensor<8xf32>" for i in (1, 2))
    text = function(f"{groups}\n  return %a : tensor<8xf32>")
    assert refused(text, passes).code == "invalid-group"
    run(text)


@pytest.mark.parametrize("passes", PROPAGATION_PASSES)
@pytest.mark.parametrize("mesh", ['<["x"=2]>', "<[], device_ids=[3]>"])
def test_inlined_meshes_without_import(passes: str, mesh: str) -> None:
    dims = '[{"x", ?}]' if "x" in mesh else "[]"
    sharding = f"#sdy.sharding<mesh{mesh}, {dims}>"
    on_argument = function(
        "return %a : tensor<8xf32>", f"%a: tensor<8xf32> {{sdy.sharding = {sharding}}}"
    )
    on_result = function("return %a : tensor<8xf32>").replace(
        "-> tensor<8xf32>", f"-> (tensor<8xf32> {{sdy.sharding = {sharding}}})"
    )
    on_op = function(
        "%0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<"
        f"[<mesh{mesh}, {dims}>]>}} : tensor<8xf32>\n  return %0 : tensor<8xf32>"
    )
    for text in (on_argument, on_result, on_op):
        error = refused(text, passes)
        assert error.hint == "run sdy-lift-inlined-meshes first"
        assert error.line is not None
        run(text, f"sdy-lift-inlined-meshes,{passes}")
        run(text)


def test_sub_axes_of_any_size() -> None:
    for pre_size, size in [
        (2**63 - 1, 2),
        (2**62, 2),
        (1, 2**63 - 1),
        (2**32, 2**32),
        (0, 2),
        (1, 1),
    ]:
        sharding = f'#sdy.sharding<@mesh, [{{"x":({pre_size}){size}}}]>'
        args = f"%a: tensor<8xf32> {{sdy.sharding = {sharding}}}"
        error = refused(MESH + function("return %a : tensor<8xf32>", args))
        assert error.code == "invalid-sub-axis"


@pytest.mark.parametrize(
    "rule",
    [
        "([i])->([i]) {i=0}",
        "([i])->([i]) {i=4}",
        "([i])->([i]) {i=-8}",
        f"([ij])->([ij]) {{i={2**62}, j={2**62}}}",
        "([i, j])->([i]) {i=8, j=1}",
        "([i])->([i], [i]) {i=8}",
        "([i], [i])->([i]) {i=8}",
    ],
)
def test_rules_that_do_not_fit(rule: str) -> None:
    op = f"stablehlo.abs %a {{sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>}}"
    error = refused(function(f"%0 = {op} : tensor<8xf32>\n  return %0 : tensor<8xf32>"))
    assert (error.code, error.line) == ("invalid-rule", 2)


def test_priorities_on_region_ops() -> None:
    for owner in ("p0", "p1", "p2"):
        for inner in ("p0", "p1"):
            run(
                MESH
                + function(
                    "%0 = stablehlo.while(%i = %a) : tensor<8xf32> attributes {sdy.sharding ="
                    f' #sdy.sharding_per_value<[<@mesh, [{{"y", ?}}{owner}]>]>}}\n'
                    "  cond {\n    %c = stablehlo.constant dense<true> : tensor<i1>\n"
                    "    stablehlo.return %c : tensor<i1>\n  } do {\n"
                    "    %1 = sdy.manual_computation(%i)"
                    f' in_shardings=[<@mesh, [{{"x", ?}}{inner}]>]'
                    f' out_shardings=[<@mesh, [{{"x", ?}}{owner}]>]'
                    ' manual_axes={"x"} (%b: tensor<2xf32>) {\n'
                    "      %2 = stablehlo.abs %b : tensor<2xf32>\n"
                    "      sdy.return %2 : tensor<2xf32>\n"
                    "    } : (tensor<8xf32>) -> tensor<8xf32>\n"
                    "    stablehlo.return %1 : tensor<8xf32>\n  }\n  return %0 : tensor<8xf32>"
                )
            )


@pytest.mark.parametrize(
    "more", ["", ",func.func(sdy-insert-explicit-reshards{enable-full-version})"]
)
def test_unreduced_axes_that_differ(more: str) -> None:
    lists = ['unreduced={"x"}', 'unreduced={"y"}', 'unreduced={"x", "y"}', 'replicated={"x"}']
    for left in lists:
        for right in lists:
            args = ", ".join(
                f"%{name}: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}], {axes}>}}"
                for name, axes in (("a", left), ("b", right))
            )
            body = "%0 = stablehlo.add %a, %b : tensor<8xf32>\n  return %0 : tensor<8xf32>"
            bounded(MESH + function(body, args), PIPELINE + more)


def bounded(text: str | bytes, passes: str = PIPELINE) -> bool:
    """Whether ``text`` has a result; if not the error can be shown. A panic is neither."""
    try:
        module = Module.parse(text)
        PassManager.parse(f"builtin.module({passes})").run(module, max_ops=1_000_000)
        again = str(module)
        assert str(Module.parse(again)) == again
    except ShardcoreError as error:
        shown = str(error)
    else:
        return True
    assert shown.startswith("error[")
    return False


PROGRAM = f"""\
#loc = loc("a.py":1:2)
module @m attributes {{mhlo.num_partitions = 8 : i32}} {{
  {MESH}  func.func public @main(
      %a: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x":(1)2, ?}}, {{?}}p1]>}},
      %w: tensor<16x8xf32> loc("w")) -> (tensor<8x8xf32> {{jax.result_info = "result"}}) {{
    %c = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0],
      precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      loc(#loc)
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
    %3:2 = stablehlo.while(%i = %0, %j = %2) : tensor<8x8xf32>, tensor<8x8xf32> cond {{
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %4 = func.call @f(%i) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %4, %i : tensor<8x8xf32>, tensor<8x8xf32>
    }}
    %5 = sdy.sharding_constraint %3#1 <@mesh, [{{"y"}}, {{?}}]> : tensor<8x8xf32>
    %6 = "my.op"(%5) ({{
    ^bb0(%k: tensor<8x8xf32>):
      "my.end"(%k) : (tensor<8x8xf32>) -> ()
    }}) {{v = [1, 2.5, "s", @f, array<i64: 1>], sdy.sharding_rule =
      #sdy.op_sharding_rule<([i, j])->([i, j]) {{i=8, j=8}}>}}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %6 : tensor<8x8xf32>
  }}
  func.func private @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {{
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }}
}}
"""


def test_the_program_that_is_changed_below_is_sound() -> None:
    assert bounded(PROGRAM)


def test_truncated_texts() -> None:
    for end in range(0, len(PROGRAM), 7):
        bounded(PROGRAM[:end])
        bounded(PROGRAM[end:])


def test_texts_with_a_character_changed() -> None:
    draw = random.Random(1)
    for _ in range(400):
        at = draw.randrange(len(PROGRAM))
        bounded(PROGRAM[:at] + draw.choice('{}()[]<>"%@#:,=-x0 \n\0é') + PROGRAM[at + 1 :])


def test_texts_with_words_moved() -> None:
    draw = random.Random(2)
    words = PROGRAM.split(" ")
    for _ in range(400):
        changed = list(words)
        for _ in range(draw.randint(1, 3)):
            i, j = draw.randrange(len(words)), draw.randrange(len(words))
            change = draw.randrange(3)
            if change == 0:
                changed[i], changed[j] = changed[j], changed[i]
            elif change == 1:
                changed[i] = changed[j]
            else:
                changed[i] = ""
        bounded(" ".join(changed))


def test_texts_with_numbers_changed() -> None:
    draw = random.Random(3)
    places = [at for at, char in enumerate(PROGRAM) if char.isdigit()]
    numbers = [
        "-1",
        "0",
        "1",
        "3",
        "65",
        str(2**31),
        str(2**63 - 1),
        str(2**63),
        "9" * 40,
        "1e9",
        "?",
    ]
    for at in places:
        bounded(PROGRAM[:at] + draw.choice(numbers) + PROGRAM[at + 1 :])


def test_every_pass_survives_texts_that_no_pass_has_prepared() -> None:
    for name in PassManager.pass_names():
        for passes in (name, f"func.func({name})", f"{name},{PIPELINE}"):
            try:
                PassManager.parse(f"builtin.module({passes})")
            except ShardcoreError:
                continue
            for text in (PROGRAM, "", MESH + DECLARATION + call("g"), call("main")):
                bounded(text, passes)


def test_bytes_of_all_kinds() -> None:
    draw = random.Random(4)
    for size in range(0, 60):
        bounded(draw.randbytes(size))
    for text in (b"\xef\xbb\xbf" + PROGRAM.encode(), PROGRAM.replace("\n", "\r\n").encode()):
        bounded(text)
    for text in ("\0", "\0" * 10_000, "(" * 10_000, '"' * 9_999, "//" * 9_999, "%" * 9_999):
        assert not bounded(text)


NESTED = {
    "regions": lambda n: '"a.b"() ({\n' * n + "}) : () -> ()\n" * n,
    "regions without end": lambda n: '"a.b"() ({\n' * n,
    "modules": lambda n: "module {\n" * n + "}\n" * n,
    "attributes": lambda n: f'"a.b"() {{x = {"[" * n}{"]" * n}}} : () -> ()',
    "dictionaries": lambda n: f'"a.b"() {{x = {"{x = " * n}1{"}" * n}}} : () -> ()',
    "types": lambda n: f'%0 = "a.b"() : () -> {"tuple<" * n}i1{">" * n}',
    "functions": lambda n: f'%0 = "a.b"() : () -> {"(" * n}{") -> i1" * n}',
    "locations": lambda n: f'"a.b"() : () -> () loc({"fused[" * n}"x"{"]" * n})',
    "call sites": lambda n: f'"a.b"() : () -> () loc({"callsite(" * n}"x"{" at unknown)" * n})',
    "elements": lambda n: (
        f"%0 = stablehlo.constant dense<{'[' * n}1{']' * n}> : tensor<{'1x' * n}i32>"
    ),
    "shardings": lambda n: f"sdy.mesh @m = {'<' * n}",
    "aliases": lambda n: "".join(f"#a{i} = [#a{i + 1}, #a{i + 1}]\n" for i in range(n)),
}


@pytest.mark.parametrize("kind", NESTED)
def test_deeply_nested_texts(kind: str) -> None:
    for depth in (1, 10, 500, 100_000):
        bounded(NESTED[kind](depth))


KNOTS = {
    "alias of itself": "#a = #a\n" + '"a.b"() {x = #a} : () -> ()',
    "aliases of each other": '#a = [#b]\n#b = [#a]\n"a.b"() {x = #a} : () -> ()',
    "type of itself": '!t = !t\n%0 = "a.b"() : () -> !t',
    "types of each other": '!t = tuple<!u>\n!u = tuple<!t>\n%0 = "a.b"() : () -> tensor<2x!t>',
    "location of itself": '#loc = loc(#loc)\n"a.b"() : () -> () loc(#loc)',
    "locations of each other": (
        "#loc1 = loc(fused[#loc2])\n#loc2 = loc(fused[#loc1])\n"
        + function("return %a : tensor<8xf32> loc(#loc1)")
    ),
    "use before definition": function(
        "%0 = stablehlo.abs %1 : tensor<8xf32>\n  %1 = stablehlo.abs %0 : tensor<8xf32>\n"
        "  return %1 : tensor<8xf32>"
    ),
    "sharding of a mesh that comes later": function(
        "return %a : tensor<8xf32>",
        '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}',
    )
    + MESH,
    "blocks that branch in a circle": function(
        '"a.br"()[^bb1] : () -> ()\n^bb1:\n  "a.br"()[^bb2] : () -> ()\n^bb2:\n'
        '  "a.br"()[^bb1] : () -> ()'
    ),
}


@pytest.mark.parametrize("kind", KNOTS)
def test_texts_tied_in_knots(kind: str) -> None:
    bounded(KNOTS[kind])


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sys.path.insert(0, {root!r})
from tests.unit.test_hostile import ENORMOUS, bounded
for name, make in ENORMOUS.items():
    print(name, bounded(make()), flush=True)
"""


def chain(count: int) -> str:
    """Functions that each call the next one twice: 2^count when they are flattened."""
    line = "  %{0} = call @f{1}(%a) : (tensor<8xf32>) -> tensor<8xf32>\n"
    functions = [
        function(
            line.format(0, i + 1) + line.format(1, i + 1) + "  return %1 : tensor<8xf32>",
            name=f"f{i}",
        )
        for i in range(count)
    ]
    return call("f0") + "".join(functions) + function("return %a : tensor<8xf32>", name=f"f{count}")


ENORMOUS = {
    "call graph": lambda: chain(60),
    "call graph as a module": lambda: chain(10_000),
    "tensor": lambda: (
        function(
            "return %b : tensor<8xf32>",
            f"%b: tensor<8xf32>, %a: tensor<{2**62}x{2**62}xf32>"
            ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}',
        )
        + MESH
    ),
    "rank": lambda: function(
        f"%0 = stablehlo.abs %b : tensor<{'2x' * 2000}f32>\n  return %a : tensor<8xf32>",
        f"%a: tensor<8xf32>, %b: tensor<{'2x' * 2000}f32>",
    ),
    "axes": lambda: (
        "sdy.mesh @m = <["
        + ", ".join(f'"a{i}"=1' for i in range(20_000))
        + "]>\n"
        + function("return %a : tensor<8xf32>")
    ),
    "device ids": lambda: (
        f'sdy.mesh @m = <["a"={2**40}], device_ids=[0, 1]>\n'
        + function("return %a : tensor<8xf32>")
    ),
    "results": lambda: '%0:4294967295 = "a.b"() : () -> i32',
    "splat": lambda: f"%0 = stablehlo.constant dense<1> : tensor<{2**40}xi32>",
    "blob": lambda: f'%0 = stablehlo.constant dense<"0x{"00" * 1_000_000}"> : tensor<1000000xi8>',
    "string": lambda: f'"a.b"() {{x = "{"x" * 10_000_000}"}} : () -> ()',
    "operands": lambda: function(
        f'"a.b"({", ".join(["%a"] * 100_000)}) : ({", ".join(["tensor<8xf32>"] * 100_000)}) -> ()\n'
        "  return %a : tensor<8xf32>"
    ),
    "mistakes": lambda: (
        "".join(
            function(
                "return %a : tensor<8xf32>",
                '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}, {"r"}]>}',
                name=f"f{i}",
            )
            for i in range(2_000)
        )
        + MESH
    ),
}


def test_enormous_texts_stay_within_4_gib() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(root=str(ROOT))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert [line.rsplit(" ", 1)[0] for line in done.stdout.splitlines()] == list(ENORMOUS)


def test_the_shipped_example_cut_anywhere() -> None:
    text = (ROOT / "examples/gpt_step.mlir").read_text(encoding="utf-8")
    step = len(text) // 12
    for end in range(step, len(text), step):
        assert not bounded(text[:end])


def test_nobody_panics_over_arguments() -> None:
    for text in (
        "builtin.module(" * 100_000,
        "a" * 1_000_000,
        "builtin.module(a{" + "b={" * 50_000,
    ):
        with pytest.raises(ShardcoreError):
            PassManager.parse(text)
    for parse in (
        shardcore.Mesh.parse,
        shardcore.AxisRef.parse,
        shardcore.DimSharding.parse,
        shardcore.TensorSharding.parse,
        shardcore.OpShardingRule.parse,
    ):
        for text in (
            "",
            "\0",
            "<" * 100_000,
            "[" * 100_000,
            '"',
            "é" * 100,
            "<[{" * 1000,
            "{" * 9999,
        ):
            with pytest.raises(ShardcoreError):
                parse(text)
    module = Module.parse(PROGRAM)
    for limit in (-1, -(10**30)):
        with pytest.raises(ShardcoreError):
            module.propagate(max_ops=limit)
    all_priorities = str(module.propagate().module)
    assert str(module.propagate(up_to_priority=2**64, max_ops=10**30).module) == all_priorities
    module.propagate(up_to_priority=-1)
