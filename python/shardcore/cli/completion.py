"""``shardcore completion``: the script that makes a shell complete commands and flags."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shardcore.cli.options import print_text


@dataclass(frozen=True)
class Flag:
    """A flag of a command."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None
    """What it takes: ``None`` for a flag without a value, none for one that takes anything."""


def add(commands: Any, parser: argparse.ArgumentParser) -> None:
    """Add the command to the ``commands`` of ``parser``."""
    own = commands.add_parser(
        "completion",
        help="print the script that completes commands and flags in a shell",
        description='Print a script for a shell. In bash: eval "$(shardcore completion bash)"; '
        'in zsh, after compinit: eval "$(shardcore completion zsh)"; '
        "in fish: shardcore completion fish | source.",
    )
    own.add_argument("shell", choices=sorted(SHELLS))
    own.set_defaults(command=partial(run, parser))


def run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the script for the shell and return the exit code."""
    [commands] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    about = {action.dest: action.help or "" for action in commands._choices_actions}
    known = {name: list(flags(each)) for name, each in commands.choices.items()}
    known["opt"] = opt_flags()
    print_text(SHELLS[options.shell](about, known))
    return 0


def flags(parser: argparse.ArgumentParser) -> Iterator[Flag]:
    """Yield the flags of a command."""
    from shardcore.calculus.hardware import hardware_names

    for action in parser._actions:
        if not action.option_strings:
            continue
        values: Sequence[str] | None = None
        if "--hardware" in action.option_strings:
            values = hardware_names()
        elif action.nargs != 0:
            values = [] if action.choices is None else list(map(str, action.choices))
        text = (action.help or "").replace("%%", "%").split(";")[0].split(" [")[0]
        yield Flag(tuple(action.option_strings), text, None if values is None else tuple(values))


def opt_flags() -> list[Flag]:
    """The flags of ``shardcore opt``: the passes and pipelines."""
    from shardcore._core import PassManager

    return [Flag((f"--{name}",), "a pass", None) for name in PassManager.pass_names()]


def bash(about: dict[str, str], known: dict[str, list[Flag]]) -> str:
    """Return the script for bash."""
    cases, values = [], []
    for command, own in known.items():
        words = " ".join(name for flag in own for name in flag.names)
        cases.append(f"    {command}) words={shlex.quote(words)} ;;")
        values += [
            f"    {command}:{name}) words={shlex.quote(' '.join(flag.values))} ;;"
            for flag in own
            for name in flag.names
            if flag.values
        ]
    return "\n".join(
        [
            "_shardcore() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" words=""',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f"    words={shlex.quote(' '.join([*about, '--help', '--version']))}",
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            "  esac",
            '  if [ -n "$words" ]; then',
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "    return",
            "  fi",
            '  case "$word:${COMP_WORDS[1]}" in',
            "    -*:*) ;;",
            '    *) COMPREPLY=($(compgen -f -- "$word")); return ;;',
            "  esac",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "}",
            "complete -o filenames -F _shardcore shardcore",
        ]
    )


def zsh(about: dict[str, str], known: dict[str, list[Flag]]) -> str:
    """Return the script for zsh."""

    def argument(flag: Flag, name: str) -> str:
        text = flag.help.translate(str.maketrans("[]:", "() "))
        value = ""
        if flag.values is not None:
            value = f":value:({' '.join(flag.values)})" if flag.values else ":value:_files"
        return shlex.quote(f"{name}[{text}]{value}")

    cases = []
    for command, own in known.items():
        arguments = " ".join(argument(flag, name) for flag in own for name in flag.names)
        cases.append(f"    {command}) _arguments {arguments} '*:file:_files' ;;")
    described = " ".join(
        shlex.quote(f"{name}:{text.replace(':', ' ')}") for name, text in about.items()
    )
    return "\n".join(
        [
            "#compdef shardcore",
            "_shardcore() {",
            f"  local -a commands=({described})",
            "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
            '  local command="$words[2]"',
            "  shift words; (( CURRENT-- ))",
            '  case "$command" in',
            *cases,
            "  esac",
            "}",
            "compdef _shardcore shardcore",
        ]
    )


def fish(about: dict[str, str], known: dict[str, list[Flag]]) -> str:
    """Return the script for fish."""
    lines = []
    for command, text in about.items():
        first = "complete -c shardcore -n __fish_use_subcommand -f"
        lines.append(f"{first} -a {command} -d {_in_fish(text)}")
    for command, own in known.items():
        when = f"complete -c shardcore -n '__fish_seen_subcommand_from {command}'"
        for flag in own:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in flag.names
            )
            takes = ""
            if flag.values is not None:
                takes = f" -x -a {_in_fish(' '.join(flag.values))}" if flag.values else " -r"
            lines.append(f"{when} {names}{takes} -d {_in_fish(flag.help)}")
    return "\n".join(lines)


def _in_fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: dict[str, Callable[[dict[str, str], dict[str, list[Flag]]], str]] = {
    "bash": bash,
    "fish": fish,
    "zsh": zsh,
}
"""What prints the script, by shell."""
