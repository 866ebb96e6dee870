"""Configurations of MaxText: files and settings, over the sizes of a model, over the defaults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from shardcore.bounded import shown
from shardcore.calculus.mistakes import choices
from shardcore.errors import Diagnostic, LoweringError, Place, place_of
from shardcore.files import read
from shardcore.maxtext import facts

CODE = "maxtext-config"
SETTING = "--set"
"""The name that errors give to a setting on the command line, in place of a file."""

_MOST_BYTES = 1 << 20
_MOST_FILES = 8
_LARGEST = 1 << 31


class Given(NamedTuple):
    """A value that the user gave, with its position."""

    value: Any
    filename: str
    place: Place | None


@dataclass(frozen=True)
class Config:
    """The values of all keys; the given ones with their positions."""

    values: Mapping[str, Any]
    given: Mapping[str, Given] = field(default_factory=dict)
    model_keys: frozenset[str] = frozenset()
    """Keys that the model sets."""
    overruled: tuple[str, ...] = ()
    """Keys of files that the model's values override, as in MaxText."""

    def error(self, key: str, message: str, hint: str | None = None) -> LoweringError:
        """Return an error about ``key``."""
        given = self.given.get(key)
        where = (None, None) if given is None else (given.filename, given.place)
        return LoweringError(Diagnostic(CODE, message, hint, *where))

    def number(self, key: str, least: int = 1) -> int:
        """Return the integer of ``key``, at least ``least``.

        Raises:
            LoweringError: the value is no such integer.
        """
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"{key} is {shown(value)}, not an integer")
        if not least <= value < _LARGEST:
            raise self.error(key, f"{key} is {shown(value)}, not from {least} to {_LARGEST - 1}")
        return value

    def real(self, key: str) -> float:
        """Return the number of ``key``, which has to be positive.

        Raises:
            LoweringError: the value is no such number.
        """
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"{key} is {shown(value)}, not a number")
        if not (0 < value < _LARGEST) or math.isnan(value):
            raise self.error(key, f"{key} is {shown(value)}, not a positive number")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return the boolean of ``key``.

        Raises:
            LoweringError: the value is no boolean.
        """
        value = self.values[key]
        if not isinstance(value, bool):
            raise self.error(key, f"{key} is {shown(value)}, not true or false")
        return value

    def text(self, key: str, known: Iterable[str] | None = None) -> str:
        """Return the string of ``key``, one of ``known``.

        Raises:
            LoweringError: the value is none of these.
        """
        value = self.values[key]
        if not isinstance(value, str):
            raise self.error(key, f"{key} is {shown(value)}, not a string")
        if known is not None and value not in (names := list(known)):
            hint = choices(value, names)
            raise self.error(key, f"{key} {shown(value)} is not modelled", hint)
        return value


def read_config(path: str | Path, settings: Iterable[str] = ()) -> Config:
    """Read the file at ``path``, overridden by ``settings``, each ``key=value``.

    Raises:
        LoweringError: PyYAML is not installed, the text is no YAML, a key is unknown, or a setting
            contradicts the model (``maxtext-config``).
        OSError: a file cannot be read.
    """
    given = _with_bases(Path(path))
    for setting in settings:
        given.update(_setting(setting))
    unknown = [
        Diagnostic(
            CODE, f"MaxText has no key {shown(key)}", choices(key, facts.defaults()), *each[1:]
        )
        for key, each in given.items()
        if key not in facts.defaults()
    ]
    if unknown:
        raise LoweringError(unknown)
    return _resolved(given)


def _resolved(given: dict[str, Given]) -> Config:
    own = Config({**facts.defaults(), **{key: each.value for key, each in given.items()}}, given)
    known = ["default", *facts.models()]
    # Instruction-tuned models have the sizes of their base models.
    name = own.text("model_name").replace("-Instruct", "")
    if name not in known:
        own.text("model_name", known)
    model = facts.models().get(name, {})
    differ = [key for key in given if key in model and given[key].value != model[key]]
    is_override = own.flag("override_model_config")
    for key in differ:
        if given[key].filename == SETTING and not is_override:
            hint = "set override_model_config=true to change it"
            raise own.error(key, f"{name} sets {key}", hint)
    overruled = tuple(key for key in differ if given[key].filename != SETTING)
    values = {**facts.defaults(), **model}
    values.update({key: each.value for key, each in given.items() if key not in overruled})
    return Config(values, given, frozenset(model), overruled)


def _with_bases(path: Path) -> dict[str, Given]:
    """The values in the file and in its base configurations; MaxText's base.yml is built in."""
    found: dict[str, Given] = {}
    for _ in range(_MOST_FILES):
        text = _decoded(read(path, _MOST_BYTES), str(path))
        own = _mapping(text, str(path))
        found = {**own, **found}
        base = own.get("base_config")
        if base is None or not base.value or str(base.value).split("/")[-1] == "base.yml":
            return found
        if not isinstance(base.value, str) or "\0" in base.value:
            raise Config({}, own).error("base_config", "base_config is not the name of a file")
        path = path.parent / base.value
    raise Config({}, own).error("base_config", f"more than {_MOST_FILES} files on each other")


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the text is not UTF-8 at byte {error.start}"
        raise LoweringError(Diagnostic(CODE, message, None, name)) from None


def _setting(setting: str) -> dict[str, Given]:
    key, equals, value = setting.partition("=")
    place = place_of(setting, 0, max(len(setting), 1))
    if not equals or not key.strip():
        message = f"{shown(setting)} is no setting"
        raise LoweringError(Diagnostic(CODE, message, "write key=value", SETTING, place))
    key = key.strip()
    # The value of a setting is YAML, as in the file.
    [(_, found)] = _mapping(f"value: {value}", SETTING, keys=1).items()
    return {key: Given(_converted(key, found.value), SETTING, place)}


def _mapping(text: str, name: str, keys: int | None = None) -> dict[str, Given]:
    """The keys and values of a YAML text; the position of a value is that of its key."""
    try:
        import yaml
    except ModuleNotFoundError:
        message = "configurations of MaxText are YAML, and PyYAML is not installed"
        raise LoweringError(Diagnostic(CODE, message, "pip install 'shardcore[maxtext]'")) from None

    def wrong(message: str, start: int | None = None, hint: str | None = None) -> LoweringError:
        place = None if start is None else place_of(text, start, start + 1)
        return LoweringError(Diagnostic(CODE, message, hint, name, place))

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise wrong("a configuration is a mapping of keys to values", node.start_mark.index)
        found: dict[str, Given] = {}
        for key, value in node.value:
            start, end = key.start_mark.index, key.end_mark.index
            if not isinstance(key, yaml.ScalarNode):
                raise wrong("a key is a name", start)
            if key.value in found:
                raise wrong(f"{shown(key.value)} is given twice", start)
            made = _converted(key.value, loader.construct_object(value, deep=True))
            found[key.value] = Given(made, name, place_of(text, start, end))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise wrong(f"not YAML: {problem or error}", None if mark is None else mark.index) from None
    except RecursionError:
        raise wrong("the text is nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, LoweringError):
            raise
        raise wrong(f"not YAML: {error}") from None
    if keys is not None and len(found) != keys:
        raise wrong(f"expected one value, got {shown(text)}")
    return found


def _converted(key: str, value: Any) -> Any:
    """``value`` as MaxText reads it: numbers like 1e-5, which are strings in YAML 1.1."""
    default = facts.defaults().get(key)
    if isinstance(value, str) and isinstance(default, bool) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and isinstance(default, int | float):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float) and type(default) is int and value.is_integer():
        return int(value)
    return value
