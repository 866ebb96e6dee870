"""A fixed number of inputs of each target; `make fuzz` goes on from there."""

from __future__ import annotations

import pytest

from tests.fuzz.surfaces import TARGETS, isolated

pytest.importorskip("resource", reason="memory is limited by it")
INPUTS = {
    "arguments": 400,
    "changed-ops": 750,
    "commands": 100,
    "expectations": 200,
    "figures": 50,
}


@pytest.mark.parametrize("target", TARGETS)
def test_any_input_has_a_result_or_an_error(target: str) -> None:
    found = {seed: wrong for seed, wrong in isolated.run(target, range(INPUTS[target])) if wrong}
    assert not found


def test_what_goes_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = isolated.Worker()
    try:
        assert "invalid literal" in worker.run("arguments", "none")  # type: ignore[arg-type]
        assert worker.run("arguments", 1) == ""
    finally:
        worker.close()
