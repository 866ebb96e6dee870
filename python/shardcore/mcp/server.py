"""The MCP server, over standard input and output.

One thread talks to the client; the main thread does the work. An exception in a tool becomes an
error answer: nothing that a client sends ends the server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as Listed

from shardcore._core import __version__
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.mcp import costing, reading
from shardcore.mcp.failures import failure
from shardcore.mcp.programs import Programs
from shardcore.mcp.toolbox import TOOLS, find
from shardcore.mcp.worker import Interrupted, Worker

__all__ = ["serve"]

GRACE_SECONDS = 5.0
"""How long an interrupted call may take to finish, for example with the best plan so far."""

INSTRUCTIONS = """\
shardcore says how a tensor program (StableHLO, or a JAX function) is sharded over devices, why, and
what that costs on a chip. Start with open; each answer names the call that is useful next. A
program stays open, with the annotations that edit sets. Targets are paths of the user's program,
params['w'], patterns of them, params/**/w, values, %12, or lines, model.py:42. A sharding is text
as P('data', None) or [{"data"}, {}]."""

_LIMIT_HINT = "ask for less, or start shardcore mcp --seconds with a larger number"

# These imports register the tools.
_MODULES = (reading, costing)


def serve(hardware: str, seconds: float) -> None:
    """Serve until the client closes standard input.

    Args:
        hardware: the chip for calls that name none.
        seconds: the time after which a call is interrupted.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    worker = Worker()
    answers = _Answers(worker, Programs(hardware, seconds), seconds)
    failed: list[BaseException] = []

    def talk() -> None:
        try:
            anyio.run(answers.run)
        except BaseException as error:
            failed.append(error)
        finally:
            worker.close()

    threading.Thread(target=talk, name="mcp", daemon=True).start()
    worker.run()
    if failed:
        raise failed[0]


class _Answers:
    """Answers the client's requests."""

    def __init__(self, worker: Worker, programs: Programs, seconds: float) -> None:
        self._worker = worker
        self._programs = programs
        self._seconds = seconds

    async def run(self) -> None:
        """Answer until standard input ends."""
        server: Server[Any] = Server(
            "shardcore",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
        )
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    async def list_tools(
        self, context: Any, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """The tools, with the schemas of their arguments."""
        tools = [
            Listed(name=tool.name, description=tool.description, input_schema=tool.schema)
            for tool in TOOLS.values()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        """The answer of a tool, or its error."""
        given = params.arguments or {}
        try:
            return _result(await self._within(lambda: self._answer(params.name, given)))
        except asyncio.CancelledError:
            raise
        # Panics of the engine are no ordinary exceptions.
        except BaseException as error:
            return _result(failure(error), is_error=True)

    def _answer(self, name: str, given: dict[str, Any]) -> str:
        return str(find(name).call(self._programs, given))

    async def _within(self, work: Callable[[], str]) -> str:
        """Do ``work`` in the main thread within the time limit; it is stopped if the client
        cancels."""
        job = self._worker.submit(work)
        outcome = asyncio.wrap_future(job.outcome)
        try:
            done, _ = await asyncio.wait([outcome], timeout=self._seconds)
            if not done:
                self._worker.stop(job)
                # An interrupted call may still have an answer.
                done, _ = await asyncio.wait([outcome], timeout=GRACE_SECONDS)
        except asyncio.CancelledError:
            self._worker.stop(job)
            raise
        if not done or isinstance(outcome.exception(), Interrupted):
            how = "was stopped" if done else "ends as soon as it can be interrupted"
            message = f"it took more than {self._seconds:g} seconds, and {how}"
            raise ShardcoreError(Diagnostic("time-limit", message, _LIMIT_HINT))
        return outcome.result()


def _result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
