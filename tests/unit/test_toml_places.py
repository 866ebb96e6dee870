"""Places in TOML texts: every value that Python's parser finds is where it is said to be."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore.expect.toml_places import Path, places
from shardcore.expect.update import bytes_text, toml_text
from shardcore.units import parse_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = """\
# a comment [not] = "a table"
top = 1
a.b."c d" = "x # no comment"
date = 1979-05-27T07:32:00Z   # a comment
[table] # a comment
'lit.eral' = '''
[no.table]
''' # a comment
"q\\"uot\\u00e9" = \"\"\"a \\"\"\" b\"\"\"
inf = -inf
[table.sub]
array = [ 1, # one
  [ "]", '}' ],
  { x = [true], "y z".w = {} },
]
[[items]]
name = "first"
[[items]]
name = "second"
[[items.parts]]
n = 0x1F
[ spaced . "out" ]
k=[]
"""


def leaves(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list) and data:
        for number, value in enumerate(data):
            yield from leaves(value, (*path, number))
    elif path:
        yield path, data


def test_every_value_is_where_it_stands() -> None:
    found = places(TEXT)
    data = dict(leaves(tomllib.loads(TEXT)))
    assert set(data) <= set(found.values)
    for path, value in data.items():
        start, end = found.values[path]
        assert tomllib.loads(f"v = {TEXT[start:end]}") == {"v": value}, path


def test_keys_are_where_they_stand() -> None:
    found = places(TEXT)
    for path in dict(leaves(tomllib.loads(TEXT))):
        if not isinstance(path[-1], int):
            start, end = found.keys[path]
            assert tomllib.loads(f"{TEXT[start:end]} = 1") == {path[-1]: 1}


def test_what_has_no_place_is_where_its_table_is() -> None:
    found = places(TEXT)
    assert found.best(("table", "none")) == found.keys["table",]
    assert found.best(("none",)) is None


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.text(max_size=12),
    st.just(datetime.date(2020, 2, 29)),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, list):
        return "[" + " ,\n".join(map(written, value)) + " ]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)}= {written(v)}" for k, v in value.items()) + "}"
    return str(value)


def quoted(key: str) -> str:
    return toml_text(key)


@given(st.dictionaries(st.text(max_size=5), TREES, max_size=4))
def test_values_that_we_write_are_found_again(data: dict[str, Any]) -> None:
    text = "".join(f"{quoted(key)} = {written(value)} # ' \" [\n" for key, value in data.items())
    assert tomllib.loads(text) == data
    found = places(text)
    for path, value in leaves(data):
        start, end = found.values[path]
        assert tomllib.loads(f"v = {text[start:end]}") == {"v": value}


@given(st.integers(0, 1 << 60))
def test_bytes_are_rounded_up(count: int) -> None:
    read = parse_bytes(bytes_text(count))
    assert read is not None
    assert count <= read <= count * 1.11 + 1


@pytest.mark.parametrize(
    ("text", "count"),
    [("12", 12), ("1.5 GiB", 3 << 29), ("2kB", 2000), ("3 mib", 3 << 20), (7, 7), ("1 B", 1)],
)
def test_bytes_have_units(text: object, count: int) -> None:
    assert parse_bytes(text) == count
