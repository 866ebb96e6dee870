"""Numbers as people read them."""

from __future__ import annotations

import pytest
from shardcore.report.fits import fit_text
from shardcore.units import format_bytes_apart, format_bytes_up, parse_bytes


@pytest.mark.parametrize(
    ("count", "other", "expected"),
    [
        (2**34, 2**33, ("16.0 GiB", "8.0 GiB")),
        (2**34, 2**34, ("16.0 GiB", "16.0 GiB")),
        (2**34 + 2**29, 2**34, ("16.5 GiB", "16.0 GiB")),
        (2**34 + 2**25, 2**34, ("16.03 GiB", "16.00 GiB")),
        (2**34 + 2**20, 2**34, ("16.001 GiB", "16.000 GiB")),
        (2**34 + 1, 2**34, ("17179869185 bytes", "17179869184 bytes")),
        (1023, 1024, ("1023 B", "1.0 KiB")),
    ],
)
def test_two_numbers_of_bytes_that_differ_look_different(
    count: int, other: int, expected: tuple[str, str]
) -> None:
    assert format_bytes_apart(count, other) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (2**30, "1.00 GiB"),
        (2**30 + 1, "1.01 GiB"),
        (2**20 * 200 + 1024 * 6, "200.01 MiB"),
        (2**30 - 1, "1024.00 MiB"),
        (1023, "1023 B"),
        (0, "0 B"),
    ],
)
def test_what_is_rounded_up_is_never_less(count: int, expected: str) -> None:
    assert format_bytes_up(count) == expected
    assert (parse_bytes(expected) or 0) >= count


def test_a_peak_just_above_the_limit() -> None:
    assert fit_text(2**34, "tpu-v5e", 2**34) == "peak 16.0 GiB: fits tpu-v5e (16.0 GiB)"
    above = "peak 16.03 GiB: DOES NOT FIT tpu-v5e (16.00 GiB)"
    assert fit_text(2**34 + 2**25, "tpu-v5e", 2**34) == above
