"""Where axes come from: in chosen programs, in random ones, and without the annotation named."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from shardcore import LocationError, Module, Result, ShardcoreError, Why
from shardcore.cli import main

from tests.deep import IS_DEEP
from tests.session.test_session import TEXT
from tests.shardy.generator import programs
from tests.shardy.programs import registry
from tests.why.chains import check, values

NUM_MODULES = 8_000 if IS_DEEP else 150


@pytest.fixture(scope="module")
def result() -> Result:
    return Module.parse(TEXT).propagate()


def steps(why: Why) -> list[tuple[str, str, str, str | None, str, int]]:
    return [
        (step.from_value, step.value, step.op, step.factor, step.direction, step.step)
        for step in why.axes[0].chain
    ]


def test_a_chain_from_an_argument(result: Result) -> None:
    why = result.why("%3")
    assert why.axes[0].source.name == "%arg0"
    assert why.axes[0].source.label == "x"
    assert why.axes[0].source.kind == "argument"
    assert steps(why) == [
        ("%arg0", "%0", "stablehlo.dot_general", "i", "forward", 2),
        ("%0", "%1", "stablehlo.tanh", "i", "forward", 2),
        ("%1", "%2", "sdy.sharding_constraint", "i", "forward", 2),
        ("%2", "%3", "stablehlo.dot_general", "i", "forward", 2),
    ]


def test_a_chain_from_a_constraint(result: Result) -> None:
    why = result.why("params['b']['w']")
    assert (why.value, why.label) == ("%arg2", "params['b']['w']")
    assert (why.axes[0].source.name, why.axes[0].source.kind) == ("%2", "constraint")
    assert steps(why) == [("%2", "%arg2", "stablehlo.dot_general", "k", "backward", 3)]


def test_a_result(result: Result) -> None:
    why = result.why("result['y']")
    assert why.value == "result 0"
    assert why.axes[0].chain[-1].op == "func.return"
    assert why.axes[0].chain[-1].value == "result 0"


def test_one_axis_and_one_dim(result: Result) -> None:
    assert [axis.dim for axis in result.why("%0").axes] == [0, 1]
    assert [str(axis.axis) for axis in result.why("%0", axis="model").axes] == ['"model"']
    assert [str(axis.axis) for axis in result.why("%0", dim=0).axes] == ['"data"']
    assert result.why(result["%0"]) == result.why("%0")
    assert not result.why("params['b']['b']").axes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("%77",), "no value %77"),
        (("params['x']",), "no value params['x']"),
        (("params['b']['v']",), "did you mean \"params['b']['w']\""),
        (("w",), "did you mean \"params['a']['w']\", \"params['b']['w']\"?"),
        (("%0", "nodel"), 'did you mean "model"?'),
        (("%0", "data", 1), "%0 has no axis data on dim 1"),
        (("%0", None, 7), "%0 is a tensor of 2 dims; it has no dim 7"),
    ],
)
def test_mistakes(result: Result, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(LocationError, match="unknown-location") as caught:
        result.why(*arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_value_of_another_program_is_refused(result: Result) -> None:
    with pytest.raises(LocationError, match="another program"):
        result.why(Module.parse(TEXT)["%0"])
    with pytest.raises(TypeError):
        result.why(3)  # type: ignore[arg-type]


def test_a_later_user_priority() -> None:
    text = TEXT.replace('[{"data"}, {}]', '[{"data"}p1, {}]')
    why = Module.parse(text).propagate().why("%0", axis="data")
    assert why.axes[0].source.name == "%arg0"
    assert [step.priority for step in why.axes[0].chain] == [1]


COPIED = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @f(%b) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.slice %a [0:4, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {?}]> : tensor<4x8xf32>
  %2 = stablehlo.pad %1, %c, low = [0, 0], high = [4, 0], interior = [0, 0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
""".replace("  %2 =", "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n  %2 =")


def test_values_of_the_copies_of_a_function() -> None:
    """Each copy is asked about, and named, as the completed program calls it."""
    result = Module.parse(COPIED).propagate()
    functions = set()
    for value in values(result):
        functions.add(value.function)
        name = value.name if value.function == "main" else f"@{value.function} {value.name}"
        assert value.qualified_name == name
        for asked in (value, name, f"@{value.function} {value.name}"):
            why = result.why(asked)
            assert not check(value, why)
            for axis in why.axes:
                assert axis.chain == () or axis.chain[-1].value == name
        for dim in range(2):
            for axis_name in ("x", "y"):
                if not any(
                    axis.axis.name == axis_name and axis.dim == dim
                    for axis in result.why(value).axes
                ):
                    absence = result.why_not(value, dim, axis_name)
                    instead = absence.instead
                    if absence.code == "taken" and absence.at[0] == name:
                        assert instead is not None
                        assert instead[0] == name
                        assert instead[1] in [axis.dim for axis in result.why(name).axes]
    assert functions == {"main", "f", "f_0"}
    [why] = result.why("@f_0 %0", axis="y").axes
    assert why.source.name == "@f %1"
    assert [step.from_value for step in why.chain] == ["@f %1", "@f_0 %1"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["why", str(path), "params['b']['w']"]) == 0
    tree = capsys.readouterr().out
    assert '└─ "model" on dim 0\n   ← dot_general (factor k, backward' in tree
    assert main(["why", str(path), "%0", "--dim", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["axes"][0]["source"]["name"] == "%2"
    assert set(record["axes"][0]["chain"][0]) == {
        *("from", "value", "op", "line", "factor", "direction", "priority", "step")
    }
    assert main(["why", str(path), "%9"]) == 1
    capsys.readouterr()


def test_the_command_line_says_why_an_axis_is_not_there(
    result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    wanted = [str(result.why_not("params['b']['w']", dim, "data")) for dim in (0, 1)]
    assert main(["why", str(path), "params['b']['w']", "--dim", "1", "--axis", "data"]) == 0
    assert capsys.readouterr().out == wanted[1] + "\n"
    assert main(["why", str(path), "params['b']['w']", "--axis", "data"]) == 0
    assert capsys.readouterr().out == "\n".join(wanted) + "\n"
    assert main(["why", str(path), "params['b']['w']", "--axis", "data", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["why_not"]
    assert [each["dim"] for each in found] == [0, 1]
    # Where a dim has it, the answer is why.
    assert main(["why", str(path), "params['b']['w']", "--axis", "model"]) == 0
    assert '"model" on dim 0' in capsys.readouterr().out
    assert main(["why", str(path), "params['b']['w']", "--axis", "dta"]) == 1
    assert 'did you mean "data"?' in capsys.readouterr().err


def test_a_value_without_axes_says_how_to_ask_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        'sdy.mesh @mesh = <["data"=2]>\n'
        "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : tensor<8xf32>\n}"
    )
    assert main(["why", str(path), "%a"]) == 0
    assert capsys.readouterr().out.endswith("\n   --axis data says why it is not there\n")
    assert main(["why", str(path), "%a", "--axis", "data"]) == 0
    assert "(never-arrived)" in capsys.readouterr().out


def test_the_steps_of_one_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["steps", str(path), "--value", "params['b']['w']"]) == 0
    assert "%arg2  " in capsys.readouterr().out
    assert main(["steps", str(path), "--value", "%arg0"]) == 0
    assert capsys.readouterr().out == "no visit changes %arg0\n"
    assert main(["steps", str(path), "--value", "%999"]) == 1
    assert "no value %999" in capsys.readouterr().err


def test_places_are_written_without_folders() -> None:
    result = Module.parse("""sdy.mesh @mesh = <["data"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>})
        -> tensor<8xf32> {
      %0 = stablehlo.tanh %a : tensor<8xf32> loc("/home/me/model.py":12:8)
      return %0 : tensor<8xf32>
    }""").propagate()
    why = result.why("%0")
    assert [step.line for step in why.axes[0].chain] == ["/home/me/model.py:12:8"]
    assert "← tanh model.py:12:8 (" in str(why)
    assert "stablehlo.tanh  model.py:12:8\n" in str(result.steps())


def test_every_axis_of_random_modules_has_a_source() -> None:
    # A reshard for a call, members of two groups that one op holds, the result of a function on
    # another mesh, and a dead constraint with unreduced axes.
    rare = (1001817, 1006169, 1006193, 66)
    for seed in (*range(NUM_MODULES), *rare):
        try:
            result = Module.parse(programs.make(seed)).propagate()
        except ShardcoreError:
            continue
        for value in values(result):
            assert not check(value, result.why(value)), (seed, value)


def test_manual_axes_of_a_later_user_priority_have_a_source() -> None:
    result = Module.parse("""sdy.mesh @mesh = <["x"=2, "y"=5]>
    func.func @main(%a: tensor<8x16xf32>) -> tensor<80x16xf32> {
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {?}]>]
          out_shardings=[<@mesh, [{"x", "y", ?}p3, {?}]>] manual_axes={"x", "y"}
          (%b: tensor<8x16xf32>) {
        sdy.return %b : tensor<8x16xf32>
      } : (tensor<8x16xf32>) -> tensor<80x16xf32>
      %1 = stablehlo.negate %0 : tensor<80x16xf32>
      return %1 : tensor<80x16xf32>
    }""").propagate()
    for name in ("%0", "%1"):
        axes = result.why(name).axes
        assert [axis.source.name for axis in axes] == ["%0", "%0"]
        assert {axis.source.kind for axis in axes} == {"manual"}


@pytest.mark.parametrize("name", registry.names() if IS_DEEP else sorted(registry.names())[::9])
def test_every_axis_of_real_programs_has_a_source(name: str) -> None:
    try:
        result = Module.parse(registry.text(name)).propagate()
    except ShardcoreError:
        return
    for value in values(result):
        assert not check(value, result.why(value))


def test_without_the_annotation_named_the_axis_goes_or_comes_from_another_one() -> None:
    samples = 0
    for seed in range(NUM_MODULES):
        rng = Random(seed)
        session = Module.parse(programs.make(seed)).session()
        try:
            found = [(value, session.result.why(value)) for value in values(session.result)]
        except ShardcoreError:
            continue
        axes = [(value, axis) for value, why in found for axis in why.axes]
        for value, axis in rng.sample(axes, min(len(axes), 6)):
            if axis.source.kind not in ("argument", "result", "constraint"):
                continue
            if axis.source.name.startswith("@"):
                continue
            session.unset(axis.source.name)
            try:
                after = session.result.why(f"@{value.function} {value.name}")
            except ShardcoreError:
                after = None
            session.undo()
            samples += 1
            same = [
                other
                for other in (after.axes if after else ())
                if other.axis.overlaps(axis.axis) and other.source.name == axis.source.name
            ]
            assert not same, f"{seed}: {value}\n{axis}\n{after}"
    assert samples > NUM_MODULES


def test_a_chain_goes_through_every_call_of_a_deep_one() -> None:
    tensor, depth = "tensor<8x8xf32>", 300
    functions = [
        f"func.func private @f{index}(%a: {tensor}) -> {tensor} {{\n"
        f"  %0 = call @f{index + 1}(%a) : ({tensor}) -> {tensor}\n  return %0 : {tensor}\n}}\n"
        for index in range(depth)
    ]
    module = Module.parse(
        'sdy.mesh @mesh = <["x"=2]>\n'
        f'func.func @main(%a: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) '
        f"-> {tensor} {{\n  %0 = call @f0(%a) : ({tensor}) -> {tensor}\n"
        f"  return %0 : {tensor}\n}}\n"
        + "".join(functions)
        + f"func.func private @f{depth}(%a: {tensor}) -> {tensor} {{\n"
        f"  %0 = stablehlo.negate %a : {tensor}\n  return %0 : {tensor}\n}}\n"
    )
    result = module.propagate()
    [why] = result.why(f"@f{depth} %0").axes
    assert why.source.name == "%a"
    froms = [step.from_value for step in why.chain]
    assert froms == ["%a", *(f"@f{index} %a" for index in range(depth + 1))]
    [why] = result.why("%0").axes
    results = [step.value for step in why.chain[-depth - 2 :]]
    assert results == [*(f"@f{index} %0" for index in range(depth, -1, -1)), "%0"]


def test_the_table_calls_values_of_other_functions_as_why_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(
        'sdy.mesh @mesh = <["x"=2]>\n'
        'func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, '
        "%b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
        "  %0 = stablehlo.negate %b : tensor<4xf32>\n"
        "  %1 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %0, %1 : tensor<4xf32>, tensor<4xf32>\n}\n"
        "func.func private @g(%c: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.negate %c : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
    )
    assert main(["propagate", str(path)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("@g %0")]
    assert len(rows) == 1
    assert '[{"x"}]' in rows[0]
    assert main(["why", str(path), "@g %0"]) == 0
    assert '"x" on dim 0' in capsys.readouterr().out


def test_explanations_that_were_forgotten_are_made_again() -> None:
    found = Module.parse(TEXT).propagate()
    first = found.why("%3")
    explainer = found._explainer
    found._forget_explainer()
    assert found.why("%3") == first
    assert found._explainer is not explainer
