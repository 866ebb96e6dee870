"""Modules that JAX lowers without Shardy propagate like the same ones lowered with it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from shardcore import Mesh, Module, ShardcoreError, import_hlo_shardings
from shardcore.cli import main

pytest.importorskip("jax")

from tests.shardy import reference
from tests.shardy.hlo_module_cases import CASES, MESH, lowered

GROUPS_BY_AXES = re.compile(
    r"#stablehlo.replica_group_mesh_axes<mesh = @\w+, axes = "
    r"\[((?:#stablehlo.axis_ref<name = \"\w+\">(?:, )?)+)\]>"
)
MESH_OF_GROUPS = re.compile(r"^ *sdy.mesh @mesh_0 = .*\n", re.MULTILINE)
OTHER_NOTATION = re.compile(r"(?<=\]>) \{stablehlo.mesh = .*\}$", re.MULTILINE)


def shardings(module):
    return [(value.op, str(value.sharding)) for value in module.values()]


def groups_as_numbers(text):
    """``text`` with replica groups as JAX writes them without Shardy, and up to 0.10 also with it.

    Since 0.12 they are axes of a mesh where there is one.
    """

    def numbers(match):
        axes = [MESH.axis_names.index(name) for name in re.findall(r'"(\w+)"', match[1])]
        others = [axis for axis in range(len(MESH.axis_sizes)) if axis not in axes]
        devices = np.arange(MESH.size).reshape(MESH.axis_sizes).transpose(others + axes)
        groups = devices.reshape(-1, np.prod([MESH.axis_sizes[axis] for axis in axes]))
        count, size = groups.shape
        return f"dense<{groups.tolist()}> : tensor<{count}x{size}xi64>"

    text = OTHER_NOTATION.sub("", MESH_OF_GROUPS.sub("", text))
    return GROUPS_BY_AXES.sub(numbers, text)


@pytest.mark.parametrize("name", CASES)
def test_completes_as_the_reference_with_shardy(name):
    if name == "nested" and reference.IS_NEW:
        pytest.skip("with Shardy, JAX 0.12 constrains the result of the inner body, without it not")
    judge = reference.run(groups_as_numbers(lowered(name, shardy=True)), reference.PROPAGATION)
    for generic, locations in [(False, False), (True, False), (False, True), (True, True)]:
        old = lowered(name, shardy=False, generic=generic, locations=locations)
        assert "mhlo.sharding" in old
        assert "sdy" not in old
        # Axes are found, and here they have the names that they had.
        found = Module.parse(old).propagate().module
        assert shardings(found) == shardings(Module.parse(judge)), (generic, locations)
        given = import_hlo_shardings(Module.parse(old), Mesh({"x": 2, "y": 4}))
        assert reference.canonical(str(given.propagate().module)) == reference.canonical(judge)


SEED = """\
module @jit_perceptron attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%arg0: tensor<48x24xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, %arg1: tensor<24x48xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %arg2: tensor<48xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<48x48xf32> {jax.result_info = "", mhlo.sharding = "{replicated}"}) {
%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<48x24xf32>, tensor<24x48xf32>) -> tensor<48x48xf32>
%1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<48xf32>) -> tensor<48x48xf32>
%2 = stablehlo.add %0, %1 : tensor<48x48xf32>
return %2 : tensor<48x48xf32>
}
}
"""  # noqa: E501


def test_the_perceptron_as_it_is_printed_in_the_introduction_to_gspmd(tmp_path, capsys):
    result = Module.parse(SEED).propagate()
    # GSPMD left the last two replicated.
    for name in "%0", "%1", "%2":
        assert str(result[name].sharding) == '<@mesh, [{"x"}, {"y"}]>'
        assert str(result[name].sharding.to_hlo()) == "{devices=[2,4]<=[8]}"
    call = '%3 = stablehlo.custom_call @Sharding(%0) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<48x48xf32>) -> tensor<48x48xf32>'  # noqa: E501
    constrained = SEED.replace("%1 = ", f"{call}\n%1 = ").replace("add %0", "add %3")
    result = Module.parse(constrained).propagate()
    judged = Module.parse(lowered("constraint", shardy=False)).propagate()
    assert shardings(result.module) == shardings(judged.module)
    assert str(result["%2"].sharding) == '<@mesh, [{"x"}, {}]>'
    path = tmp_path / "seed.mlir"
    path.write_text(SEED)
    assert main(["propagate", str(path)]) == 0
    assert '[{"x"}, {"y"}]' in capsys.readouterr().out
    assert main(["opt", str(path), "--import-hlo-shardings", "--sdy-propagation-pipeline"]) == 0
    assert str(Module.parse(SEED).propagate().module) == capsys.readouterr().out
    # Without the flag it does what sdy_opt does: nothing.
    assert main(["opt", str(path), "--sdy-propagation-pipeline"]) == 0
    assert "sdy.sharding" not in capsys.readouterr().out


def body(*lines, arguments="%a: tensor<8x8xf32>", result="tensor<8x8xf32>"):
    text = "\n".join(f"  {line}" for line in lines)
    return f"func.func @main({arguments}) -> {result} {{\n{text}\n}}\n"


def call(name, target, operand, sharding, types):
    attributes = f'{{mhlo.sharding = "{sharding}"}}'
    return f"%{name} = stablehlo.custom_call @{target}(%{operand}) {attributes} : {types}"


TILES = "{devices=[2,4]<=[8]}"
SAME = "(tensor<8x8xf32>) -> tensor<8x8xf32>"
CUT = "(tensor<8x8xf32>) -> tensor<4x2xf32>"
WHOLE = "(tensor<4x2xf32>) -> tensor<8x8xf32>"
START = (
    call(0, "Sharding", "a", TILES, SAME),
    call(1, "SPMDFullToShardShape", 0, "{manual}", CUT),
)
END = (
    call(8, "Sharding", 7, "{manual}", "(tensor<4x2xf32>) -> tensor<4x2xf32>"),
    call(9, "SPMDShardToFullShape", 8, TILES, WHOLE),
    "return %9 : tensor<8x8xf32>",
)


def test_bodies_need_not_be_calls():
    text = body(
        "%c = stablehlo.constant dense<1.0> : tensor<4x2xf32>",
        "%w = stablehlo.constant dense<2.0> : tensor<8x8xf32>",
        *START,
        "%2 = stablehlo.add %1, %c : tensor<4x2xf32>",
        "%7 = stablehlo.tanh %2 : tensor<4x2xf32>",
        *END[:-1],
        "%10 = stablehlo.add %9, %w : tensor<8x8xf32>",
        "return %10 : tensor<8x8xf32>",
    )
    imported = import_hlo_shardings(Module.parse(text))
    ops = [value.op for value in imported.values()]
    assert "stablehlo.custom_call" not in ops
    assert "sdy.sharding_constraint" not in ops
    assert 'manual_axes={"x", "y"}' in str(imported)
    assert reference.canonical(str(imported))
    result = imported.propagate()
    assert str(result["%10"].sharding) == '<@mesh, [{"x"}, {"y"}]>'


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [*START, "%7 = stablehlo.add %1, %b : tensor<4x2xf32>", *END],
            "a whole value is used among shards",
        ),
        (
            [*START, "%7 = stablehlo.tanh %1 : tensor<4x2xf32>", "return %7 : tensor<4x2xf32>"],
            "a shard leaves its manual body",
        ),
        (
            [*START, "%7 = stablehlo.tanh %1 : tensor<4x2xf32>", "return %a : tensor<8x8xf32>"],
            "never become whole",
        ),
        (
            [call(1, "SPMDFullToShardShape", "a", "{manual}", CUT), *END[1:]],
            "no result of @Sharding",
        ),
        (
            [START[0], call(1, "SPMDFullToShardShape", 0, TILES, CUT)],
            "manual devices are not whole axes",
        ),
    ],
)
def test_bodies_that_make_no_sense(lines, words):
    is_cut = lines[-1].endswith("4x2xf32>")
    text = body(
        *(line.replace("%8)", "%1)") if "no result" in words else line for line in lines),
        *([] if "return" in lines[-1] else ["return %a : tensor<8x8xf32>"]),
        arguments="%a: tensor<8x8xf32>, %b: tensor<4x2xf32>",
        result="tensor<4x2xf32>" if is_cut and "return" in lines[-1] else "tensor<8x8xf32>",
    )
    with pytest.raises(ShardcoreError, match=words) as caught:
        Module.parse(text).propagate()
    assert "^" in str(caught.value)


PROGRAM = """module {
  func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "FIRST"}) -> tensor<8x8xf32> {
    %0 = stablehlo.add %a, %a {mhlo.sharding = "SECOND"} : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("first", "second", "words", "shown"),
    [
        ("{devices=[2,2]<=[4]}", "{devices=[2,2]<=[5]}", "4 tiles and 5 devices", "[2,2]<=[5]"),
        ("{devices=[2,2]<=[4]}", "{devices=[2,4]<=[8]}", "tiles", "{devices=[2,4]<=[8]}"),
        ("{devices=[2,2]<=[4]}", "{devices=[4]<=[4]}", "dims", "{devices=[4]<=[4]}"),
        ("{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}", "no mesh", "{devices=[3,2]<=[6]}"),
        ("{devices=[2,2]<=[4]}", "{{replicated}, {replicated}}", "2 shardings of an op", "{{"),
        ("{devices=[2,2]<=[4]}", "{replicatd}", "no part of a sharding", "replicatd"),
        ("{\\22}", "{replicated}", "no part of a sharding", "{\\22}"),
    ],
)
def test_errors_point_into_the_program(first, second, words, shown):
    text = "// é: columns count characters\n" + PROGRAM.replace("FIRST", first).replace(
        "SECOND", second
    )
    with pytest.raises(ShardcoreError, match=words) as caught:
        Module.parse(text, filename="model.mlir").propagate()
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.filename == "model.mlir"
    place = diagnostic.place
    assert text.split("\n")[place.line - 1][place.column - 1 :].startswith(shown[:4])
    assert "^" in str(caught.value)


def test_annotations_that_are_no_strings_are_refused():
    text = PROGRAM.replace('"FIRST"', "3 : i64").replace("SECOND", "{replicated}")
    with pytest.raises(ShardcoreError, match="not a string"):
        Module.parse(text).propagate()


def test_ops_keep_their_shardings():
    text = PROGRAM.replace("FIRST", "{replicated}").replace("SECOND", "{devices=[2,2]<=[4]}")
    imported = import_hlo_shardings(Module.parse(text))
    assert str(imported["%0"].sharding) == '<@mesh, [{"x"}, {"y"}]>'
    assert str(imported["%a"].sharding) == "<@mesh, [{}, {}]>"
    plain = Module.parse(text.replace("mhlo.sharding", "mhlo.other"))
    assert import_hlo_shardings(plain) is plain


def test_a_tensor_on_one_device_is_over_a_mesh_of_its_own():
    text = PROGRAM.replace("FIRST", "{devices=[2,2]<=[4]}").replace("SECOND", "{maximal device=3}")
    result = Module.parse(text).propagate()
    assert str(result["%0"].sharding) == "<@maximal_mesh_3, []>"


def test_shard_groups_tie_arguments_and_results_too():
    text = PROGRAM.replace("FIRST", "{devices=[2,2]<=[4] shard_as 5}")
    text = text.replace("stablehlo.add %a, %a {mhlo", "stablehlo.constant {mhlo")
    text = text.replace('SECOND"}', '{unknown shard_like 5}"} dense<1.0>')
    values = Module.parse(text).propagate().values()
    (made,) = [value for value in values if "constant" in (value.op or "")]
    assert str(made.sharding) == '<@mesh, [{"x"}, {"y"}]>'


def test_a_taken_name_is_left_to_whom_it_belongs():
    text = PROGRAM.replace("FIRST", "{devices=[2,2]<=[4]}").replace("SECOND", "{replicated}")
    result = Module.parse(text.replace("@main", "@mesh")).propagate()
    assert str(result["%a"].sharding) == '<@mesh_0, [{"x"}, {"y"}]>'
