"""What was evaluated before is not evaluated again, unless something else has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import Module, Session, VerificationError
from shardcore.partition.counted import counted
from shardcore.rules import registry
from shardcore.session import result_cache

from tests.session.test_session import TEXT, W

CHIP = "tpu-v5p"
CALL = "stablehlo.custom_call @mine(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>"
EDITS = [{W: '[{}, {"model"}]'}, {W: '[{"data"}, {}]'}, {}, {"%1": '[{"data"}, {}]'}]


@pytest.fixture
def session() -> Session:
    return Module.parse(TEXT).session()


@pytest.fixture
def rule() -> Iterator[None]:
    """Takes the rule of ``tanh`` back."""
    yield
    shardcore.rules.unregister("stablehlo.tanh")


def new(session: Session, **options: Any) -> dict[str, Any]:
    """The cost of a new run of the same program."""
    return shardcore.cost(Module.parse(str(session.module)), CHIP, **options).record()


def test_the_cost_after_an_undo_is_the_one_before(session: Session) -> None:
    costs = []
    for edit in EDITS:
        session.set(edit)
        costs.append(session.cost(CHIP))
        assert costs[-1].record() == new(session)
    session.undo()
    assert session.cost(CHIP) is costs[-2]
    session.undo()
    session.undo()
    assert session.cost(CHIP) is costs[0]
    session.reset()
    assert session.cost(CHIP).record() == new(session)


def test_rows_again_are_the_rows_before(session: Session) -> None:
    first = [row.record() for row in session.evaluate(EDITS, CHIP)]
    assert len({str(row["step_seconds"]) for row in first}) > 1
    again = list(session.evaluate([*EDITS, *reversed(EDITS)], CHIP))
    assert [row.record() for row in again] == [*first, *reversed(first)]
    assert [row.edit for row in again] == [*EDITS, *reversed(EDITS)]


def test_rules_and_options_end_what_is_remembered(session: Session, rule: None) -> None:
    session.set(W, '[{"data"}, {}]')
    before = session.cost(CHIP)
    [row] = session.evaluate([{}], CHIP)
    assert session.cost(CHIP, policy="shardy").record() == new(session, policy="shardy")
    assert session.cost("h100").hardware.name == "h100"
    assert session.cost(CHIP, combine=0).record() == new(session, combine=0)
    registry.rule("stablehlo.tanh", "_ _ -> _ _")
    assert session.cost(CHIP).record() == new(session) != before.record()
    [changed] = session.evaluate([{}], CHIP)
    assert changed.record() != row.record()
    registry.unregister("stablehlo.tanh")
    assert session.cost(CHIP).record() == before.record()


def test_cost_rules_hold_for_costs_that_are_asked_for_after_them() -> None:
    text = TEXT.replace("stablehlo.tanh %0 : tensor<8x32xf32>", CALL)
    session = Module.parse(text).session()
    before = session.cost(CHIP)
    others = [shardcore.cost(session.result, CHIP, policy=policy) for policy in ("xla", "shardy")]
    kept = counted(session.result, "xla")
    shardcore.cost_rule("mine", shardcore.CostEstimate(10**12))
    try:
        assert session.cost(CHIP).record() == new(session) != before.record()
        for program in (session.result, kept):
            assert shardcore.cost(program, CHIP).record() == new(session)
        assert session.cost(CHIP, policy="shardy").record() == new(session, policy="shardy")
    finally:
        shardcore.rules.unregister_cost_rule("mine")
    assert session.cost(CHIP).record() == new(session) == before.record() == others[0].record()


def test_results_that_nobody_has_read_are_by_the_rules_of_their_time(
    session: Session, rule: None
) -> None:
    session.set(W, '[{"data"}, {}]')
    assert session.result.arguments()
    session.set(W, '[{}, {"model"}]')
    before, expected = session.result, session.module.propagate()
    registry.rule("stablehlo.tanh", "_ _ -> _ _")
    after = session.module.propagate()
    assert str(after.module) != str(expected.module)
    assert str(before.module) == str(expected.module)
    assert str(session.result.module) == str(after.module)


def test_options_that_may_change_are_not_remembered(session: Session, tmp_path: Path) -> None:
    limits = {"all_gather": 0}
    first = session.cost(CHIP, combine=limits)
    assert session.cost(CHIP, combine=limits) is first
    limits["all_gather"] = 1 << 30
    assert session.cost(CHIP, combine=limits) is not first
    file = tmp_path / "chips.toml"
    shipped = Path(shardcore.__file__).parent / "calculus/hardware.toml"
    chips = shipped.read_text("utf-8")
    file.write_text(chips, "utf-8")
    before = session.cost(CHIP, hardware_file=file)
    file.write_text(re.sub(r"(?m)^hbm_bytes = (?=\d)", "hbm_bytes = 1", chips), "utf-8")
    after = session.cost(CHIP, hardware_file=file)
    assert after.hardware.hbm_bytes != before.hardware.hbm_bytes


def test_few_costs_are_kept(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "_MOST_OPS", 2 * result_cache._LEAST_OPS)
    costs = []
    for edit in EDITS[:3]:
        session.reset()
        session.set(edit)
        costs.append(session.cost(CHIP))
    assert session.cost(CHIP) is costs[2]
    session.reset()
    session.set(EDITS[1])
    assert session.cost(CHIP) is costs[1]
    session.reset()
    session.set(EDITS[0])
    assert session.cost(CHIP) is not costs[0]
    assert session.cost(CHIP).record() == costs[0].record()


def test_a_constraint_that_was_valid_does_not_make_others_so(session: Session) -> None:
    session.set("%1", '[{"data"}, {}]')
    for number in range(3):
        session.set(W, EDITS[number % 2][W])
        completed = Module.parse(str(session.module)).propagate().module
        assert str(session.result.module) == str(completed)
        with pytest.raises(VerificationError):
            session.set({"%1": '[{"data"}, {"data"}]'})
        with pytest.raises(VerificationError):
            session.set({W: '[{"data"}, {"data"}]'})
        with pytest.raises(VerificationError):
            session.set({"%1": "[{}, {}, {}]", W: '[{"data"}, {}]'})
