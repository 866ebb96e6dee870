"""The reference: Shardy as jaxlib carries it, asked through jaxlib's own MLIR.

Both sides of a comparison go through `canonical`, so that only what the text *means* is compared.
One MLIR context serves the whole process; inputs that may take the process down with them go
through `run_isolated`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir, passmanager
from shardcore.shardy import default_shardy

PROPAGATION = "builtin.module(sdy-propagation-pipeline)"
IS_NEW = default_shardy() != "0.10"
"""Whether the reference is newer than that of jaxlib 0.10."""
PAD = "sdy-pad-for-divisibility" if IS_NEW else "func.func(sdy-pad-for-divisibility)"
"""The pass that pads, which runs on modules in newer versions."""


class RejectedError(Exception):
    """The reference refuses the input; `diagnostics` holds every message it gave, in order.

    `errors` holds its errors without their notes, each with the line it is at, if it has one.
    """

    def __init__(
        self, diagnostics: list[str], errors: Iterable[tuple[int | None, str]] = ()
    ) -> None:
        super().__init__("\n".join(diagnostics))
        self.diagnostics = diagnostics
        self.errors = list(errors)


class DiedError(Exception):
    """The reference took its process down, or did not finish in time."""


@cache
def context() -> ir.Context:
    """The one MLIR context, with all dialects of a JAX program."""
    made = jax_mlir.make_ir_context()
    # Otherwise an error becomes the text of an exception before a handler sees it.
    made.emit_error_diagnostics = True
    return made


def walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """`op` and the ops in its regions, in pre-order."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation)


@contextmanager
def _diagnostics() -> Iterator[list[str]]:
    """Collects what MLIR says while the block runs; its exceptions become `RejectedError`."""
    said: list[str] = []
    errors: list[tuple[int | None, str]] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        line = re.search(r'"-":(\d+):\d+', str(diagnostic.location))
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            errors.append((int(line[1]) if line else None, diagnostic.message))
        said.append(f"{diagnostic.location}: {diagnostic.message}")
        # A failing verifier adds the whole module as a note.
        notes = (f"{extra.location}: {extra.message}" for extra in diagnostic.notes)
        said.extend(note for note in notes if ": see current operation: " not in note)
        return True

    with context():
        handler = context().attach_diagnostic_handler(note)
        try:
            yield said
        except (ir.MLIRError, RuntimeError, ValueError) as error:
            raise RejectedError(said or [str(error)], errors) from error
        finally:
            handler.detach()


def _print(module: ir.Module, locations: bool = False, generic: bool = False) -> str:
    text = str(module.operation.get_asm(enable_debug_info=locations, print_generic_op_form=generic))
    return _spell_out_locations(text) if locations else text


def _spell_out_locations(text: str) -> str:
    """Puts locations in place of their aliases, whose numbers depend on all the others.

    An op or argument without location gets its position in whatever text was parsed: no location.
    """
    tokens = re.compile(r'"-":\d+:\d+|"(?:[^"\\]|\\.)*"|#loc\d*\b')
    definition = re.compile(r"^(#loc\d*) = loc\((.*)\)\n", re.MULTILINE)
    bodies = dict(definition.findall(text))

    @cache
    def meaning(token: str) -> str:
        if token.startswith('"-":'):
            return "unknown"
        return tokens.sub(spell_out, bodies[token]) if token in bodies else token

    def spell_out(match: re.Match[str]) -> str:
        return meaning(match[0])

    return tokens.sub(spell_out, definition.sub("", text))


NO_EDGES = "#sdy.propagation_edges<[]>"
"""What Shardy since jaxlib 0.12 prints for a data-flow edge without a record, and does not read."""
STAND_IN = '#sdy.propagation_edges<[{step-999999999 = [{"nothing" = operand-0 -> [result-0]}]}]>'


def canonical(text: str, locations: bool = False) -> str:
    """Prints `text` the way jaxlib's MLIR prints it; without source locations unless asked."""
    with _diagnostics():
        printed = _print(ir.Module.parse(text.replace(NO_EDGES, STAND_IN)), locations)
    return printed.replace(STAND_IN, NO_EDGES)


def generic(text: str, locations: bool = False) -> str:
    """Prints `text` with every op in MLIR's generic form."""
    with _diagnostics():
        return _print(ir.Module.parse(text), locations, generic=True)


def run(
    text: str, pipeline: str = PROPAGATION, verify: bool = True, locations: bool = False
) -> str:
    """The canonical print of `text` after `pipeline`.

    `verify` is MLIR's check after every pass; it costs more than the propagation itself.
    """
    with _diagnostics():
        module = ir.Module.parse(text)
        manager = passmanager.PassManager.parse(pipeline)
        manager.enable_verifier(verify)
        manager.run(module.operation)
        return _print(module, locations)


def stages(text: str, passes: list[str], locations: bool = False) -> Iterator[str]:
    """The canonical print of one module after each of `passes` in turn.

    The module is parsed once: text has no place for the order of a value's uses, which steers
    propagation.
    """
    with _diagnostics():
        module = ir.Module.parse(text)
    for one in passes:
        with _diagnostics():
            passmanager.PassManager.parse(join_passes([one])).run(module.operation)
            printed = _print(module, locations)
        yield printed


def run_isolated(
    text: str, pipeline: str = PROPAGATION, verify: bool = True, timeout: float = 60
) -> str:
    """`run` in a fresh process; raises `DiedError` if that process dies or takes too long."""
    command = [sys.executable, "-m", __name__, pipeline, "verify" if verify else "trust"]
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            timeout=timeout,
            cwd=Path(__file__).parents[2],
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DiedError(f"no answer in {timeout} s") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DiedError(f"the process ended with code {done.returncode}: {last}")
    answer = json.loads(done.stdout)
    if "diagnostics" in answer:
        raise RejectedError(answer["diagnostics"])
    return str(answer["text"])


def _answer() -> None:
    """The other side of `run_isolated`: text on standard input, JSON on standard output."""
    pipeline, verify = sys.argv[1:]
    try:
        answer: dict[str, Any] = {"text": run(sys.stdin.read(), pipeline, verify == "verify")}
    except RejectedError as error:
        answer = {"diagnostics": error.diagnostics}
    print(json.dumps(answer))


def expand(pipeline: str = PROPAGATION) -> list[str]:
    """The passes a pipeline consists of, in order, each of them a pipeline element that parses.

    Aliases such as `sdy-propagation-pipeline` are replaced by what they stand for. Passes that only
    write files for debugging are left out: their names are not registered.
    """
    with _diagnostics():
        text = str(passmanager.PassManager.parse(pipeline))
    inner = re.fullmatch(r"\s*builtin\.module\((.*)\)\s*", text, re.DOTALL)
    if inner is None:
        raise ValueError(f"not a pipeline on a module: {text}")
    return [part for part in split_passes(inner[1]) if not part.startswith("sdy-save-module")]


def split_passes(text: str) -> list[str]:
    """Splits a pass list at the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "({<[") - (char in ")}>]")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def join_passes(passes: list[str]) -> str:
    """The pipeline on a module that runs `passes`."""
    return f"builtin.module({','.join(passes)})"


if __name__ == "__main__":
    _answer()
