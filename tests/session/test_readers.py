"""What is read of a session's result before its program is made is what the program says."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from shardcore import Module, Port, Result, Session, ShardcoreError

from tests.session.edits import Editor, figures
from tests.shardy.generator import programs

NUM_MODULES = 120
EDITS_PER_MODULE = 8
CHUNK = NUM_MODULES // 6


def port_record(port: Port) -> tuple[Any, ...]:
    """All that a port says."""
    return (
        *(port.index, port.name, port.label, port.type, port.shape, port.dtype),
        *(port.sharding, str(port.sharding), port.local_shape, port.bytes, port.bytes_per_device),
        *(port.attributes, repr(port)),
    )


def check_readers(session: Session) -> None:
    """Check what is read of the session's result without its module."""
    try:
        result: Result = session.result
        read = [port_record(port) for port in (*result.arguments(), *result.results())]
    except ShardcoreError as error:
        with pytest.raises(type(error), match=error.code):
            Module.parse(str(session.module)).propagate()
        return
    module = result.module
    assert read == [port_record(port) for port in (*module.arguments(), *module.results())]


@pytest.mark.parametrize("start", range(0, NUM_MODULES, CHUNK))
def test_random_edits_of_random_modules(start: int) -> None:
    for seed in range(start, start + CHUNK):
        session = Module.parse(programs.make(seed)).session()
        if not session.module.meshes:
            continue
        editor = Editor(Random(seed), session)
        for edit in range(EDITS_PER_MODULE):
            editor.edit()
            check_readers(session)
            if edit % 4 == 3:
                assert figures(session) == figures(Module.parse(str(session.module))), seed


def redo(rng: Random, session: Session) -> None:
    """Take away the annotations of most arguments and results, or restore them."""
    if rng.random() < 0.3:
        session.reset()
        return
    module = session.module
    for port in (*module.arguments(), *module.results()):
        if port.shape and rng.random() < 0.7:
            session.unset(port.name)


def test_costs_of_runs_made_once_more() -> None:
    for seed in range(NUM_MODULES):
        session = Module.parse(programs.make(seed)).session()
        if not session.module.meshes:
            continue
        rng, editor = Random(seed), Editor(Random(seed), session)
        for _ in range(3):
            redo(rng, session)
            editor.edit()
            assert figures(session) == figures(Module.parse(str(session.module))), seed


def test_random_edits_of_a_training_step() -> None:
    text = (Path(__file__).resolve().parents[2] / "examples" / "gpt_step.mlir").read_text()
    session = Module.parse(text).session()
    editor = Editor(Random(16), session)
    for edit in range(24):
        done = editor.edit()
        check_readers(session)
        if edit % 4 == 3:
            assert figures(session) == figures(Module.parse(str(session.module))), done


def test_roles_of_a_training_step() -> None:
    text = (Path(__file__).resolve().parents[2] / "examples" / "gpt_step.mlir").read_text()
    session = Module.parse(text).session()
    ports = session.module.arguments()
    role = [port.name for port in ports if port.type == ports[2].type]
    for dims in ('[{"fsdp"}, {}]', '[{}, {"tensor"}]', '[{"tensor"}, {"fsdp"}]', "[{}, {}]"):
        session.set(dict.fromkeys(role, dims))
        check_readers(session)
        assert figures(session) == figures(Module.parse(str(session.module))), dims
