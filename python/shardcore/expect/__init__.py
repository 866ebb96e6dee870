"""Expectations of a result, for CI: ``shardcore check`` and ``result.check``.

==========================  ====================================================================
:mod:`~.schema`             the form of expectations
:mod:`~.sharding_text`      shardings, as in ``sdy`` or as in JAX
:mod:`~.subjects`           the values that a name denotes
:mod:`~.compare`            finds expectations that do not hold
:mod:`~.report`             :class:`Check`, the result of a comparison
:mod:`~.update`             updates a file of expectations
:mod:`~.toml_places`        places of keys and values in a TOML file
:mod:`~.golden`             MaxText's golden files of shardings
:mod:`~.mistakes`           mistakes in expectations
==========================  ====================================================================
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from shardcore import expected, files
from shardcore._core import Result
from shardcore.errors import Diagnostic, ExpectationError, Place
from shardcore.expect import golden
from shardcore.expect.golden import is_golden
from shardcore.expect.mistakes import Mistakes
from shardcore.expect.report import Check, Failure
from shardcore.expect.toml_places import Places, places

if TYPE_CHECKING:
    from shardcore.expect.compare import Comparison

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Check", "Failure", "check"]

_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)\Z")


def check(
    result: Result, expect: str | PathLike[str] | Mapping[str, Any], update: bool = False
) -> Check:
    """Compare ``result`` with ``expect``: a TOML file, a mapping of the same form, or a golden file
    of MaxText (see :mod:`shardcore.expect.golden`).

    With ``update``, actual values are written to the file where expectations fail; see
    :mod:`shardcore.expect.update`. A missing file is created.

    Raises:
        ExpectationError: the expectations are malformed; ``.diagnostics`` lists all mistakes.
        OSError: the file cannot be read or written.
        TypeError: ``result`` is no :class:`shardcore.Result`.
    """
    expected.expect(result, Result)
    if isinstance(expect, Mapping):
        if update:
            message = "only a file of expectations can be updated"
            hint = "give its name"
            raise ExpectationError(Diagnostic("invalid-expectation", message, hint))
        return _answer(_comparison(result, expect, "expectations", None), "expectations", None)
    filename = fspath(expect)
    if update and is_golden(filename):
        message = f"{filename} is a golden file of MaxText, which is not updated here"
        hint = "MaxText writes it; give another file to --update"
        raise ExpectationError(Diagnostic("invalid-expectation", message, hint))
    if not update:
        data, found = _load(files.read(filename, files.MAX_TABLE_BYTES), filename)
        return _answer(_comparison(result, data, filename, found), filename, found)
    return _update(result, filename)


def _update(result: Result, filename: str) -> Check:
    """Update the file, and compare again."""
    from shardcore.expect.update import new_text, updated

    # A device or a FIFO has no text to update.
    has_text = os.path.exists(filename) and files.is_regular(filename)
    data, found = _load(files.read(filename, files.MAX_TABLE_BYTES) if has_text else b"", filename)
    comparison = _comparison(result, data, filename, found)
    if comparison.num_expectations:
        text, keys = updated(comparison, comparison.failures(), found)
    else:
        separator = "" if not found.text or found.text.endswith("\n") else "\n"
        text, keys = found.text + separator + new_text(comparison), ["everything"]
    data, found = _load(text.encode(), filename)
    answer = _answer(_comparison(result, data, filename, found), filename, found)
    if keys:
        files.write(filename, text)
    return replace(answer, updated=tuple(keys))


def _comparison(
    result: Result, data: Mapping[str, Any], filename: str, found: Places | None
) -> Comparison:
    # Needs the calculus, which the package does not import.
    from shardcore.expect.compare import Comparison
    from shardcore.expect.schema import expectations

    mistakes = Mistakes(filename, found)
    expected = expectations(data, mistakes)
    mistakes.check()
    return Comparison(result, expected)


def _answer(comparison: Comparison, filename: str, found: Places | None) -> Check:
    failures = []
    for failure in comparison.failures():
        span = None if found is None else found.best(failure.path)
        if found is not None and span is not None:
            failure = replace(failure, line=found.text.count("\n", 0, span[0]) + 1)
        failures.append(failure)
    return Check(tuple(failures), comparison.num_expectations, filename)


def _load(data: bytes, filename: str) -> tuple[dict[str, Any], Places]:
    """The expectations in a file, and their positions.

    Raises:
        ExpectationError: the file is not TOML (``expectation-syntax``), or as for
            :func:`golden.read`.
    """
    try:
        text = data.decode()
        if is_golden(filename):
            return golden.read(text, filename)
        return tomllib.loads(text), places(text)
    except ExpectationError:
        raise
    except UnicodeDecodeError as error:
        message = f"{filename} is not UTF-8: byte {error.start} is 0x{data[error.start]:02X}"
        raise ExpectationError(
            Diagnostic("expectation-syntax", message, "save it as UTF-8")
        ) from None
    # Not only TOMLDecodeError: numbers may have too many digits, arrays too many levels.
    except (ValueError, RecursionError) as error:
        raise ExpectationError(_syntax(str(error), text, filename)) from None


def _syntax(message: str, text: str, filename: str) -> Diagnostic:
    """The error of the TOML parser, with its position."""
    lines = text.split("\n")
    position = _POSITION.search(message)
    line, column = (int(part) for part in position.groups()) if position else (len(lines), 1)
    source = lines[min(line, len(lines)) - 1].rstrip("\r")
    return Diagnostic(
        "expectation-syntax",
        f"it is not TOML: {_POSITION.sub('', message).removesuffix(' (at end of document)')}",
        "names with dots, brackets or quotes stand in quotes: \"params['w']\" = ...",
        filename,
        Place(line, column, column + 1, source),
    )
