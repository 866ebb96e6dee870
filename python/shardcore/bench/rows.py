"""Public measured training steps: the table ``public_steps.csv``, with the source of each row.

Half of the rows are held out: no figure was fitted to them. The half is decided by a row's
configuration alone, so repeated measurements of one configuration are in the same half.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shardcore.bench.models import MODELS

CONFIGURATION = (
    "model",
    "seq",
    "global_batch",
    "hardware",
    "chips",
    "dp",
    "fsdp",
    "tp",
    "pp",
    "cp",
    "ep",
    "remat",
    "dtype",
)
"""The columns that define the configuration; a hash of their text decides the half of a row."""

FITTED = "configs/gpu/a3/llama_2_7b"
"""A source of runs to which figures of the H100 were fitted before this table existed."""

A3 = "h100-a3"
"""The chip of these runs, whose nodes have fewer links to other nodes."""

CHIPS = {
    "A100-80": "a100",
    "H100": "h100",
    "H100-500W": "h100-500w",
    "B200": "b200",
    "B300": "b300",
    "GB200": "gb200",
    "GB300": "gb300",
    "v5p": "tpu-v5p",
    "v6e": "tpu-v6e",
    "tpu7x": "tpu-v7x",
}
"""For each name in the column ``hardware`` the name in ``hardware.toml`` or ``chips.toml``."""

GIB = 2**30


@dataclass(frozen=True)
class Row:
    """A measured step. Columns without a value in the source are empty."""

    number: int
    """Its position in the table, from 1."""
    columns: dict[str, str]

    @property
    def name(self) -> str:
        """Its number and configuration, on one line."""
        mesh = " ".join(
            f"{axis}{self.columns[axis]}"
            for axis in ("dp", "fsdp", "tp", "pp", "cp", "ep")
            if self.columns[axis] not in ("", "1")
        )
        text = (
            f"{self.model} {self.columns['chips']}x{self.columns['hardware']} {mesh} {self.dtype}"
        )
        return " ".join(text.split())

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.columns["model"]

    @property
    def family(self) -> str:
        """The family of the model; the model's name if the family is unknown."""
        known = MODELS.get(self.model)
        return self.model if known is None else known.family

    @property
    def dtype(self) -> str:
        """The operand type of products."""
        return self.columns["dtype"]

    @property
    def chip(self) -> str:
        """The name of the chip in the hardware files."""
        return A3 if FITTED in self.columns["source"] else CHIPS[self.columns["hardware"]]

    @property
    def is_held_out(self) -> bool:
        """Whether it is in the half to which nothing is fitted."""
        if FITTED in self.columns["source"]:
            return False
        text = ",".join(self.columns[name] for name in CONFIGURATION)
        return hashlib.sha256(text.encode()).digest()[3] % 2 == 1

    @property
    def notes(self) -> list[str]:
        """Properties of the run, as told by the source, that its program does not have."""
        return _list(self.columns["notes"])

    @property
    def options(self) -> list[str]:
        """The options of the run's recipe that its program has, by their names there."""
        return _list(self.columns["options"])

    def option(self, name: str) -> tuple[str, ...]:
        """The values of the option ``name``, which are separated by commas."""
        found = [each.partition("=") for each in self.options]
        return tuple(value for key, _, text in found if key == name for value in text.split(","))

    @property
    def assumed(self) -> list[str]:
        """Assumptions for its program where the source gives no value."""
        return _list(self.columns["assumed"])

    @property
    def peak_bytes(self) -> float | None:
        """The published peak memory."""
        text = self.columns["peak_gib"]
        return float(text) * GIB if text else None

    @property
    def is_torchtitan(self) -> bool:
        """Whether it is a run of torchtitan, which computes the loss op by op, and publishes the
        memory that the allocator of PyTorch reserves."""
        return "torchtitan" in self.columns["source"]

    def number_of(self, column: str, default: int = 1) -> int:
        """The number in ``column``; ``default`` if it is empty."""
        text = self.columns[column]
        return int(text) if text else default


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]


@cache
def read_rows() -> tuple[Row, ...]:
    """Return all rows of the table."""
    path = Path(__file__).with_name("public_steps.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Row(number, columns) for number, columns in enumerate(csv.DictReader(file), 1))
