"""Reads measured steps from a file (format: ``docs/cost.md``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardcore import files
from shardcore._core import Module
from shardcore.bounded import shown
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.hardware import Hardware, hardware
from shardcore.calculus.mistakes import choices, mistake
from shardcore.costs.build import build
from shardcore.costs.program import Cost
from shardcore.errors import CalculusError
from shardcore.partition.counted import local_program
from shardcore.partition.partitioned import Partitioned
from shardcore.partition.policies import POLICIES
from shardcore.profiles.profile import read_profile

SHORTEST, LONGEST = 1e-12, 1e9
"""The range of seconds that a measured step may have."""

_EXAMPLE = '{"hardware": "tpu-v5e", "runs": [{"file": "step.mlir", "step_seconds": 1.5}]}'
_MODULE = re.compile(rb"^module @([\w.\-$]+)", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+')


@dataclass(frozen=True)
class Measurement:
    """A measured step."""

    name: str
    program: Partitioned
    step_seconds: float
    options: Mapping[str, Any]
    """Options of :func:`shardcore.cost`: topology, mapping, slices, dcn."""
    held_out: bool = False
    """Whether it is only compared, not fitted to."""

    def cost(self, chip: Hardware) -> Cost:
        """The cost of its program on ``chip``."""
        return build(self.program, chip, options=TimeOptions(), **self.options)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_count, value))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict) and all(map(_are_counts, value.values()))


_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "file": (lambda value: isinstance(value, str), '"file": "step.mlir"'),
    "step_seconds": (
        lambda value: _is_number(value) and SHORTEST <= value < LONGEST,
        f'"step_seconds": 1.5, from {SHORTEST:g} to {LONGEST:g}',
    ),
    "profile": (lambda value: isinstance(value, str), '"profile": "trace"'),
    "policy": (
        lambda value: isinstance(value, str) and value in POLICIES,
        f'"policy": "xla"; there is {", ".join(POLICIES)}',
    ),
    "topology": (
        lambda value: isinstance(value, str) or _are_counts(value),
        '"topology": "4x4"',
    ),
    "mapping": (
        lambda value: isinstance(value, str) or _is_mapping(value),
        '"mapping": "x=0,1"',
    ),
    "slices": (_is_count, '"slices": 2'),
    "dcn": (_is_number, '"dcn": 6.25e9, bytes per second'),
    "held_out": (lambda value: isinstance(value, bool), '"held_out": true'),
}
"""For each key of a run, the types that it may have, and an example."""
_OPTIONS = ("topology", "mapping", "slices", "dcn")


@dataclass(frozen=True)
class _File:
    """A file of measurements, which can give the position of a mistake."""

    name: str
    text: str

    def mistake(
        self, message: str, hint: str = f"write {_EXAMPLE}", *path: str | int
    ) -> CalculusError:
        """The error for a mistake at ``path`` in the JSON, or in what encloses it."""
        # Positions are computed only now, as most files have no mistake.
        found = dict(_places(self.text))
        while path and path not in found:
            path = path[:-1]
        return self.at(found.get(path, (0, 1)), message, hint)

    def at(self, span: tuple[int, int], message: str, hint: str) -> CalculusError:
        """The error for a mistake in ``span`` of the text."""
        return mistake(
            CalculusError,
            "measurements",
            message,
            hint=hint,
            text=self.text,
            span=span,
            filename=self.name,
        )

    def content(self) -> Any:
        """The parsed JSON."""
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            span, problem = (error.pos, error.pos + 1), error.msg
        # Parsing may fail: numbers with too many digits, or deeply nested lists.
        except (ValueError, RecursionError) as error:
            span, problem = (0, 1), str(error)
        raise self.at(span, f"this is no JSON: {problem}", f"write {_EXAMPLE}")


def _places(text: str) -> Iterator[tuple[tuple[str | int, ...], tuple[int, int]]]:
    """The position of each value in ``text``, which is JSON, by its path of keys and indices: the
    whole of a string or number, the opening bracket of a list or object.
    """
    path: list[str | int] = []
    is_key = False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "]}":
            path.pop()
        elif word == ":":
            is_key = False
        elif word == ",":
            last = path[-1]
            is_key = isinstance(last, str)
            path[-1] = last + 1 if isinstance(last, int) else last
        elif is_key:
            path[-1] = json.loads(word)
        else:
            yield tuple(path), token.span()
            if word in "[{":
                is_key = word == "{"
                path.append("" if is_key else 0)


def read_measurements(
    path: str | Path, hardware_file: str | Path | None = None
) -> tuple[list[Measurement], Hardware]:
    """Return the measurements in the file ``path``, and their chip.

    Raises:
        CalculusError: the file is not valid (``measurements``), or the chip is unknown.
        OSError: the file, or a program that it names, cannot be read.
        ShardcoreError: a program cannot be parsed, propagated or partitioned.
    """
    text = files.read(path, files.MAX_TABLE_BYTES).decode("utf-8", "replace")
    file = _File(str(path), text)
    data = file.content()
    if not isinstance(data, dict) or not isinstance(data.get("hardware"), str):
        raise file.mistake("it does not say which hardware was measured")
    _check_known(file, data, ("hardware", "runs"), "the file")
    runs = data.get("runs")
    if not isinstance(runs, list) or not runs:
        raise file.mistake("it has no runs", f"write {_EXAMPLE}", "runs")
    chip = hardware(data["hardware"], hardware_file)
    return [
        _measurement(file, number, Path(path).parent, row) for number, row in enumerate(runs)
    ], chip


def _check_known(
    file: _File, row: dict[str, Any], known: tuple[str, ...], what: str, *path: str | int
) -> None:
    """Refuse unknown keys of ``row``, which is at ``path``."""
    for key in row:
        if key not in known:
            message = f"{what} has an unknown key {shown(key)}"
            raise file.mistake(message, choices(key, known), *path, key)


def _measurement(file: _File, number: int, folder: Path, row: Any) -> Measurement:
    path = ("runs", number)
    if not isinstance(row, dict) or not isinstance(row.get("file"), str):
        message = "a run does not name the file of its program"
        raise file.mistake(message, f"write {_EXAMPLE}", *path, "file")
    name = row["file"]
    _check_known(file, row, tuple(_KEYS), f"the run of {name}", *path)
    for key, (is_right, example) in _KEYS.items():
        if key in row and not is_right(row[key]):
            message = f"{key} of the run of {name} is {shown(row[key])}"
            raise file.mistake(message, f"write {example}", *path, key)
    if ("step_seconds" in row) == ("profile" in row):
        message = f"the run of {name} has {'both' if 'profile' in row else 'no'} step_seconds"
        message += " and a profile" if "profile" in row else ", and no profile of it"
        hint = " or ".join(_KEYS[key][1] for key in ("step_seconds", "profile"))
        raise file.mistake(message, f"write {hint}", *path)
    text = files.read(folder / name)
    module = Module.parse(text, filename=str(folder / name))
    seconds = row.get("step_seconds")
    if seconds is None:
        seconds = _profiled(file, folder / row["profile"], text, *path, "profile")
    options = {key: row[key] for key in _OPTIONS if key in row}
    local = local_program(module, row.get("policy", "xla"))
    return Measurement(name, local, float(seconds), options, row.get("held_out", False))


def _profiled(file: _File, trace: Path, text: bytes, *path: str | int) -> float:
    """The step of the program ``text`` in a trace: of the module of its name, or, if it has none,
    of the one that ran longest."""
    profile = read_profile(trace)
    named = _MODULE.search(text)
    known = sorted(profile.steps, key=lambda each: sum(profile.steps[each]), reverse=True)
    name = named[1].decode() if named else next(iter(known), "")
    seconds = profile.step_seconds(name)
    if seconds is None or not SHORTEST <= seconds < LONGEST:
        message = f"{trace} has no run of {name or 'any module'}"
        hint = f"it has runs of {', '.join(known)}" if known else 'write "step_seconds" instead'
        raise file.mistake(message, hint, *path)
    return seconds
