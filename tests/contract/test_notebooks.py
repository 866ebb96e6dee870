"""The notebooks of the documentation run, and show what is kept in them."""

import warnings

import pytest

pytest.importorskip("jax", reason="jax needs Python 3.11")

from tests.contract import notebooks


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_is_kept_in_it(path):
    kept = notebooks.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of Jupyter's own modules.
        done = notebooks.run(notebooks.read(path), path.parent)
    assert notebooks.shown(done) == notebooks.shown(kept)


def test_all_four_are_there():
    assert len(notebooks.NOTEBOOKS) >= 4
