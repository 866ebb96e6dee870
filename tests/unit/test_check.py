"""``result.check`` and ``shardcore check``: what holds, what does not, and what makes no sense."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from shardcore import ExpectationError, Module, Result
from shardcore.cli import main
from shardcore.expect.mistakes import CODES

PROGRAM = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>} loc("x"),
    %w: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>}
      loc("params['w']"),
    %v: tensor<2048x512xf32> loc("params['v']"),
    %u: tensor<6x8xf32> loc("u"))
    -> (tensor<64x512xf32> {jax.result_info = "result['y']"}, tensor<6x8xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32> loc("m.py":7:3)
  %1 = stablehlo.tanh %0 : tensor<64x2048xf32> loc("m.py":7:9)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32> loc("m.py":8:3)
  %3 = stablehlo.negate %u {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model"}, {}]>]>}
      : tensor<6x8xf32> loc("m.py":9:3)
  %4 = stablehlo.negate %3 : tensor<6x8xf32> loc("last")
  return %2, %4 : tensor<64x512xf32>, tensor<6x8xf32>
}
"""
# The second product sums over "model": an all-reduce of 32x512 floats among 4 devices. The result
# that 4 does not divide is padded to 8x8 and gathered: each sends a quarter to the 3 others.
SENT = 2 * 3 * 32 * 512 * 4 // 4 + 3 * 8 * 8 * 4 // 4


@pytest.fixture(scope="module")
def result() -> Result:
    return Module.parse(PROGRAM).propagate()


HOLDS: list[dict[str, Any]] = [
    {},
    {"shardings": {"x": '[{"data"}, {}]', "params['w']": 'P(None, "model")', "%v": "P('model')"}},
    {"shardings": {"%x": "[{?}, {}]", "%0": '[{"data"}, {"model", ?}]', "@main %1": "[{?}, {?}]"}},
    {"shardings": {"result 0": '[{"data"}, {}]', "result['y']": 'P("data", None)'}},
    {"shardings": {'params["w"]': 'P(None, "model")', "params/v": "P('model')"}},
    {
        "shardings": {
            "m.py:7": '[{"data"}, {"model"}]',
            "m.py:8:3": 'P("data")',
            "last": 'P("model")',
        }
    },
    {
        "collectives": {
            "forbid": ["all_gather on data", "all-reduce on data", "all_to_all on model"]
        }
    },
    {"collectives": {"max_bytes": {"model": SENT, "data": 0}, "max_count": {"model": 2}}},
    {"memory": {"peak": "64 MiB", "arguments": 10_000_000}},
    {"hardware": "h100", "memory": {"peak": "64 MiB"}},
    {"replicated": {"max_bytes": "1 KiB"}},
    {"replicated": {"max_bytes": 0, "allow": ["u", "result 1", "%4"]}},
    {"divisible": {"all": True, "allow": ["m.py:9", "last", "result 1"]}},
]


@pytest.mark.parametrize("expected", HOLDS)
def test_what_holds(result: Result, expected: dict[str, Any]) -> None:
    found = result.check(expected)
    assert found, found
    assert found.ok
    assert found.failures == ()
    found.assert_ok()


FAILS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"shardings": {"x": 'P("model")'}},
        ["shardings.x", '- P("model")', '+ [{"data"}, {}]'],
    ),
    ({"shardings": {"x": "[{}]"}}, ["it has 2 dims, not 1"]),
    ({"shardings": {"x": 'P("data", None, None)'}}, ["it has 2 dims, not 3"]),
    ({"shardings": {"x": 'P("dta")'}}, ['unknown axis name: "dta"']),
    ({"shardings": {"%1": '[{"model", ?}, {?}]'}}, ['+ [{"data"}, {"model"}]']),
    ({"shardings": {"params['x']": "P()"}}, ["nothing is called that", "did you mean"]),
    ({"shardings": {"%99": "P()"}}, ["nothing is called that"]),
    ({"shardings": {"m.py:70": "P()"}}, ["nearest to it that made values: 7, 8, 9"]),
    (
        {"shardings": {"m.py:7": "P()"}},
        ['[{"data"}, {"model"}] of %0 at m.py:7:3', "of %1 at m.py:7:9"],
    ),
    (
        {"collectives": {"forbid": ["all-reduce on model"]}},
        ["collectives.forbid[0]", "no all_reduce on model", "all_reduce on model, 96.0 KiB sent"],
    ),
    ({"collectives": {"forbid": ["all_gather on modle"]}}, ['did you mean "model"?']),
    (
        {"collectives": {"max_bytes": {"model": SENT - 1}}},
        ["collectives.max_bytes.model", "at most 96.2 KiB", "m.py:8:3"],
    ),
    ({"collectives": {"max_bytes": {"modle": 1}}}, ['did you mean "model"?']),
    ({"collectives": {"max_count": {"model": 0}}}, ["- at most 0", "+ 2; the largest:"]),
    ({"memory": {"peak": "1 KiB"}}, ["- at most 1.0 KiB", "the largest live there:"]),
    ({"memory": {"arguments": 5}}, ["memory.arguments", "- at most 5 B"]),
    (
        {"replicated": {"max_bytes": 0}},
        ["no value above 0 B on every device whole", "192 B %u at u", "6x8"],
    ),
    ({"divisible": {"all": True}}, ["dim 0 of %3 at m.py:9:3 [6x8]: 6 over 4 devices"]),
]


@pytest.mark.parametrize(("expected", "shown"), FAILS)
def test_what_does_not_hold(result: Result, expected: dict[str, Any], shown: list[str]) -> None:
    found = result.check(expected)
    assert not found
    assert len(found.failures) == 1
    for part in shown:
        assert part in str(found), str(found)
    with pytest.raises(AssertionError, match="1 of 1 expectation does not hold"):
        found.assert_ok()


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("unknown-expectation", {"sharding": {}}),
    ("unknown-expectation", {"collectives": {"forbit": []}}),
    ("unknown-expectation", {"memory": {"peek": 1}}),
    ("invalid-expectation", {"shardings": 3}),
    ("invalid-expectation", {"shardings": {"x": 3}}),
    ("invalid-expectation", {"shardings": {"x": "data"}}),
    ("invalid-expectation", {"shardings": {"x": "[{"}}),
    ("invalid-expectation", {"shardings": {"x": "[{'data'}]"}}),
    ("invalid-expectation", {"shardings": {"x": "P("}}),
    ("invalid-expectation", {"shardings": {"x": "P(3)"}}),
    ("invalid-expectation", {"shardings": {"x": "P(open('x'))"}}),
    ("invalid-expectation", {"shardings": {"x": "P(reduced={'x'})"}}),
    ("invalid-expectation", {"shardings": {"x": "P(unreduced={'x'}, unreduced_kind=mean)"}}),
    ("invalid-expectation", {"shardings": {"x": "P('data')('model')"}}),
    ("invalid-expectation", {"shardings": {"x": "P(unreduced={1})"}}),
    ("invalid-expectation", {"shardings": {"x": "P(unreduced=1)"}}),
    ("invalid-expectation", {"shardings": {"x": f"P({'-' * 100_000}1)"}}),
    ("invalid-expectation", {"shardings": {"x": "P(" * 500}}),
    ("invalid-expectation", {"memory": {"peak": 10**400}}),
    ("invalid-expectation", {"memory": {"peak": "9" * 400}}),
    ("invalid-expectation", {"memory": {"peak": "99999 PiB"}}),
    ("invalid-expectation", {"collectives": {"max_count": {"model": 10**400}}}),
    ("invalid-expectation", {"memory": 3}),
    ("invalid-expectation", {"memory": {"peak": "1 KoB"}}),
    ("invalid-expectation", {"memory": {"peak": -1}}),
    ("invalid-expectation", {"memory": {"peak": 1.5}}),
    ("invalid-expectation", {"memory": {"arguments": True}}),
    ("invalid-expectation", {"collectives": {"forbid": "all_gather"}}),
    ("invalid-expectation", {"collectives": {"forbid": [3]}}),
    ("invalid-expectation", {"collectives": {"forbid": ["gather"]}}),
    ("invalid-expectation", {"collectives": {"forbid": ["all_gather on "]}}),
    ("invalid-expectation", {"collectives": {"max_bytes": 3}}),
    ("invalid-expectation", {"collectives": {"max_count": {"x": "many"}}}),
    ("invalid-expectation", {"divisible": {"all": "yes"}}),
    ("invalid-expectation", {"replicated": {"allow": [1]}}),
]


@pytest.mark.parametrize(("code", "expected"), MISTAKES)
def test_mistakes_have_a_code_and_a_hint(
    result: Result, code: str, expected: dict[str, Any]
) -> None:
    with pytest.raises(ExpectationError) as caught:
        result.check(expected)
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic.code, bool(diagnostic.hint)) == (code, True)


def test_every_code_is_raised() -> None:
    assert {code for code, _ in MISTAKES} | {"expectation-syntax"} == set(CODES)


FILE = """\
# What the team agreed on.
[shardings]
"x" = '[{"data"}, {}]'   # the batch
"params['w']" = 'P("data")'
'result 0' = "[{}, {?}]"

[collectives]
forbid = [
  "all-gather on data",  # never
  "all_reduce on model",
]
max_bytes = { model = "1 KiB", data = 0 }

[memory]
peak = 12  # bytes
"""


def test_a_file_names_its_lines(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(FILE)
    found = result.check(file)
    lines = [failure.line for failure in found.failures]
    assert lines == [4, 5, 10, 12, 15]
    assert f"{file}: 5 of 8 expectations do not hold" in str(found)


def test_all_mistakes_of_a_file_are_shown_at_once(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text('[memory]\npeek = 3\n[collectives]\nforbid = ["all-gathr",\n 4]\nmax_count = 1')
    with pytest.raises(ExpectationError) as caught:
        result.check(str(file))
    places = [(found.line, found.column, found.hint) for found in caught.value.diagnostics]
    assert places == [
        (2, 1, 'did you mean "peak"?'),
        (4, 11, 'did you mean "all_gather"?'),
        (5, 2, "put it in quotes"),
        (6, 13, "write max_count = { model = 10 }"),
    ]
    assert f"--> {file}:4:11" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a = [1", 1, "Unclosed array"),
        (b"[memory]\n\npeak = = 3\n", 3, "Invalid value"),
        (b"params['w'] = 3", 1, "Expected '='"),
        (b"[memory]\n\xff", None, "not UTF-8"),
        (b"peak = 1" + b"0" * 5000, 1, "it is not TOML"),
        (b"a = " + b"[" * 50_000, 1, "it is not TOML"),
    ],
)
def test_what_is_no_toml(
    result: Result, tmp_path: Path, data: bytes, line: int | None, message: str
) -> None:
    file = tmp_path / "expected.toml"
    file.write_bytes(data)
    with pytest.raises(ExpectationError, match=message) as caught:
        result.check(file)
    assert caught.value.code == "expectation-syntax"
    assert caught.value.line == line
    assert file.read_bytes() == data


def test_an_update_changes_what_does_not_hold_and_nothing_else(
    result: Result, tmp_path: Path
) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(FILE)
    file.chmod(0o640)
    found = result.check(file, update=True)
    assert [failure.path for failure in found.failures] == [("collectives", "forbid", 1)]
    assert found.updated == (
        "shardings.\"params['w']\"",
        'shardings."result 0"',
        "collectives.max_bytes.model",
        "memory.peak",
    )
    peak = result.cost().peak_bytes
    assert file.read_text() == FILE.replace("'P(\"data\")'", "\"P(None, 'model')\"").replace(
        '"[{}, {?}]"', "'[{\"data\"}, {}]'"
    ).replace('"1 KiB"', '"96.2 KiB"').replace("peak = 12", f"peak = {peak}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["expected.toml"]
    before = file.read_bytes()
    assert result.check(file, update=True).updated == ()
    assert file.read_bytes() == before


def test_an_update_keeps_line_ends_and_follows_links(result: Result, tmp_path: Path) -> None:
    file, link = tmp_path / "real.toml", tmp_path / "link.toml"
    file.write_bytes(b"# mine\r\n[shardings]\r\nx = '[{}, {}]'\r\n")
    link.symlink_to(file)
    assert result.check(link, update=True)
    assert link.is_symlink()
    assert file.read_bytes() == b"# mine\r\n[shardings]\r\nx = '[{\"data\"}, {}]'\r\n"


def test_an_update_makes_a_file(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    assert result.check(file, update=True).updated == ("everything",)
    text = file.read_text()
    assert "\"params['w']\" = '[{}, {\"model\"}]'" in text
    assert 'model = "96.2 KiB"' in text
    assert 'data = "0 B"' in text
    assert result.check(file)
    assert result.check(file).num_expectations == 6 + 2 + 1 + 1
    file.write_text("# only a comment")
    assert result.check(file, update=True)
    assert file.read_text() == "# only a comment\n" + text


def test_an_update_that_fails_leaves_the_file(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text("[memory]\npeek = 1")
    with pytest.raises(ExpectationError):
        result.check(file, update=True)
    assert file.read_text() == "[memory]\npeek = 1"
    with pytest.raises(ExpectationError, match="only a file"):
        result.check({}, update=True)
    with pytest.raises(FileNotFoundError):
        result.check(tmp_path / "none.toml")


def test_a_program_without_a_mesh_is_whole_everywhere(tmp_path: Path) -> None:
    result = Module.parse("""
    func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
      return %x : tensor<1024xf32>
    }""").propagate()
    assert result.check({"shardings": {"%x": "P()"}, "replicated": {"max_bytes": 0}})
    assert "no mesh" in str(result.check({"shardings": {"%x": 'P("data")'}}))
    assert result.check(tmp_path / "new.toml", update=True)


def test_a_value_on_one_device_is_neither_whole_everywhere_nor_cut() -> None:
    result = Module.parse("""
    sdy.mesh @one = <[], device_ids=[3]>
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
      %0 = stablehlo.custom_call @f(%x) {
        has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>
      } : (tensor<7xf32>) -> tensor<7xf32>
      return %0 : tensor<7xf32>
    }""").propagate()
    allowed = {"max_bytes": 0, "allow": ["%x"]}
    assert result.check({"divisible": {"all": True}, "replicated": allowed})
    found = result.check({"shardings": {"%0": "P()"}})
    assert "it is on device 3 alone" in str(found)


def test_partial_sums_are_part_of_a_sharding(tmp_path: Path) -> None:
    result = Module.parse("""
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(
        %a: tensor<8xf32>
          {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x":(1)2, "y"}>},
        %b: tensor<8xf32>
          {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) {
      return
    }""").propagate()
    assert result.check(
        {"shardings": {"%a": '[{}], unreduced={"x":(1)2, "y"}', "%b": '[{"x"}], unreduced={"y"}'}}
    )
    assert result.check({"shardings": {"%b": "P('x', unreduced={'y'})"}})
    for wrong in ('[{}], unreduced={"x", "y"}', "P()", "[{?}]"):
        assert not result.check({"shardings": {"%a": wrong}}), wrong
    assert result.check(tmp_path / "new.toml", update=True)


def test_inside_a_manual_computation_values_are_not_replicated() -> None:
    text = """
    sdy.mesh @mesh = <["data"=2, "model"=4]>
    func.func @main(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {{
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"data", "model"}}, {{}}]>]
          out_shardings=[<@mesh, [{{"data", "model"}}, {{}}]>] manual_axes={{{axes}}}
          (%inner: tensor<{size}x512xf32>) {{
        %1 = stablehlo.negate %inner : tensor<{size}x512xf32>
        sdy.return %1 : tensor<{size}x512xf32>
      }} : (tensor<64x512xf32>) -> tensor<64x512xf32>
      return %0 : tensor<64x512xf32>
    }}"""
    for axes, size in (('"data", "model"', 8), ('"data"', 32)):
        result = Module.parse(text.format(axes=axes, size=size)).propagate()
        assert result.check({"replicated": {"max_bytes": 0}}), axes


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, file = tmp_path / "program.mlir", tmp_path / "expected.toml"
    program.write_text(PROGRAM)
    command = ["check", str(program), "--expect", str(file)]
    assert main(command) == 1
    assert "error[io]" in capsys.readouterr().err
    assert main([*command, "--update"]) == 0
    assert "wrote everything" in capsys.readouterr().out
    assert main(command) == 0
    assert "10 expectations hold" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"96.2 KiB"', "5"))
    assert main([*command, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is False
    assert printed["failures"][0]["path"] == ["collectives", "max_bytes", "model"]
    file.write_text("[memory]\npeek = 1")
    assert main(command) == 1
    assert 'did you mean "peak"?' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["check", str(program), "--expect", "-"])


LAYERS = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(
    %0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("p['layers'][0]['w']"),
    %1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("p['layers'][1]['w']"),
    %2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>} loc("p['layers'][0]['b']"),
    %3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("p['layers'][1]['b']"),
    %4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("p['layers'][2]['b']"))
    -> tensor<8x8xf32> {
  return %0 : tensor<8x8xf32>
}"""  # noqa: E501


def test_patterns_stand_for_all_that_match() -> None:
    result = Module.parse(LAYERS).propagate()
    assert result.check({"shardings": {"p['layers'][*]['w']": '[{"x"}, {}]'}})
    assert result.check({"shardings": {"p/**/w": 'P("x")'}})
    found = result.check({"shardings": {"p['layers'][*]['b']": '[{"y"}, {}]'}})
    [failure] = found.failures
    assert failure.actual == (
        "[{}, {}] of p['layers'][1]['b'] (%3)",
        "[{}, {}] of p['layers'][2]['b'] (%4)",
    )
    found = result.check({"shardings": {"p['layer'][*]['w']": '[{"x"}, {}]'}})
    assert "nothing is called that: did you mean" in str(found)


def test_new_files_fold_layers(tmp_path: Path) -> None:
    result = Module.parse(LAYERS).propagate()
    path = tmp_path / "new.toml"
    assert result.check(path, update=True)
    lines = path.read_text().splitlines()
    assert lines[1] == """"p['layers'][*]['w']" = '[{"x"}, {}]'"""
    # A pattern of the two others would match the first one too.
    assert [line.split(" = ")[0] for line in lines[2:5]] == [
        f"\"p['layers'][{number}]['b']\"" for number in range(3)
    ]
    assert result.check(path)
    changed = Module.parse(LAYERS.replace('{"x"}', '{"y"}')).propagate()
    assert not changed.check(path)
    assert changed.check(path, update=True)
    assert """"p['layers'][*]['w']" = '[{"y"}, {}]'""" in path.read_text()


WEIGHTS = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(ARGUMENTS) {
  return
}"""


def weights(shardings: list[str]) -> Result:
    """A program with the argument ``p[i]['w']`` of each sharding, and ``p[0]['b']``."""
    names = [(f"p[{number}]['w']", dims) for number, dims in enumerate(shardings)]
    arguments = ", ".join(
        f'%{number}: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}} loc("{name}")'
        for number, (name, dims) in enumerate([*names, ("p[0]['b']", "[{}, {}]")])
    )
    return Module.parse(WEIGHTS.replace("ARGUMENTS", arguments)).propagate()


X, Y = '[{"x"}, {}]', '[{}, {"y"}]'


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_update_splits_a_pattern_that_no_longer_holds(tmp_path: Path, newline: str) -> None:
    file = tmp_path / "expected.toml"
    text = newline.join(
        [
            "# mine",
            "[shardings]",
            f"\"p[*]['w']\" = '{X}'  # of all layers",
            f"\"p[*]['b']\" = '{Y}'",
            "",
        ]
    )
    file.write_bytes(text.encode())
    # The pattern of "b" has one sharding still, that of "w" has two now.
    assert weights([X, X, Y]).check(file, update=True)
    rows = [f"\"p[0]['w']\" = '{X}'", f"\"p[1]['w']\" = '{X}'", f"\"p[2]['w']\" = '{Y}'"]
    assert file.read_bytes().decode() == newline.join(
        [
            "# mine",
            "[shardings]",
            *rows[:2],
            f"{rows[2]}  # of all layers",
            "\"p[*]['b']\" = '[{}, {}]'",
            "",
        ]
    )
    assert weights([X, X, Y]).check(file, update=True).updated == ()


def test_an_update_keeps_patterns_that_hold_beside_split_ones(tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text(f"[shardings]\n\"p[0]['w']\" = '{X}' # first\n\"p[*][*]\" = '{X}'\n")
    result = weights([X, X])
    assert result.check(file, update=True)
    # The row of one argument stays; a pattern for both has the sharding of both.
    assert file.read_text() == (
        f"[shardings]\n\"p[0]['w']\" = '{X}' # first\n\"p[*]['w']\" = '{X}'\n"
        "\"p[0]['b']\" = '[{}, {}]'\n"
    )
    file.write_text(f"shardings.\"**\" = '{X}'\n")
    assert result.check(file, update=True)
    assert file.read_text() == (
        f"shardings.\"p[*]['w']\" = '{X}'\nshardings.\"p[0]['b']\" = '[{{}}, {{}}]'\n"
    )
    # In an inline table there are no rows.
    file.write_text(f"shardings = {{\"**\" = '{X}'}}\n")
    assert not result.check(file, update=True)
    assert file.read_text() == f"shardings = {{\"**\" = '{X}'}}\n"


def test_specs_say_how_values_are_unreduced() -> None:
    result = Module.parse(
        """sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding =
    #sdy.sharding<@mesh, [{"x"}], unreduced=max{"y"}>}) {
  return
}""",
        shardy="0.12",
    ).propagate()
    for kind, holds in (("max", True), ("min", False), ("sum", False)):
        expected = f"P('x', unreduced={{'y'}}, unreduced_kind={kind})"
        report = result.check({"shardings": {"%a": expected}})
        assert report.ok == holds
    assert 'unreduced=max{"y"}' in str(report)
