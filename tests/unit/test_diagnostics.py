"""What ``result.diagnostics()`` finds: each code by programs with and without it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import shardcore
from shardcore import CalculusError, ExpectationError, Module, Result
from shardcore.cli import main

from tests.deep import sampled
from tests.shardy.programs import registry
from tests.unit.texts import sharded

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n'
BIG = "tensor<8192x8192xf32>"


def result(body: str, arguments: str, returns: str = BIG) -> Result:
    text = f"{MESH}func.func @main({arguments}) -> {returns} {{\n{body}\n}}"
    return Module.parse(text).propagate()


BOTH = sharded("data", "model")


def codes(of: Result, *given: object) -> list[str]:
    return [each.code for each in of.diagnostics(*given)]  # type: ignore[arg-type]


SHARDED = result(f"return %x : {BIG}", f"%x: {BIG} {BOTH}")


def test_nothing_to_say() -> None:
    assert SHARDED.diagnostics() == ()
    assert Module.parse("func.func @main() { return }").propagate().diagnostics() == ()


UNUSED_AXIS = """
    shared-functions-batch while-loop-carry batched-control-rows batched-control-columns
    gpt-batch-only gpt-one-weight gpt-constraints-only gpt-conflict indexing-sort-split-dim
    indexing-argsort-descending indexing-lexicographic-sort indexing-quantiles
    indexing-search-sorted indexing-set-operations indexing-gumbel-top-k indexing-top-p
    linalg-cholesky linalg-svd linalg-eigh linalg-least-squares linalg-matrix-power
    linalg-gaussian-process linalg-gradient-of-qr linalg-gradient-of-eigh
    linalg-conjugate-gradient linalg-cholesky-on-cpu linalg-svd-on-cpu linalg-eigh-on-cpu
    lstm-weights-only kernels
"""
SAID = {name: ["unused-axis"] for name in UNUSED_AXIS.split()} | {
    "calls-that-differ": ["contradiction"],
    "open-constraints-all": ["no-effect"],
    "linalg-inverse": ["no-rule", "unused-axis"],
    "linalg-log-determinant": ["no-rule", "no-effect", "no-effect", "unused-axis"],
    "linalg-matrix-exponential": ["no-rule"],
    "foreign-calls": ["no-rule"],
    "gpt-free": ["output-moved"],
    "encoder-decoder-fsdp": ["output-moved"],
}
"""The codes of diagnostics that programs have, each of which was read and is right; the others of
more than two hundred have none."""


@pytest.mark.parametrize("name", sampled(registry.names(), 4))
def test_no_false_alarm(name: str) -> None:
    assert codes(
        Module.parse(registry.text(name, locations=True)).propagate(), "tpu-v5p"
    ) == SAID.get(name, [])


def test_the_programs_that_have_diagnostics_exist() -> None:
    assert set(registry.names()) >= SAID.keys()
    assert len(registry.names()) > 200


def test_the_example_is_well_annotated() -> None:
    root = Path(__file__).parents[2]
    example = Module.from_file(root / "examples" / "gpt_step.mlir").propagate()
    # XLA warns of the lookup and of its gradient while it tries ways that it then does not take.
    assert example.diagnostics("tpu-v5p") == ()


def test_a_large_replicated_argument() -> None:
    found = result(f"return %x : {BIG}", f"%x: {BIG} {BOTH}, %w: {BIG} loc(\"params['w']\")")
    [each] = found.diagnostics()
    assert (each.code, each.value, each.severity) == ("large-replicated", "params['w']", "warning")
    # As %x is, and better than over one axis.
    dims = '[{"data"}, {"model"}]'
    assert each.hint == f"annotate params['w'] with {dims}: the peak gets 224.0 MiB lower"
    small = result("return %x : tensor<8x8xf32>", "%x: tensor<8x8xf32>", "tensor<8x8xf32>")
    assert codes(small) == []


def test_replication_is_reported_where_it_begins() -> None:
    body = f"""
      %0 = "my.op"(%x) : ({BIG}) -> {BIG}
      %1 = stablehlo.tanh %0 : {BIG}
      %2 = stablehlo.tanh %1 : {BIG}
      return %2 : {BIG}"""
    sharding = BOTH
    found = result(body, f"%x: {BIG} {sharding}").diagnostics()
    assert [(each.code, each.value) for each in found] == [("no-rule", "%0")]
    assert '@shardcore.rule("my.op")' in str(found[0].hint)
    shardcore.rule("my.op", "i j -> i j")
    try:
        assert codes(result(body, f"%x: {BIG} {sharding}")) == []
    finally:
        shardcore.rules.unregister("my.op")


@pytest.mark.parametrize(
    ("operands", "results", "rule"),
    [
        (["512x8"], ["512x8"], "i j -> i j"),
        (["512x8", "512x8"], ["512x8"], "i j, i j -> i j"),
        (["512x8", ""], ["512x8", ""], "(i, j), () -> (i, j), ()"),
        (["512", ""], ["512"], "i,  -> i"),
        (["512x8x8"], ["512x8x8", "512x8"], "i _ _ -> i _ _, i _"),
        (["512x8", "8x512"], ["8x512"], None),
    ],
)
def test_the_rule_that_is_suggested_can_be_typed(
    operands: list[str], results: list[str], rule: str | None
) -> None:
    types = [
        [f"tensor<{shape}{'x' * bool(shape)}f32>" for shape in each] for each in (operands, results)
    ]
    arguments = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(types[0]))
    dims = ", ".join(['{"model"}', *["{}"] * operands[0].count("x")])
    arguments = arguments.replace(
        f"%a0: {types[0][0]}",
        f"%a0: {types[0][0]} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}",
        1,
    )
    names = ", ".join(f"%a{index}" for index in range(len(operands)))
    signature = " -> ".join(f"({', '.join(side)})" for side in types)
    body = f'%0:{len(results)} = "my.op"({names}) : {signature}\nreturn %0#0 : {types[1][0]}'
    [found] = result(body, arguments, types[1][0]).diagnostics(ignore=["unused-axis"])
    assert found.code == "no-rule"
    typed = re.search(r'shardcore\.rule\("my\.op", "([^"]*)"\)', str(found.hint))
    assert (typed and typed[1]) == rule
    if rule is None:
        return
    shardcore.rule("my.op", rule)
    try:
        assert codes(result(body, arguments, types[1][0])) == ["unused-axis"]
    finally:
        shardcore.rules.unregister("my.op")


def test_a_custom_call_of_an_unknown_target() -> None:
    body = f"%0 = stablehlo.custom_call @kernel(%x) : ({BIG}) -> {BIG}\nreturn %0 : {BIG}"
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()
    assert [each.code for each in found] == ["no-rule"]
    assert "at kernel, which" in found[0].message


def test_a_large_activation_that_is_resharded() -> None:
    steps = "\n".join(f"%{k + 1} = stablehlo.tanh %{k} : {BIG}" for k in range(4))
    body = f"""
      %0 = stablehlo.sine %x : {BIG}
      {steps}
      %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : ({BIG}, {BIG}) -> {BIG}
      return %5 : {BIG}"""
    first, second = BOTH, BOTH
    found = result(body, f"%x: {BIG} {first}, %w: {BIG} {second}")
    moved = [each for each in found.diagnostics() if each.code == "large-resharded"]
    assert moved
    assert "%x and %w disagree" in moved[0].message
    assert moved[0].value == "%4"
    # Weights that are gathered before they are used are not reported.
    weights = sharded("", "model")
    gathered = result(body, f"%x: {BIG} {sharded('data', '')}, %w: {BIG} {weights}")
    assert "large-resharded" not in codes(gathered)


def test_a_value_that_xla_rematerializes() -> None:
    body = f"""
      %0 = stablehlo.sine %x : {BIG}
      %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{"data"}}]> : {BIG}
      %2 = stablehlo.cosine %1 : {BIG}
      return %2 : {BIG}"""
    found = result(body, f"%x: {BIG} {sharded('model', '')}").diagnostics("tpu-v5p")
    (warning,) = [each for each in found if each.code == "rematerialization"]
    assert warning.value == "%x"
    assert 'XLA will rematerialize %x, which is sharded as [{"model"}, {}]' in warning.message
    assert "every device gathers all 256.0 MiB" in warning.message
    # From one dim to the other over the same axis, XLA has an all-to-all.
    body = body.replace('"data"', '"model"')
    moved = result(body, f"%x: {BIG} {sharded('model', '')}")
    assert "rematerialization" not in codes(moved)


def test_a_rematerialization_in_several_gathers_is_one_of_what_is_constrained() -> None:
    cube = "tensor<512x512x512xf32>"
    body = f"""
      %0 = stablehlo.sine %x : {cube}
      %1 = sdy.sharding_constraint %0 <@mesh, [{{"data"}}, {{}}, {{"model"}}]> : {cube}
      %2 = stablehlo.cosine %1 : {cube}
      %3 = sdy.sharding_constraint %2 <@mesh, [{{}}, {{"model", "data"}}, {{}}]> : {cube}
      return %3 : {cube}"""
    found = result(body, f"%x: {cube} {sharded('data', '', '')}", cube).diagnostics()
    (warning,) = [each for each in found if each.code == "rematerialization"]
    assert warning.value == "%1"
    assert 'rematerialize %1, which is sharded as [{"data"}, {}, {"model"}]' in warning.message
    assert "gathers all 512.0 MiB" in warning.message


def test_a_large_constrained_value_that_is_moved() -> None:
    big = "tensor<16384x16384xf32>"
    body = f"""
      %0 = stablehlo.sine %x : {big}
      %1 = stablehlo.tanh %0 : {big}
      %2 = stablehlo.exponential %1 : {big}
      %3 = stablehlo.negate %2 : {big}
      %4 = sdy.sharding_constraint %3 <@mesh, [{{"data"}}, {{"model"}}]> : {big}
      %5 = stablehlo.cosine %4 : {big}
      %6 = sdy.sharding_constraint %5 <@mesh, [{{"data"}}, {{}}]> : {big}
      return %6 : {big}"""
    found = result(body, f"%x: {big} {sharded('data', '')}", big).diagnostics()
    assert [(each.code, each.value) for each in found] == [("large-resharded", "%4")]


def test_annotations_that_contradict_each_other() -> None:
    body = """
      %0 = sdy.sharding_constraint %x <@mesh, [{"model"}, {}]> : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>"""
    found = result(
        body, f"%x: tensor<8x8xf32> {sharded('data', '')}", "tensor<8x8xf32>"
    ).diagnostics()
    assert [each.code for each in found] == ["contradiction"]
    assert '{"data"}' in found[0].message
    assert '{"model"}' in found[0].message


def test_annotations_without_effect() -> None:
    repeated = """
      %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {}]> : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>"""
    sharding, small = sharded("data", ""), "tensor<8x8xf32>"
    found = result(repeated, f"%x: {small} {sharding}", small)
    assert codes(found) == ["no-effect", "unused-axis"]
    opened = f"%x: {small} {sharding}, %y: {small} {sharded('?', '?')}"
    found = result(f"return %x : {small}", opened, small)
    assert [each.value for each in found.diagnostics(ignore=["unused-axis"])] == ["%y"]
    open_constraint = repeated.replace('{"data"}, {}', "{?}, {?}")
    found = result(open_constraint, f"%x: {small} {sharding}", small)
    (warning,) = found.diagnostics(ignore=["unused-axis"])
    assert (warning.code, warning.value) == ("no-effect", "%0")
    assert "the constraint %0 has open dims and no axes" in warning.message


def test_axes_of_size_one_are_not_missed() -> None:
    text = """sdy.mesh @m = <["z"=1, "x"=4]>
func.func @main(
    %a: tensor<8x96xf32> {sdy.sharding = #sdy.sharding<@m, [{"z", "x", ?}, {"z":(1)1}]>},
    %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "z"}]>}) {
  return
}"""
    [found] = Module.parse(text.replace(', {"z":(1)1}', ", {}")).propagate().diagnostics()
    assert found.code == "non-divisible"
    assert found.value == "%b"


def test_constraints_that_jax_writes_are_not_reported() -> None:
    """In a ``shard_map`` over some axes, and in the body of a reduction."""
    text = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> tensor<4x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>]
      out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    %1 = sdy.sharding_constraint %y <@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %2 = "stablehlo.all_reduce"(%1)
        <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %3 = stablehlo.add %p, %q : tensor<f32>
      %4 = sdy.sharding_constraint %3 <@mesh, []> : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
    assert codes(Module.parse(text).propagate()) == []


IMAGES = "tensor<128x64x64x64xf32>"
GROUPS = f"""%0 = stablehlo.convolution(%x, %w)
  dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = [[1, 1], [1, 1]]}}
  {{batch_group_count = 1 : i64, feature_group_count = 4 : i64}}
  : ({IMAGES}, tensor<3x3x16x64xf32>) -> {IMAGES}
return %0 : {IMAGES}"""


@pytest.mark.parametrize("runs", [1, 8])
def test_ops_that_are_computed_whole(runs: int) -> None:
    size = 4096 if runs == 1 else 2048
    shape = f"tensor<{runs}x{size}x{size}xcomplex<f32>>"
    layer = f"tensor<1x{size}x{size}xcomplex<f32>>"
    text = f"""{MESH}func.func @main(%x: {shape} {sharded("", "model", "")}, %i: tensor<i32>)
    -> {layer} {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, %c, %c, sizes = [1, {size}, {size}]
    : ({shape}, tensor<i32>, tensor<i32>, tensor<i32>) -> {layer}
  %1 = func.call @transformed(%0) : ({layer}) -> {layer}
  return %1 : {layer}
}}
func.func private @transformed(%y: {layer}) -> {layer} {{
  %0 = stablehlo.fft %y, type = FFT, length = [{size}, {size}] : ({layer}) -> {layer}
  return %0 : {layer}
}}"""
    found = Module.parse(text).propagate().diagnostics(ignore="unused-axis")
    whole = [each for each in found if each.code == "computed-whole"]
    if runs == 8:
        # 32 MiB are not large.
        assert whole == []
        return
    [warning] = whole
    assert "every device computes all of this fft: XLA gathers @transformed %y" in warning.message
    assert "128.0 MiB" in warning.message
    assert "the dims that are not transformed" in str(warning.hint)


def test_a_convolution_in_groups_is_computed_whole() -> None:
    sharding = sharded("", "", "", "model")
    module = result(GROUPS, f"%x: {IMAGES} {sharding}, %w: tensor<3x3x16x64xf32>", IMAGES)
    [warning] = module.diagnostics(ignore="unused-axis")
    assert warning.code == "computed-whole"
    assert warning.value == "%x"
    [row, *_] = module.cost("tpu-v5p").collectives
    assert "every device computes all of this convolution" in str(row.why)
    assert row.why.record()["computed_whole"]


def test_random_bits_are_made_whole() -> None:
    bits = "tensor<8192x8192xui32>"
    body = f"""%0, %1 = stablehlo.rng_bit_generator %k, algorithm = DEFAULT
      : (tensor<4xui64>) -> (tensor<4xui64>, {bits})
    return %1 : {bits}"""
    found = result(body, "%k: tensor<4xui64>", f"({bits} {BOTH})").diagnostics()
    [warning] = [each for each in found if each.code == "computed-whole"]
    assert warning.value == "%1"
    assert "these random bits, 256.0 MiB, and keeps 32.0 MiB of them" in warning.message
    whole = result(body, "%k: tensor<4xui64>", bits)
    assert "computed-whole" not in codes(whole)


def test_padding() -> None:
    odd = "tensor<9x1048576xf32>"
    body = (
        f'%0 = sdy.sharding_constraint %x <@mesh, [{{"model"}}, {{}}]> : {odd}\nreturn %0 : {odd}'
    )
    found = [
        each for each in result(body, f"%x: {odd}", odd).diagnostics() if each.code == "padding"
    ]
    assert [each.value for each in found] == ["%0"]
    assert "25%" in found[0].message
    assert "dim 0 of size 9" in found[0].message


def test_what_the_export_removed() -> None:
    odd = "tensor<9x8xf32>"
    found = result(f"return %x : {odd}", f"%x: {odd} {BOTH}", odd)
    assert codes(found) == ["unused-axis", "non-divisible"]
    assert found.diagnostics()[1] == found.warnings[0]


def test_memory() -> None:
    huge = "tensor<65536x131072xf32>"
    found = result(f"return %x : {huge}", f"%x: {huge} {sharded('data', '')}", huge)
    assert "does-not-fit" not in codes(found)
    assert codes(found, "tpu-v5e")[0] == "does-not-fit"
    assert "does-not-fit" not in codes(found, "tpu-v5p")
    with pytest.raises(CalculusError, match="unknown-hardware"):
        found.diagnostics("tpu-v99")


def test_many_of_one_code_are_counted() -> None:
    arguments = ", ".join(f"%w{k}: {BIG}" for k in range(9))
    found = result(f"return %x : {BIG}", f"%x: {BIG} {BOTH}, {arguments}")
    assert codes(found) == ["large-replicated"] * 5
    assert found.diagnostics()[-1].message.endswith("; and 4 more like it")


def test_codes_can_be_left_out() -> None:
    found = result(f"return %x : {BIG}", f"%x: {BIG}")
    assert codes(found) == ["large-replicated"]
    assert found.diagnostics(ignore=["large-replicated"]) == ()
    assert found.diagnostics(ignore="large-replicated") == ()
    with pytest.raises(ValueError, match="no diagnostic is called 'huge', of does-not-fit"):
        found.diagnostics(ignore=["huge"])


def test_places_in_the_source(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text("def f(x):\n    return kernel(x)\n")
    body = f'%0 = "my.op"(%x) : ({BIG}) -> {BIG} loc("{source}":2:11)\nreturn %0 : {BIG}'
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()[0]
    # The columns of Python and of JAX's locations count from 0, those of places from 1; what is
    # shown is the location, as of values.
    assert (found.line, found.column, found.end_column) == (2, 12, 18)
    assert str(found).splitlines()[2:4] == ["  2 |     return kernel(x)", "    |            ^^^^^^"]
    assert found.record()["location"] == f"{source}:2:11"
    assert str(found).splitlines()[1] == f"  --> {source}:2:11"
    source.unlink()
    body = body.replace("model.py", "gone.py")
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()[0]
    assert found.place is None
    assert found.record()["location"] == f"{tmp_path}/gone.py:2:11"


def test_places_are_outside_of_installed_packages(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text("def f(x):\n    return layer(x)\n")
    library = '"/venv/lib/python3.11/site-packages/flax/linear.py":287:8'
    stack = f'callsite({library} at callsite("{source}":2:11 at "{source}":9:0))'
    body = f'%0 = "my.op"(%x) : ({BIG}) -> {BIG} loc({stack})\nreturn %0 : {BIG}'
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()[0]
    assert found.record()["location"] == f"{source}:2:11"
    # Where all lines are in packages, it is the innermost.
    body = body.replace(f"{source}", "/venv/lib/python3.11/site-packages/net.py")
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()[0]
    assert found.record()["location"] == library.replace('"', "")


def test_constraints_of_installed_packages_may_repeat_annotations() -> None:
    sharding = '<@mesh, [{"data"}, {"model"}]>'
    for file, wanted in (
        ("/home/me/model.py", ["no-effect"]),
        ("/venv/lib/python3.11/site-packages/flax/core/meta.py", []),
    ):
        constraint = f'%0 = sdy.sharding_constraint %x {sharding} : {BIG} loc("{file}":3:4)'
        given = f"%x: {BIG} {{sdy.sharding = #sdy.sharding{sharding}}}"
        found = result(f"{constraint}\nreturn %0 : {BIG}", given)
        assert [code for code in codes(found) if code == "no-effect"] == wanted


def test_values_of_other_functions_are_called_as_why_takes_them() -> None:
    text = f"""{MESH}func.func @main(%x: {BIG} {BOTH}) -> {BIG} {{
      %0 = call @f(%x) : ({BIG}) -> {BIG}
      return %0 : {BIG}
    }}
    func.func private @f(%x: {BIG}) -> {BIG} {{
      %0 = "my.op"(%x) : ({BIG}) -> {BIG}
      return %0 : {BIG}
    }}"""
    [found, *_] = [
        each for each in Module.parse(text).propagate().diagnostics() if each.code == "no-rule"
    ]
    assert found.value == "@f %0"
    assert "@f %0 is replicated" in found.message


def test_expectations() -> None:
    found = result(f"return %x : {BIG}", f"%x: {BIG}")
    assert not found.check({"diagnostics": {"forbid": ["all"]}})
    assert "large-replicated: %x" in str(found.check({"diagnostics": {"forbid": ["all"]}}))
    assert found.check({"diagnostics": {"forbid": ["padding"]}})
    allowed = {"forbid": ["all"], "allow": ["large-replicated"]}
    assert found.check({"diagnostics": allowed})
    assert SHARDED.check({"diagnostics": {"forbid": ["all"], "hardware": "tpu-v5e"}})
    for wrong in ({"forbid": ["paddings"]}, {"hardware": "v99"}, {"hardware": 3}, {"forbid": 1}):
        with pytest.raises(ExpectationError):
            found.check({"diagnostics": wrong})


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(f"{MESH}func.func @main(%x: {BIG}) -> {BIG} {{ return %x : {BIG} }}")
    for command in (["propagate"], ["cost", "--hardware", "tpu-v5e"]):
        assert main([*command, str(path)]) == 0
        assert "warning[large-replicated]: %x is replicated" in capsys.readouterr().out
        assert main([*command, str(path), "--ignore", "large-replicated"]) == 0
        assert "warning" not in capsys.readouterr().out
        assert main([*command, str(path), "--json"]) == 0
        [record] = json.loads(capsys.readouterr().out)["diagnostics"]
        assert (record["code"], record["value"]) == ("large-replicated", "%x")
    with pytest.raises(SystemExit):
        main(["propagate", str(path), "--ignore", "nothing"])
    capsys.readouterr()


def test_results_that_are_sharded_otherwise_than_what_they_replace() -> None:
    text = f"""{MESH}func.func @main(
    %a: {BIG} {BOTH} loc("params['up']"), %b: {BIG} {BOTH} loc("params['down']"),
    %x: {BIG} {sharded("data", "")} loc("x"))
    -> ({BIG} {{jax.result_info = "result[0]['up']"}},
      {BIG} {{jax.result_info = "result[0]['down']"}}) {{
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : ({BIG}, {BIG}) -> {BIG}
  %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{"data"}}]> : {BIG}
  %2 = stablehlo.add %b, %b : {BIG}
  return %1, %2 : {BIG}, {BIG}
}}"""
    found = Module.parse(text).propagate().diagnostics()
    [moved] = [each for each in found if each.code == "output-moved"]
    assert moved.value == "result[0]['up']"
    assert """is sharded as [{}, {"data"}], and params['up'] of the same path""" in moved.message
    # By numbers alone nobody knows whether one is the next value of the other.
    bare = text.replace("params['up']", "values[0]").replace("result[0]['up']", "result[0]")
    assert "output-moved" not in codes(Module.parse(bare).propagate())


def test_what_is_made_of_scalars_is_not_in_memory() -> None:
    body = f"""
      %c = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {BIG}
      %1 = "my.op"(%0, %x) : ({BIG}, {BIG}) -> {BIG}
      return %x : {BIG}"""
    found = result(body, f"%x: {BIG} {BOTH}").diagnostics()
    assert [each.code for each in found] == ["no-rule"]
