"""The command line: ``shardcore propagate``, ``shardcore opt`` and others, each in its own file.

A user's mistake is printed to standard error with its position in the text. The exit code is then
1; it is 2 for a mistake in the command line itself.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import shardcore
from shardcore.cli.options import HelpFormatter, Parser
from shardcore.cli.streams import flush_or_drop, prepare, print_error
from shardcore.controls import visible
from shardcore.errors import PipelineError, ShardcoreError

EXAMPLES = """\
examples:
  shardcore propagate model.mlir                  a table of all values
  shardcore propagate model.mlir --json -o done.mlir
                                                  JSON; the program to a file
  shardcore opt model.mlir --sdy-propagation-pipeline
  shardcore opt --help                            the passes
  shardcore cost model.mlir --hardware tpu-v5p    time, memory, collectives
  shardcore cost old.mlir new.mlir --hardware h100
                                                  what changed, by line
  shardcore bench steps --chip tpu-v6e             measured steps, and ours
  shardcore maxtext config.yml --set per_device_batch_size=4
                                                  a step of MaxText
  shardcore measure -o mine.toml                  the chip at hand, for costs
  shardcore diff old.mlir new.mlir --markdown     what a pull request changes
  shardcore compare model.mlir --strategy basic,aggressive
  shardcore partition model.mlir --prove          the program of one device,
                                                  proven by running it
  shardcore report model.mlir -o out.html         a page for a browser
  shardcore why model.mlir '%12'                  where its axes come from
  shardcore why model.mlir model.py:42            those of what a line made
  shardcore doctor model.mlir                     a page to paste into an issue
  shardcore explain dump.txt --program model.mlir  where the collectives of a
                                                  compiled program come from
  shardcore steps model.mlir                      which visit changed what
  shardcore graph model.mlir -o out.svg           the computation graph, drawn
  shardcore sweep model.mlir --set '%arg0=[{"x"}, {}]|[{}, {"x"}]' \\
      --hardware tpu-v5e
  shardcore plan model.mlir --devices 32 --hardware tpu-v5e
                                                  the best shardings, found
  shardcore pipeline model.mlir --hardware tpu-v5p
                                                  stages and a schedule
  shardcore remat model.py:build --hardware h100
                                                  what layers keep
  shardcore check model.mlir --expect expected.toml
  shardcore mcp                                   a server for agents, editors
  shardcore show '[{"x"}, {"y"}]' --mesh x=2,y=4
  shardcore array 'bf16[B=1024_X, D=4096_Y]' --mesh X=4,Y=8 --blocks
  shardcore collective all_gather --array 'bf16[2048_Y, 8192]' --axes Y \\
      --mesh X=8,Y=4 --hardware tpu-v5e
  shardcore matmul 'A[I, J_X] * B[J, K] -> C[I, K]' \\
      --sizes I=128,J=8192,K=32768 --dtype bf16 --mesh X=4,Y=4 \\
      --hardware tpu-v5e

A program is StableHLO text, as given by
jax.jit(f, in_shardings=...).lower(...).as_text(), or model.py:build, a function
without arguments that returns a function and its arguments:
(step, (state, batch), {"mesh": {"data": 8}}), with the options of
shardcore.jax.lower.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (the process's own by default) and return the exit code."""
    prepare()
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()
    except ShardcoreError as error:
        print_error(str(error))
        return 2 if isinstance(error, PipelineError) else 1
    except BrokenPipeError:
        # The reader of the output has closed it.
        flush_or_drop(sys.stdout)
        return 141
    except OSError as error:
        flush_or_drop(sys.stdout)
        name = "-" if error.filename is None else os.fsdecode(error.filename)
        print_error(visible(f"error[io]: {name}: {error.strerror or error}"))
        return 1
    except UnicodeError as error:
        print_error(f"error[not-utf-8]: {_not_utf8(error)}")
        return 2
    except MemoryError:
        print_error("error[out-of-memory]: the program needs more memory than there is")
        return 1
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130


def _run(arguments: list[str]) -> int:
    """Run the command that ``arguments`` name and return the exit code."""
    if arguments[:1] == ["opt"]:
        from shardcore.cli import opt

        return opt.run(arguments[1:])
    parser = _parser()
    if arguments and not arguments[0].startswith("-"):
        check_command(parser, arguments[0])
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(_commands(parser).choices.get(arguments[0], parser), unknown)
    command: Callable[[argparse.Namespace], int] = options.command
    return command(options)


def _refuse(parser: argparse.ArgumentParser, unknown: list[str]) -> NoReturn:
    """Exit with code 2, the usage of the command, and the option that was probably meant."""
    from shardcore.calculus.mistakes import close_names

    message = f"unrecognized arguments: {' '.join(unknown)}"
    name = next((each.partition("=")[0] for each in unknown if each.startswith("--")), "")
    near = close_names(name, parser._option_string_actions, 1) if name else []
    parser.error(f"{message}: did you mean {near[0]}?" if near else message)


def check_command(parser: Parser, name: str) -> None:
    """Unless ``name`` is a command, exit with code 2 and the command that was probably meant."""
    commands = _commands(parser)
    if name not in commands.choices:
        # The calculus is imported here, as the command line does not import it.
        from shardcore.bounded import shown
        from shardcore.calculus.mistakes import choices

        parser.error(f"no command is called {shown(name)}: {choices(name, commands.choices)}")


def _commands(parser: Parser) -> argparse._SubParsersAction[Parser]:
    """The commands of ``parser``."""
    [commands] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    return commands


def _not_utf8(error: UnicodeError) -> str:
    """The message about a command-line argument that is not UTF-8."""
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object.encode('utf-8', 'backslashreplace').decode()} is not UTF-8"
    return str(error)


def _parser() -> Parser:
    from shardcore.cli import (
        array,
        bench,
        calibrate,
        check,
        collective,
        compare,
        completion,
        cost,
        diff,
        doctor,
        explain,
        explain_time,
        graph,
        matmul,
        maxtext,
        mcp,
        measure,
        partition,
        pipeline,
        plan,
        propagate,
        remat,
        report,
        show,
        steps,
        sweep,
        why,
    )

    parser = Parser(
        prog="shardcore",
        description="Complete the sharding of every value of a tensor program, as Shardy does;\n"
        "compute costs of programs, collectives and sharded products.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"shardcore {shardcore.__version__}")
    commands = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
    propagate.add(commands)
    # `opt` takes passes as flags, in order, so it parses its own arguments; this is for --help.
    commands.add_parser("opt", help="run passes on a program, as sdy_opt does", add_help=False)
    cost.add(commands)
    calibrate.add(commands)
    measure.add(commands)
    bench.add(commands)
    maxtext.add(commands)
    compare.add(commands)
    diff.add(commands)
    partition.add(commands)
    report.add(commands)
    sweep.add(commands)
    plan.add(commands)
    pipeline.add(commands)
    remat.add(commands)
    why.add(commands)
    doctor.add(commands)
    explain.add(commands)
    explain_time.add(commands)
    steps.add(commands)
    graph.add(commands)
    array.add(commands)
    collective.add(commands)
    matmul.add(commands)
    check.add(commands)
    show.add(commands)
    mcp.add(commands)
    completion.add(commands, parser)
    return parser
