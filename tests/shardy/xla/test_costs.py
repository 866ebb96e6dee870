"""What a program costs is what XLA says of the compiled one, but for what is explained."""

from __future__ import annotations

import pytest

from tests.shardy.xla.cases import CASES
from tests.shardy.xla.compare import rows


@pytest.mark.parametrize("name", CASES)
def test_cost(name: str) -> None:
    differ = {row.figure for row in rows(name).values() if not row.agrees}
    assert differ == CASES[name].keys(), [rows(name)[figure] for figure in differ]
