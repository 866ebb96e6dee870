"""Pictures of shardings: which devices are drawn in which block, and that they fit a screen."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from shardcore import Mesh, Module, ProgramTooLargeError, TensorSharding, VerificationError
from shardcore.cli import main
from shardcore.report.picture import MAX_COLUMNS, MAX_PANELS, MAX_ROWS
from shardcore.report.placement import Placement, device_text

MESH = Mesh({"x": 2, "y": 4, "z": 3})


def draw(text: str, shape: tuple[int, ...] | None = None, mesh: Mesh = MESH) -> str:
    return str(TensorSharding.parse(text, mesh=mesh).visualize(shape))


def test_two_dims_make_a_grid() -> None:
    assert (
        draw('<@mesh, [{"x"}, {"y":(1)2}]>', (10, 6))
        == """\
<@mesh, [{"x"}, {"y":(1)2}]>
10x6, 4 blocks over the mesh x=2, y=4, z=3
dim 0 over "x": 2 blocks of 5
dim 1 over "y":(1)2: 2 blocks of 3
every block is on 6 devices

       dim 1
dim 0    0:3     3:6
      ┌───────┬───────┐
  0:5 │  0-5  │  6-11 │
      ├───────┼───────┤
 5:10 │ 12-17 │ 18-23 │
      └───────┴───────┘"""
    )


def test_one_dim_runs_across_if_it_is_the_last() -> None:
    assert "│  0-11 │ 12-23 │" in draw('<@mesh, [{}, {"x"}]>')
    assert "├─" in draw('<@mesh, [{"x"}, {}]>')


def test_other_dims_make_a_grid_each() -> None:
    text = draw('<@mesh, [{"z"}, {"x"}, {"y"}]>', (3, 2, 4))
    assert [line for line in text.splitlines() if line.startswith("dim 0 ") and ":" in line] == [
        'dim 0 over "z": 3 blocks of 1',
        "dim 0 0:1",
        "dim 0 1:2",
        "dim 0 2:3",
    ]


def test_what_is_whole_is_one_block() -> None:
    assert "every device holds it whole" in draw("<@mesh, [{}, {}]>", (3, 4))
    assert "│ 0-23 │" in draw("<@mesh, []>", ())
    assert "│ 3 │" in draw("<@mesh, []>", None, Mesh.maximal(3))


def test_padding_and_partial_sums_are_said() -> None:
    text = draw('<@mesh, [{"y"}], unreduced={"x"}>', (6,))
    assert "4 blocks of 2, the last ones padded by 2" in text
    assert "padding" in text.splitlines()[-4]
    assert 'partial sums over "x"' in text


def test_devices_are_those_of_the_mesh() -> None:
    mesh = Mesh({"x": 2, "y": 2}, device_ids=[3, 1, 2, 0])
    assert "│ 3 │ 1 │" in draw('<@mesh, [{"x"}, {"y"}]>', None, mesh)


def test_huge_meshes_are_drawn_in_part() -> None:
    mesh = Mesh({"a": 1 << 20, "b": 1 << 20, "c": 1 << 10})
    text = draw('<@mesh, [{"c"}, {"a"}, {"b"}]>', None, mesh)
    drawn = MAX_ROWS * MAX_COLUMNS * MAX_PANELS
    assert text.endswith(f"{drawn} of {1 << 50} blocks are drawn")
    assert len(text) < 100_000
    assert "(1073741824 devices)" in draw('<@mesh, [{"a"}]>', None, mesh)


def test_devices_as_text() -> None:
    def devices(text: str) -> str:
        return device_text(Placement(TensorSharding.parse(text, mesh=MESH), MESH), [0])

    assert devices('<@mesh, [{"x"}]>') == "0-11"
    assert devices('<@mesh, [{"z"}]>') == "0,3,… (8 devices)"
    assert devices('<@mesh, [{"y", "z"}]>') == "0,12"


def test_what_cannot_be_drawn() -> None:
    without_mesh = TensorSharding.parse('<@mesh, [{"x"}]>')
    with pytest.raises(VerificationError, match="not known"):
        without_mesh.visualize()
    with pytest.raises(VerificationError) as caught:
        draw('<@mesh, [{"x"}]>', (2, 2))
    assert caught.value.code == "invalid-sharding"
    assert without_mesh._repr_html_() is None  # type: ignore[attr-defined]
    mesh = Mesh({"x": 3 << 30})
    with pytest.raises(ProgramTooLargeError, match="do not divide each other"):
        draw('<@mesh, [{"x":(1)4}, {"x":(6)2}]>', None, mesh)
    module = Module.parse("func.func @main(%x: tensor<4xf32>) { return }")
    with pytest.raises(VerificationError, match="no sharding"):
        module["%x"].visualize()


class Text(HTMLParser):
    """The text of HTML, and the tags that are open at its end."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


NASTY = "<script>alert(1)</script>&amp;"
PROGRAM = f"""
sdy.mesh @mesh = <["{NASTY}"=2, "y"=4]>
func.func @main(%x: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"{NASTY}"}}, {{?}}]>}}
    loc("{NASTY}")) -> tensor<8x16xf32> {{
  %0 = stablehlo.negate %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}}
"""


def test_notebooks_show_results_values_and_shardings() -> None:
    result = Module.parse(PROGRAM).propagate()
    value = result["%x"]
    assert value.sharding is not None
    for shown in (result, value, value.visualize(), value.sharding):
        html = shown._repr_html_()  # type: ignore[attr-defined]
        assert "<script" not in html
        parsed = Text(html)
        assert parsed.open == []
        assert any(NASTY in text for text in parsed.texts)
    assert "<svg" in value._repr_html_()  # type: ignore[attr-defined]
    assert "no sharding" in Module.parse(PROGRAM)["%0"]._repr_html_()  # type: ignore[attr-defined]


def test_a_notebook_shows_large_results_in_part() -> None:
    body = "\n".join(
        f"  %{i} = stablehlo.negate {'%x' if i == 0 else f'%{i - 1}'} : tensor<8xf32>"
        for i in range(500)
    )
    head, last = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>", "%499 : tensor<8xf32>"
    text = f"{head} {{\n{body}\n  return {last}\n}}"
    html = Module.parse(text).propagate()._repr_html_()  # type: ignore[attr-defined]
    assert len(re.findall("<tr>", html)) < 60
    assert "results of ops more" in html


def test_the_command_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", '[{"x"}, {"y"}]', "--mesh", "x=2,y=4", "--shape", "8x16"]) == 0
    assert "8x16, 8 blocks over the mesh x=2, y=4" in capsys.readouterr().out
    assert main(["show", '<mesh<["x"=2]>, [{"x"}]>']) == 0
    assert main(["show", '[{"z"}]', "--mesh", "x=2"]) == 1
    assert "unknown-axis" in capsys.readouterr().err
    for wrong in (["[{}]"], ["[{}]", "--mesh", "x=2", "--shape", "8xa"]):
        with pytest.raises(SystemExit) as caught:
            main(["show", *wrong])
        assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("A[I_X, J]", "X=2"),
        ("A[I_{XY}, J] {U_Z}", "X=2,Y=2,Z=2"),
        ('P(("x", "y"), None)', "x=2,y=2"),
        ('[{"x"}, {}], replicated={"y"}', "x=2,y=2"),
        ('[{"x":(2)2}, {"x":(1)2}]', "x=4"),
        ('<@mesh, [{"x":(3)2}]>', "x=6"),
    ],
)
def test_a_sharding_without_a_mesh_is_drawn_over_an_assumed_one(
    text: str, mesh: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", text, "--mesh", mesh]) == 0
    drawn = capsys.readouterr().out
    assert main(["show", text]) == 0
    note = f"the mesh is not given, and taken to be {mesh}: --mesh gives another\n"
    assert capsys.readouterr().out == drawn + note
