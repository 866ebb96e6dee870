"""``shardcore completion``: scripts with which a shell completes commands and flags."""

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
    """The possible values: ``None`` for a flag without a value, empty if it takes any value."""


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
    known = {name: list(flags(name, each)) for name, each in commands.choices.items()}
    known["opt"] = opt_flags()
    words = {
        name: tuple(map(str, action.choices))
        for name, each in commands.choices.items()
        for action in each._actions
        if action.choices is not None and not action.option_strings
    }
    print_text(SHELLS[options.shell](Commands(about, known, words)))
    return 0


@dataclass(frozen=True)
class Commands:
    """The words that the scripts complete, by command."""

    about: dict[str, str]
    flags: dict[str, list[Flag]]
    words: dict[str, tuple[str, ...]]
    """The words that a command takes in place of a file."""


def flags(command: str, parser: argparse.ArgumentParser) -> Iterator[Flag]:
    """Yield the flags of a command."""
    from shardcore.calculus.hardware import hardware_names
    from shardcore.cli.compare import STRATEGIES
    from shardcore.partition.policies import POLICIES

    # Several of these may be given, separated by commas.
    lists = {("cost", "--policy"): POLICIES, ("compare", "--strategy"): STRATEGIES}
    for action in parser._actions:
        if not action.option_strings:
            continue
        values: Sequence[str] | None = None
        if "--hardware" in action.option_strings:
            values = hardware_names()
        elif (command, action.option_strings[-1]) in lists:
            values = lists[command, action.option_strings[-1]]
        elif action.nargs != 0:
            values = [] if action.choices is None else list(map(str, action.choices))
        text = (action.help or "").replace("%%", "%").split(";")[0].split(" [")[0]
        yield Flag(tuple(action.option_strings), text, None if values is None else tuple(values))


def opt_flags() -> list[Flag]:
    """The flags of ``shardcore opt``: the passes and pipelines."""
    from shardcore._core import PassManager

    return [Flag((f"--{name}",), "a pass", None) for name in PassManager.pass_names()]


def bash(commands: Commands) -> str:
    """Return the script for bash."""
    cases, values = [], []
    for command, own in commands.flags.items():
        words = " ".join(name for flag in own for name in flag.names)
        cases.append(f"    {command}) words={shlex.quote(words)} ;;")
        values += [
            f"    {command}:{name}) words={shlex.quote(' '.join(flag.values))} ;;"
            for flag in own
            for name in flag.names
            if flag.values
        ]
    places = [
        f"    {command}:*) [[ $word == -* ]] || words={shlex.quote(' '.join(words))} ;;"
        for command, words in commands.words.items()
    ]
    return "\n".join(
        [
            "_shardcore() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" words=""',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f"    words={shlex.quote(' '.join([*commands.about, '--help', '--version']))}",
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            *places,
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


def zsh(commands: Commands) -> str:
    """Return the script for zsh."""

    def argument(flag: Flag, name: str) -> str:
        text = flag.help.translate(str.maketrans("[]:", "() "))
        value = ""
        if flag.values is not None:
            value = f":value:({' '.join(flag.values)})" if flag.values else ":value:_files"
        return shlex.quote(f"{name}[{text}]{value}")

    cases = []
    for command, own in commands.flags.items():
        arguments = " ".join(argument(flag, name) for flag in own for name in flag.names)
        words = commands.words.get(command)
        rest = shlex.quote(f"*:value:({' '.join(words)})" if words else "*:file:_files")
        cases.append(f"    {command}) _arguments {arguments} {rest} ;;")
    described = " ".join(
        shlex.quote(f"{name}:{text.replace(':', ' ')}") for name, text in commands.about.items()
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


def fish(commands: Commands) -> str:
    """Return the script for fish."""
    lines = []
    for command, text in commands.about.items():
        first = "complete -c shardcore -n __fish_use_subcommand -f"
        lines.append(f"{first} -a {command} -d {_in_fish(text)}")
    for command, own in commands.flags.items():
        when = f"complete -c shardcore -n '__fish_seen_subcommand_from {command}'"
        if command in commands.words:
            lines.append(f"{when} -f -a {_in_fish(' '.join(commands.words[command]))}")
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


SHELLS: dict[str, Callable[[Commands], str]] = {
    "bash": bash,
    "fish": fish,
    "zsh": zsh,
}
"""For each shell, the function that makes the script."""
