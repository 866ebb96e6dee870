"""Dumps of compilers that are not installed everywhere, kept with the programs they are of.

`python -m tests.explain --record` makes them anew, where the compilers are.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from tests.explain.truth import merged
from tests.shardy.xla.models import catalog

FOLDER = Path(__file__).with_name("dumps")
ROOT = Path(__file__).resolve().parents[2]
RECORDED = ("perceptron-grid", "averaged-data", "decode-scan")
ACCELERATORS = ("gpu", "tpu")
_FOREIGN = re.compile(r'"/[^"]*/([^"/]+\.py)"')


def dump(name: str, compiler: str) -> str:
    """What a compiler made of a model when it was recorded."""
    return gzip.decompress((FOLDER / f"{name}.{compiler}.txt.gz").read_bytes()).decode()


def program(name: str) -> str:
    """The model that was compiled then."""
    return gzip.decompress((FOLDER / f"{name}.mlir.gz").read_bytes()).decode()


def record() -> None:
    """Compile the models, and keep what the compilers make of them."""
    for name in RECORDED:
        _write(f"{name}.mlir.gz", catalog.located(name))
        for compiler in ACCELERATORS:
            _write(f"{name}.{compiler}.txt.gz", merged(name, compiler))


def _write(name: str, text: str) -> None:
    """Keep `text` with paths that are the same everywhere."""
    text = _FOREIGN.sub(r'"\1"', text.replace(f"{ROOT}/", ""))
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
