"""What MLIR refuses is refused, at the same line; what it accepts is accepted."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from shardcore import Module, clear_caches

from tests.deep import IS_DEEP
from tests.shardy.mutations import ask_shardcore
from tests.shardy.reference import RejectedError, canonical, generic
from tests.shardy.verification import functions, literals
from tests.shardy.verification.case import Case
from tests.shardy.verification.compare import compare
from tests.shardy.verification.sound import quantized, sound
from tests.shardy.verification.texts import FAMILIES
from tests.shardy.verification.ways import variants

VERDICT = re.compile(r"([a-z, ]+?) (\d+)(?:, |$)")


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Counter[str]]:
    """How many programs of each op and family have which verdict."""
    # As a user runs it.
    sample = [] if IS_DEEP else ["--sample", "12"]
    command = [sys.executable, "-m", "tests.shardy.verification", *sample]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    found: dict[str, Counter[str]] = {}
    for line in done.stdout.strip().split("\n"):
        name, _, rest = line.rpartition(": ")
        counts = {verdict: int(count) for verdict, count in VERDICT.findall(rest)}
        found[name] = found.get(name, Counter()) + Counter(counts)
    return found


def test_changed_ops(verdicts: dict[str, Counter[str]]) -> None:
    counts = verdicts[""]
    assert "only the reference refuses" not in counts
    assert "only shardcore refuses" not in counts
    # `functions` changes tokens: some of what comes out is no text of an op any more.
    assert counts.get("both refuse, another line", 0) <= (100 if IS_DEEP else 8)
    assert counts["both refuse alike"] >= 9 * counts["both refuse, other words"]
    least = 40 if IS_DEEP else 1
    few = {name: count for name, count in map(refused, verdicts.items()) if count < least}
    assert not few


def refused(counts: tuple[str, Counter[str]]) -> tuple[str, int]:
    """How many programs of an op or family both refuse."""
    name, verdicts = counts
    refusals = [n for verdict, n in verdicts.items() if verdict.startswith("both refuse")]
    return name, sum(refusals)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "func"])
def test_what_is_no_op(family: str, verdicts: dict[str, Counter[str]]) -> None:
    counts = verdicts[family]
    alike = {"both accept", "both refuse alike", "both refuse, other words"}
    assert set(counts) <= {*alike, "the reference dies"}
    assert min(counts["both accept"], counts["both refuse alike"]) >= 5
    assert counts["both refuse alike"] >= 9 * counts["both refuse, other words"]


def test_literals_of_types_with_and_without_a_static_shape() -> None:
    verdicts = Counter(answer.verdict for answer in compare(literals.in_modules(literals.DENSE)))
    assert set(verdicts) == {"both accept", "both refuse alike"}


@pytest.mark.parametrize("case", sound(), ids=lambda case: case.name)
def test_what_is_changed_was_sound(case: Case) -> None:
    generic(case.text())
    assert ask_shardcore(case.text()) == []


@pytest.mark.parametrize("text", functions.sound())
def test_functions_that_are_changed_were_sound(text: str) -> None:
    generic(text)
    assert ask_shardcore(text) == []


@pytest.mark.parametrize("case", sound(), ids=lambda case: case.name)
@pytest.mark.parametrize("as_properties", [False, True])
def test_what_was_found_valid_does_not_vouch_for_more(case: Case, as_properties: bool) -> None:
    """Ops that only look like one that is valid are refused behind it, and in a later program."""
    first = replace(case, as_properties=as_properties).text()
    first = first.replace("@f(", "@first(").replace("@g", "@of_first")
    if ask_shardcore(first):
        return
    changed = variants(case)
    for other in Random(case.name).sample(changed, min(8, len(changed))):
        clear_caches()
        alone = ask_shardcore(other.text())
        together = ask_shardcore(f"{first}\n{other.text()}")
        later = ask_shardcore(other.text())
        assert later == alone, other.text()
        assert len(together) == len(alone), other.text()


TYPE = re.compile(r"tensor<([^<>]*)>")
CHANGED = [
    (r"xf32>$", "xi32>"), (r"f32>$", "bf16>"), (r"<", "<1x"), (r"<\d+x", "<"), (r"<\d+x", "<?x"),
    (r"<\d+x", "<7x"), (r"<(\d+)x(\d+)x", r"<\2x\1x"), (r"\d+x(?=\D+$)", "9x"),
]  # fmt: skip
"""Other elements, one dim more, one less, other sizes."""


@pytest.mark.parametrize("case", sound(), ids=lambda case: case.name)
def test_what_was_checked_before_does_not_matter(case: Case) -> None:
    # An op is compared with the last one of its name, and only checked for how they differ.
    text = canonical(case.text())
    if text.count("func.func") > 1:
        return
    body = text[text.index("func.func") : text.rindex("}")]
    first = body.replace("@f(", "@first(")
    for ty in {match[0] for match in TYPE.finditer(body)}:
        for pattern, other in CHANGED:
            changed = body.replace(ty, re.sub(pattern, other, ty, count=1))
            alone = ask_shardcore(f"module {{\n{changed}}}")
            after = ask_shardcore(f"module {{\n{first}{changed}}}")
            offset = first.count("\n")
            assert after == [(line and line + offset, message) for line, message in alone]


USES_IN_FRONT = [
    ("module {\n  %0 = stablehlo.abs %a : tensor<8xf32>\n"
     "  func.func @f(%a: tensor<8xf32>) { return }\n}"),
    ("module {\n  %0 = stablehlo.abs %a : tensor<8xf32>\n"
     '  "func.func"() <{function_type = (tensor<8xf32>) -> (), sym_name = "f"}> ({\n'
     '  ^bb0(%a: tensor<8xf32>):\n    "func.return"() : () -> ()\n  }) : () -> ()\n}'),
    ("func.func @f(%x: tensor<f32>) {\n  %0 = stablehlo.abs %a : tensor<f32>\n"
     '  %1 = "stablehlo.reduce"(%x, %x) <{dimensions = array<i64>}> ({\n'
     "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    stablehlo.return %a : tensor<f32>\n"
     "  }) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n  return\n}"),
]  # fmt: skip
"""Values that are used outside the region whose argument they are, before it."""


@pytest.mark.parametrize("text", USES_IN_FRONT)
def test_arguments_are_not_seen_in_front_of_their_region(text: str) -> None:
    with pytest.raises(RejectedError) as refused:
        generic(text)
    said = ask_shardcore(text)
    assert [line for line, _ in said] == [line for line, _ in refused.value.errors]


def test_shardings_among_properties_are_no_shardings() -> None:
    text = """sdy.mesh @m = <["a"=2]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%x) <{call_target_name = "t", sdy.sharding = #S}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""".replace("#S", '#sdy.sharding_per_value<[<@m, [{"a"}]>]>')  # noqa: E501
    assert "sdy.sharding" not in generic(text)
    module = Module.parse(text)
    assert module["%0"].sharding is None
    assert module.propagate().module["%0"].sharding is None


def test_each_op_is_changed_in_forty_ways_at_least() -> None:
    counts: Counter[str] = Counter()
    for case in [*sound(), *quantized()]:
        counts[case.name] += len(variants(case))
    assert min(counts.values()) >= 40
    assert len(counts) >= 165


def assert_same_verdict(text: str) -> None:
    """Both accept ``text``, or refuse it at the same line by the same words."""
    errors: list[tuple[int, str]] = []
    try:
        generic(text)
    except RejectedError as refused:
        errors = refused.errors
    assert ask_shardcore(text) == errors


MESHES = ["@mesh", "@f", "@missing", *(
    f"#stablehlo.mesh<axes = [{axes}]>"
    for axes in ['#stablehlo.mesh_axis<name = "x", size = 2>',
                 '#stablehlo.mesh_axis<name = "y", size = 2>, '
                 '#stablehlo.mesh_axis<name = "x", size = 4>'])]  # fmt: skip
AXES = ["", '<name = "x">', '<name = "y">', '<name = "x", sub_axis_info = (1)2>']


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("op", ["all_gather", "collective_broadcast", "all_to_all"])
def test_groups_of_axes_are_those_of_a_mesh_that_is_there(op: str, axes: str, mesh: str) -> None:
    own = {
        "all_gather": "all_gather_dim = 0 : i64,",
        "all_to_all": "split_dimension = 0 : i64, concat_dimension = 0 : i64,"
        " split_count = 1 : i64,",
        "collective_broadcast": "",
    }[op]
    axes = axes and f"#stablehlo.axis_ref{axes}"
    assert_same_verdict(f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = "stablehlo.{op}"(%x) {{{own}
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>
  }} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}""")


@pytest.mark.parametrize("name", ["a.b", "b", "a.", ".b", "a.b.%", "a.b$"])
@pytest.mark.parametrize("decomposition", ["@g", "@missing"])
def test_the_attributes_of_an_op_without_values_are_in_its_syntax(
    decomposition: str, name: str
) -> None:
    assert_same_verdict(f"""func.func @g() {{
  return
}}
func.func @f() {{
  stablehlo.composite "{name}" {{decomposition = {decomposition}}} : () -> ()
  return
}}""")


@pytest.mark.parametrize(
    ("op", "types", "attributes"),
    [
        ("gather", "(tensor<5x6xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>",
         "slice_sizes = array<i64: 1, 6>, "
         "dimension_numbers = #stablehlo.gather<index_vector_dim = 1, start_index_map = [0],"
         " collapsed_slice_dims = [0], offset_dims = [1],>"),
        ("dot_general", "(tensor<5x6xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>",
         "dot_dimension_numbers = #stablehlo.dot<rhs_contracting_dimensions = [0],"
         " lhs_contracting_dimensions = [1],>"),
    ],
)  # fmt: skip
def test_a_comma_may_end_the_fields_of_an_attribute(op: str, types: str, attributes: str) -> None:
    first, second = types.removeprefix("(").partition(")")[0].split(", ")
    text = f"""func.func @f(%a: {first}, %b: {second}) {{
  %0 = "stablehlo.{op}"(%a, %b) {{{attributes}}} : {types}
  return
}}"""
    assert_same_verdict(text)
    assert ask_shardcore(text) == []
    rules = [Module.parse(one).rule("%0") for one in (text, text.replace(",>", ">"))]
    assert rules[0] == rules[1]
