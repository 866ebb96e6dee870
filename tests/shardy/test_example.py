"""The shipped training step: it is what its script makes, and its shardings are the reference's."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shardy import reference
from tests.shardy.diff import explain, ours

EXAMPLES = Path(__file__).parents[2] / "examples"

made_by_this_jax = pytest.mark.skipif(
    not importlib.metadata.version("jax").startswith("0.10."),
    reason="JAX 0.10 has made the programs that are shipped; others lower some ops otherwise",
)


@pytest.fixture(scope="module")
def shipped() -> str:
    return (EXAMPLES / "gpt_step.mlir").read_text()


@made_by_this_jax
def test_is_what_the_script_makes(shipped: str, tmp_path: Path) -> None:
    made = tmp_path / "made.mlir"
    # In a process of its own, since the script sets JAX's global options.
    subprocess.run([sys.executable, EXAMPLES / "gpt_step.py", "-o", made], check=True)
    # Columns of locations differ between versions of Python; the program may not.
    difference = explain(reference.canonical(shipped), reference.canonical(made.read_text()))
    assert not difference, f"\n{difference}"


@made_by_this_jax
def test_the_small_step_is_what_its_script_makes(tmp_path: Path) -> None:
    script = shutil.copy(EXAMPLES / "mlp.py", tmp_path)
    subprocess.run([sys.executable, script], check=True)
    shipped, made = ((folder / "mlp.mlir").read_text() for folder in (EXAMPLES, tmp_path))
    difference = explain(reference.canonical(shipped), reference.canonical(made))
    assert not difference, f"\n{difference}"


def test_names_source_files_without_their_folders(shipped: str) -> None:
    assert '"gpt_step.py":' in shipped
    assert '.py"' not in shipped.replace('"gpt_step.py"', "")


def test_is_completed_like_the_reference(shipped: str) -> None:
    difference = explain(reference.run(shipped), ours(shipped))
    assert not difference, f"\n{difference}"
