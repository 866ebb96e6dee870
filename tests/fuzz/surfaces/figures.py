"""Target: what random modules cost on every hardware, and the program of one device."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

from shardcore import Module, ShardcoreError
from shardcore.calculus import hardware_names

from tests.fuzz.surfaces import outcome
from tests.shardy.generator import programs


def run(seed: int) -> None:
    """Costs the module of `seed`; each figure is a number, and the record is JSON."""
    random = Random(f"figures {seed}")
    try:
        result = Module.parse(programs.make(seed)).propagate()
    except ShardcoreError:
        return
    hardware = random.choice(hardware_names())
    # Reshards that have no collectives, as between parts of an axis that do not nest, are errors.
    cost = outcome.of_call(lambda: result.cost(hardware))
    if cost is not None:
        str(cost)
        json.dumps(cost.record(), allow_nan=False)
        _check_numbers(cost.record(), hardware)
    policy = random.choice(["least", "shardy"])
    partitioned = outcome.of_call(lambda: result.partition(policy))
    if partitioned is not None:
        assert "sdy." not in str(partitioned.module)
        Module.parse(str(partitioned.module))
        json.dumps(partitioned.record(), allow_nan=False)


def _check_numbers(record: Any, place: str) -> None:
    if isinstance(record, dict):
        for key, part in record.items():
            _check_numbers(part, f"{place}.{key}")
    elif isinstance(record, list):
        for part in record:
            _check_numbers(part, place)
    elif isinstance(record, (int, float)):
        assert math.isfinite(record), place
        assert record >= 0, place
