"""Tables fit a width: text is shortened, places first, and numbers never are."""

from __future__ import annotations

import pytest
from shardcore.labels import file_line
from shardcore.report.console import plain_text, table
from shardcore.report.widths import fitted

COLUMNS = ("value", "kind", ">count", ">bytes", "sharding", "note", "source")
ROWS = [
    ("%12", "reduce_scatter", "12", "131.0 MiB", '[{"data"}, {"tensor"}]', "", "/a/b/mlp.py:41:8"),
    ("%a_long_name_of_a_value", "all_reduce", "8", "4 B", "[{}, {}]", "", "/a/b/c/mlp.py:7:12"),
]


def drawn(width: int) -> list[str]:
    found = fitted(COLUMNS, ROWS, width)
    lines = [found.columns, *map(list, found.rows)]
    sizes = [max(len(line[at].lstrip(">")) for line in lines) for at in range(len(found.columns))]
    assert sum(sizes) + found.gap * (len(sizes) - 1) <= width
    return [" ".join(line) for line in lines]


def test_a_table_with_room_stays_as_it_is() -> None:
    found = fitted(COLUMNS, ROWS, 200)
    assert (tuple(found.columns), found.rows, found.gap) == (COLUMNS, ROWS, 2)


@pytest.mark.parametrize("width", [105, 100, 90, 80, 70])
def test_numbers_and_kinds_stay(width: int) -> None:
    head, *rows = drawn(width)
    assert "note" not in head
    for row, line in zip(ROWS, rows, strict=True):
        assert all(cell in line for cell in row[1:4])


def test_places_are_shortened_before_shardings_and_these_before_names() -> None:
    assert "mlp.py:41:8" in drawn(110)[1]
    assert "/a/b" not in drawn(100)[1]
    row = drawn(88)[1]
    assert '[{"data"}, {"tensor"}]' in row
    assert "mlp.py:41" in row
    first, second = drawn(80)[1:]
    assert "…" in first
    assert "%a_long_name_of_a_value" in second
    assert "mlp.py:7" in second


def test_wrapped_columns_keep_their_text() -> None:
    found = fitted(COLUMNS, ROWS, 80, wrapped=("sharding",))
    assert [row[4] for row in found.rows] == [row[4] for row in ROWS]
    assert len('{"tensor"}]') <= found.wrapped["sharding"] < len(ROWS[0][4])


def test_shapes_stay_and_the_widest_text_is_cut() -> None:
    columns = ("value", "shape", "sharding", "local shape", ">per device", "source")
    row = ("%arg1", "16x8x1024x128xf32", '[{"data"}, {"model"}, {}, {}]', "8x2x1024x128")
    source = "params['layers'][0]['attention']['key']"
    found = fitted(columns, [(*row, "1.0 MiB", source)], 80, wrapped=("sharding",))
    assert found.rows[0][:5] == (*row, "1.0 MiB")
    cut = found.rows[0][5]
    assert cut.startswith("params['")
    assert cut.endswith("['key']")
    assert "…" in cut


def test_files() -> None:
    assert file_line("/home/me/mlp.py:3:8") == file_line("C:\\me\\mlp.py:3:8") == "mlp.py:3:8"
    assert file_line("mlp.py:3:8") == "mlp.py:3:8"
    assert file_line(None) == ""


def test_output_is_as_wide_as_columns_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shardcore.report.console import show

    monkeypatch.setenv("COLUMNS", "80")
    show([table(COLUMNS, ROWS)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    monkeypatch.delenv("COLUMNS")
    show([table(COLUMNS, ROWS)])
    assert "/a/b/mlp.py:41:8" in capsys.readouterr().out
    assert "/a/b/mlp.py:41:8" in plain_text([table(COLUMNS, ROWS)])
