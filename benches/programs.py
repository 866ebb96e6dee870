"""The programs that the two engines are compared on: the rows of the table, in several sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benches import families


@dataclass(frozen=True)
class Row:
    """A family of programs: the table shows sizes in ``shown``, the plot all of them."""

    name: str
    make: Callable[[int], str]
    shown: tuple[int, ...]
    smaller: tuple[int, ...] = ()
    # The unit of a size.
    unit: str = "ops"
    # Whether the reference needs more than ten seconds for the largest size.
    is_slow: bool = False

    def title(self, size: int) -> str:
        """The name of the program of this size in the table."""
        return f"{self.name}, {size:,} {self.unit}"


def gpt(layers: int) -> str:
    """A GPT training step of ``layers`` layers, lowered when called."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    import gpt_step

    mesh = gpt_step.abstract_mesh(data=2, fsdp=4, tensor=4)
    return gpt_step.lower(gpt_step.Config(layers=layers), mesh, gpt_step.Plan())


ROWS = (
    Row("GPT step", gpt, (12, 96, 288), unit="layers", is_slow=True),
    Row("MLP blocks", families.mlp, (1_000_000,), (1_000, 10_000, 100_000), is_slow=True),
    Row(
        "one chain, annotated at its end",
        families.chain,
        (1_000_000,),
        (1_000, 10_000, 100_000),
        is_slow=True,
    ),
    Row("MLP, 1 user priority", families.mlp, (30_000,), (300, 3_000)),
    Row("MLP, 16 user priorities", partial(families.mlp, priorities=16), (30_000,), (300, 3_000)),
    Row("concatenate", families.concatenate, (16_000,), (160, 1_600), "arguments"),
    Row("function", families.results, (16_000,), (160, 1_600), "results"),
    Row("one hub", families.hub, (16_000,), (160, 1_600), "users"),
    Row("sharding groups of two", families.groups, (5_000,), (50, 500), "groups"),
    Row(
        "functions that call the next one twice",
        families.calls,
        (16,),
        (9, 13),
        "levels",
        is_slow=True,
    ),
    Row("no two ops of the same shape", families.unique_shapes, (30_000,), (300, 3_000)),
)
"""The families that are compared by default."""
