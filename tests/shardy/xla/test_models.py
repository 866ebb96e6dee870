"""What models cost is what XLA says of the compiled ones, but for what is explained."""

from __future__ import annotations

import pytest

from tests.deep import deep, sampled
from tests.shardy.xla.measured import kept, measure, measured
from tests.shardy.xla.model_cases import CASES
from tests.shardy.xla.model_rows import cost, names, peak, rows, text
from tests.shardy.xla.models import catalog

# Programs of which the peak memory is within a tenth.
NEAR_PEAKS = 102


@pytest.mark.parametrize("name", sampled(names(), 2))
def test_cost(name: str) -> None:
    differ = {row.figure for row in rows(name).values() if not row.agrees}
    assert differ == CASES.get(name, {}).keys(), [rows(name)[figure] for figure in differ]
    points = cost(name).memory_timeline().points
    assert max(point.bytes for point in points) == cost(name).peak_bytes


@deep
def test_most_peaks_are_what_xla_says() -> None:
    near = [name for name in names() if peak(name).agrees]
    assert len(near) >= NEAR_PEAKS, sorted(set(names()) - set(near))


@pytest.mark.parametrize("name", ["classify-vocabulary", "sharded-by-hand-gathered"])
def test_what_is_kept_is_what_xla_says(name: str) -> None:
    assert measured(name, catalog.text(name)) == measure(catalog.text(name))


def test_nothing_is_kept_that_is_not_there() -> None:
    assert kept().keys() == set(names())
    assert CASES.keys() <= set(names())


@deep
def test_what_is_kept_is_of_the_models_as_they_are() -> None:
    assert all(measured(name, text(name)).key == kept()[name]["key"] for name in names())
