"""The command line: ``shardcore propagate`` and ``shardcore opt``.

Every command reads MLIR text from a file, or from standard input if the file is ``-``. A user
mistake is printed to standard error with its place in the text; the exit code is then 1, and 2 for
a mistake in the command line itself.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import shardcore
from shardcore.errors import PipelineError, ShardcoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = """\
examples:
  shardcore propagate model.mlir                     a table of all values
  shardcore propagate model.mlir --json -o done.mlir JSON; the program to a file
  shardcore opt model.mlir --sdy-propagation-pipeline
  shardcore opt --help                               the passes

A program is StableHLO text as jax.jit(f, in_shardings=...).lower(...).as_text() gives it.
"""

PROGRESS_AFTER_SECONDS = 1.0
"""Work shorter than this shows no progress bar."""
REDRAW_SECONDS = 0.1
"""The bar is drawn at most that often."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps line ends, and has room for names beside what they mean."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (the process's own by default) and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if arguments[:1] == ["opt"]:
        return _guarded(lambda: _opt(arguments[1:]))
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    return _guarded(lambda: command(options))


def _guarded(command: Callable[[], int]) -> int:
    """Run ``command``; show a user mistake instead of a traceback."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except ShardcoreError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, PipelineError) else 1
    except BrokenPipeError:
        # Whoever read the output has seen enough; keep the interpreter from saying so at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"error[io]: {error.filename or '-'}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shardcore",
        description="Complete the sharding of every value of a tensor program, as Shardy does.",
        epilog=EXAMPLES,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"shardcore {shardcore.__version__}")
    commands = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")

    propagate = commands.add_parser(
        "propagate",
        help="complete the shardings of a program and show them",
        description="Complete the shardings of a StableHLO program and show them as a table: each "
        "value with its sharding, the shape and the bytes that a device holds, and the place in "
        "the source; then how much is sharded, and over which axes.",
    )
    propagate.set_defaults(command=_propagate)
    propagate.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    propagate.add_argument(
        "-o", "--output", metavar="FILE", help="write the program here (- is standard output)"
    )
    propagate.add_argument("--json", action="store_true", help="print JSON instead of the table")
    propagate.add_argument(
        "--limit",
        type=_count,
        default=60,
        metavar="N",
        help="rows to show at most; 0 shows all [60]",
    )
    propagate.add_argument(
        "--up-to-priority",
        type=_count,
        metavar="P",
        help="stop after user priority P",
    )
    propagate.add_argument(
        "--keep-sub-axes-on-io",
        action="store_true",
        help="keep on arguments and results what the export trims: sub-axes, and axes that do not "
        "divide",
    )

    # `opt` takes passes as flags, in order, so it reads its own arguments; this is for --help.
    commands.add_parser("opt", help="run passes on a program, as sdy_opt does", add_help=False)
    return parser


def _count(text: str) -> int:
    """A number that is not negative."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r}")
    return int(text)


def _read(path: str) -> tuple[str | bytes, str]:
    """The text of ``path`` and the name it goes by in errors."""
    if path == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    return Path(path).read_bytes(), path


def _write(path: str, text: str) -> None:
    """Write ``text`` to ``path``, or to standard output for ``-``."""
    if path == "-":
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        Path(path).write_text(text, encoding="utf-8")


def _propagate(options: argparse.Namespace) -> int:
    if options.json and options.output == "-":
        _parser().error("--json and -o - both want standard output")
    text, name = _read(options.file)
    module = shardcore.Module.parse(text, filename=name)
    with _progress_bar() as progress:
        start = time.perf_counter()
        result = module.propagate(
            up_to_priority=options.up_to_priority,
            keep_sub_axes_on_io=options.keep_sub_axes_on_io,
            progress=progress,
        )
        seconds = time.perf_counter() - start
    if options.output:
        _write(options.output, str(result.module))
    if options.json:
        from shardcore.report.records import record

        json.dump(record(result), sys.stdout, indent=1)
        sys.stdout.write("\n")
    elif options.output != "-":
        from shardcore.report.table import print_result

        print_result(result, limit=options.limit, seconds=seconds)
    return 0


def _opt(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="shardcore opt",
        usage="%(prog)s [FILE] [--PASS[=OPTIONS] ... | --pass-pipeline PIPELINE] [-o FILE] "
        "[--split-input-file]",
        description="Run passes on a program, in the order of their flags, as sdy_opt does:\n"
        "  shardcore opt a.mlir --sdy-propagation-pipeline\n"
        "  shardcore opt a.mlir --sdy-basic-propagate='conservative-propagation=true'\n"
        "Without passes the program is checked and printed.",
        epilog="\n  ".join(["passes and pipelines:", *shardcore.PassManager.pass_names()]),
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="MLIR text; - is standard input [-]"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="where the result goes [-]"
    )
    parser.add_argument(
        "--pass-pipeline", metavar="PIPELINE", help="a textual pipeline, builtin.module(...)"
    )
    parser.add_argument(
        "--split-input-file",
        action="store_true",
        help="treat pieces between lines of // ----- as programs of their own",
    )
    options, flags = parser.parse_known_args(arguments)
    passes, unknown = _pass_flags(flags)
    if unknown:
        if options.file == "-" and len(unknown) == 1 and not unknown[0].startswith("-"):
            options.file = unknown[0]
        else:
            # What looks like a pass says which pass it may have been meant to be.
            shardcore.PassManager.from_flags([flag for flag in unknown if flag.startswith("-")])
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.pass_pipeline is not None and passes:
        parser.error("--pass-pipeline cannot be used together with pass flags")
    if options.pass_pipeline is not None:
        manager = shardcore.PassManager.parse(options.pass_pipeline)
    else:
        manager = shardcore.PassManager.from_flags(passes)
    text, name = _read(options.file)
    source = text.decode("utf-8", errors="surrogateescape") if isinstance(text, bytes) else text
    pieces = _split(source) if options.split_input_file else [source]
    outputs = []
    with _progress_bar() as progress:
        for piece in pieces:
            module = shardcore.Module.parse(
                piece.encode("utf-8", errors="surrogateescape"), filename=name
            )
            manager.run(module, progress=progress)
            outputs.append(str(module))
    _write(options.output, "\n// -----\n".join(outputs))
    return 0


def _pass_flags(flags: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split flags that name passes from what is not known."""
    passes: list[str] = []
    unknown: list[str] = []
    for flag in flags:
        name = flag.lstrip("-").partition("=")[0]
        known = flag.startswith("-") and name in shardcore.PassManager.pass_names()
        (passes if known else unknown).append(flag)
    return passes, unknown


def _split(text: str) -> list[str]:
    """Split at separator lines; a piece starts with blank lines that keep its line numbers."""
    pieces: list[str] = []
    current: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if line.startswith("// -----"):
            pieces.append("\n".join(current))
            current = [""] * (number + 1)
        else:
            current.append(line)
    pieces.append("\n".join(current))
    return pieces


@contextmanager
def _progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A callback ``(what, fraction)`` that shows a bar once the work takes longer than a second."""
    draw_from = time.perf_counter() + PROGRESS_AFTER_SECONDS
    is_shown = False

    def progress(what: str, fraction: float) -> None:
        nonlocal draw_from, is_shown
        now = time.perf_counter()
        if now < draw_from or not sys.stderr.isatty():
            return
        draw_from = now + REDRAW_SECONDS
        is_shown = True
        done = "#" * round(fraction * 25)
        sys.stderr.write(f"\r{what[:44]:44} [{done:25}] {fraction:4.0%}")
        sys.stderr.flush()

    try:
        yield progress
    finally:
        if is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
