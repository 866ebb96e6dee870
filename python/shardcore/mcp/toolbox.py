"""Defines a tool: a function whose first parameter is the open programs; the others are its
arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from shardcore.calculus.mistakes import choices
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.mcp.programs import Answer, Programs

Function = Callable[..., Answer]


def about(text: str) -> Any:
    """The description of an argument, in its annotation: ``Annotated[str, about("a path")]``."""
    return Field(description=text)


@dataclass(frozen=True)
class Tool:
    """A tool that clients can call."""

    name: str
    description: str
    function: Function
    arguments: type[BaseModel]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        found: dict[str, Any] = self.arguments.model_json_schema()
        return found

    def call(self, programs: Programs, given: Mapping[str, Any]) -> Answer:
        """Call the tool with the arguments ``given``, which a client may have got wrong.

        Raises:
            ShardcoreError: the arguments are not those of the tool (``invalid-arguments``), or the
                library raises.
        """
        try:
            read = self.arguments.model_validate(given)
        except ValidationError as error:
            raise ShardcoreError([self._mistake(each) for each in error.errors()]) from None
        return self.function(
            programs, **{name: getattr(read, name) for name in type(read).model_fields}
        )

    def _mistake(self, error: Mapping[str, Any]) -> Diagnostic:
        names = [str(part) for part in error["loc"]]
        where = ".".join([self.name, *names])
        message = error["msg"][:1].lower() + error["msg"][1:]
        hint = None
        if error["type"] == "extra_forbidden":
            message = "there is no such argument"
            hint = choices(names[0], list(self.arguments.model_fields))
        elif error["type"] == "missing":
            message = "it is missing"
            field = self.arguments.model_fields.get(names[0])
            hint = None if field is None else field.description
        return Diagnostic("invalid-arguments", f"{where}: {message}", hint)


TOOLS: dict[str, Tool] = {}
"""All tools, by name."""


def tool(function: Function) -> Function:
    """Make ``function`` a tool; its docstring is the description that clients read."""
    name = function.__name__.rstrip("_")
    _, *parameters = inspect.signature(function, eval_str=True).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in parameters
    }
    arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    TOOLS[name] = Tool(name, inspect.getdoc(function) or "", function, arguments)
    return function


def find(name: str) -> Tool:
    """Return the tool called ``name``.

    Raises:
        ShardcoreError: there is no such tool (``unknown-tool``).
    """
    if name not in TOOLS:
        message, hint = f"no tool is called {name!r}", choices(name, list(TOOLS))
        raise ShardcoreError(Diagnostic("unknown-tool", message, hint))
    return TOOLS[name]
