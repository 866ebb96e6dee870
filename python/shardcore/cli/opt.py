"""``shardcore opt``: runs passes on a program, like ``sdy_opt``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import shardcore
from shardcore.cli.options import HelpFormatter, Parser, add_shardy, progress_bar, read_text, write


def run(arguments: Sequence[str]) -> int:
    """Run the command on its own arguments and return the exit code."""
    parser = Parser(
        prog="shardcore opt",
        usage="%(prog)s [FILE] [--PASS[=OPTIONS] ... | --pass-pipeline PIPELINE] [-o FILE] "
        "[--split-input-file] [--verify-each]",
        description="Run passes on a program, in the order of their flags, as sdy_opt does:\n"
        "  shardcore opt a.mlir --sdy-propagation-pipeline\n"
        "  shardcore opt a.mlir --sdy-basic-propagate='conservative-propagation=true'\n"
        "Without passes the program is checked and printed.",
        epilog="\n  ".join(["passes and pipelines:", *shardcore.PassManager.pass_names()]),
        formatter_class=HelpFormatter,
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
    parser.add_argument(
        "--import-hlo-shardings",
        action="store_true",
        help="first turn mhlo.sharding strings into sdy shardings",
    )
    parser.add_argument(
        "--verify-each", action="store_true", help="verify the program after each pass"
    )
    add_shardy(parser)
    options, flags = parser.parse_known_args(arguments)
    passes, unknown = _pass_flags(flags, options.shardy)
    if unknown:
        if options.file == "-" and len(unknown) == 1 and not unknown[0].startswith("-"):
            options.file = unknown[0]
        else:
            # For an unknown flag that resembles a pass, the error suggests a pass.
            shardcore.PassManager.from_flags(
                [flag for flag in unknown if flag.startswith("-")], shardy=options.shardy
            )
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.pass_pipeline is not None and passes:
        parser.error("--pass-pipeline cannot be used together with pass flags")
    if options.pass_pipeline is not None:
        manager = shardcore.PassManager.parse(options.pass_pipeline, shardy=options.shardy)
    else:
        manager = shardcore.PassManager.from_flags(passes, shardy=options.shardy)
    manager.enable_verifier(options.verify_each)
    text, name = read_text(options.file)
    pieces = _split(text) if options.split_input_file else [text]
    outputs = []
    with progress_bar() as progress:
        for piece in pieces:
            module = shardcore.Module.parse(piece, filename=name, shardy=options.shardy)
            if options.import_hlo_shardings:
                module = shardcore.import_hlo_shardings(module)
            manager.run(module, progress=progress)
            outputs.append(str(module))
    write(options.output, "\n// -----\n".join(outputs))
    return 0


def _pass_flags(flags: Iterable[str], shardy: str | None) -> tuple[list[str], list[str]]:
    """Split flags into those that are passes of ``shardy``, and others."""
    known = shardcore.PassManager.pass_names(shardy=shardy)
    passes: list[str] = []
    unknown: list[str] = []
    for flag in flags:
        name = flag.lstrip("-").partition("=")[0]
        is_pass = flag.startswith("-") and name in known
        (passes if is_pass else unknown).append(flag)
    return passes, unknown


def _split(text: bytes) -> list[bytes]:
    """Split at separator lines; blank lines are added before each piece to keep its line
    numbers."""
    pieces: list[bytes] = []
    current: list[bytes] = []
    for number, line in enumerate(text.split(b"\n")):
        if line.startswith(b"// -----"):
            pieces.append(b"\n".join(current))
            current = [b""] * (number + 1)
        else:
            current.append(line)
    pieces.append(b"\n".join(current))
    return pieces
