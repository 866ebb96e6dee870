"""The command line: ``shardcore propagate``, ``shardcore opt`` and the rest, a file each.

A user mistake is printed to standard error with its place in the text; the exit code is then 1, and
2 for a mistake in the command line itself.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence

import shardcore
from shardcore.cli.options import HelpFormatter
from shardcore.errors import PipelineError, ShardcoreError

EXAMPLES = """\
examples:
  shardcore propagate model.mlir                     a table of all values
  shardcore propagate model.mlir --json -o done.mlir JSON; the program to a file
  shardcore opt model.mlir --sdy-propagation-pipeline
  shardcore opt --help                               the passes
  shardcore cost model.mlir --hardware tpu-v5p       time, memory, collectives of one device
  shardcore cost old.mlir new.mlir --hardware h100   what changed, by line
  shardcore partition model.mlir --prove             the program of one device, proven by running it
  shardcore check model.mlir --expect expected.toml
  shardcore show '[{"x"}, {"y"}]' --mesh x=2,y=4
  shardcore array 'bf16[B=1024_X, D=4096_Y]' --mesh X=4,Y=8 --blocks
  shardcore collective all_gather --array 'bf16[2048_Y, 8192]' --axes Y --mesh X=8,Y=4 \\
      --hardware tpu-v5e
  shardcore matmul 'A[I, J_X] * B[J, K] -> C[I, K]' --sizes I=128,J=8192,K=32768 \\
      --dtype bf16 --mesh X=4,Y=4 --hardware tpu-v5e

A program is StableHLO text as jax.jit(f, in_shardings=...).lower(...).as_text() gives it.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (the process's own by default) and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if arguments[:1] == ["opt"]:
        from shardcore.cli import opt

        return _guarded(lambda: opt.run(arguments[1:]))
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
    from shardcore.cli import (
        array,
        check,
        collective,
        cost,
        matmul,
        partition,
        propagate,
        show,
    )

    parser = argparse.ArgumentParser(
        prog="shardcore",
        description="Complete the sharding of every value of a tensor program, as Shardy does; "
        "reckon with sharded arrays.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"shardcore {shardcore.__version__}")
    commands = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
    propagate.add(commands)
    # `opt` takes passes as flags, in order, so it reads its own arguments; this is for --help.
    commands.add_parser("opt", help="run passes on a program, as sdy_opt does", add_help=False)
    cost.add(commands)
    partition.add(commands)
    array.add(commands)
    collective.add(commands)
    matmul.add(commands)
    check.add(commands)
    show.add(commands)
    return parser
