"""``shardcore mcp``, asked by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import shardcore
from mcp import Client, StdioServerParameters

from tests.unit.test_diff import GOOD, text

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, "-m", "shardcore", "mcp"]
PACKAGE = str(Path(shardcore.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONWARNINGS": "error"}
"""The servers run the package that the tests run, wherever they start."""
TOOLS = ["open", "shardings", "why", "why_not", "cost", "edit", "evaluate", "plan", "diff"]
TOOLS += ["explain"]


def talk(
    conversation: Callable[[Client], Awaitable[None]], folder: Path = ROOT, *flags: str
) -> None:
    """Start the server in ``folder`` and talk with it."""

    async def main() -> None:
        _, *arguments = SERVER
        server = StdioServerParameters(
            command=sys.executable, args=[*arguments, *flags], env=ENVIRONMENT, cwd=str(folder)
        )
        async with Client(server) as client:
            await conversation(client)

    asyncio.run(asyncio.wait_for(main(), 100))


async def ask(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool answers."""
    found = await client.call_tool(tool, arguments)
    [content] = found.content
    assert not found.is_error, content.text
    assert len(content.text) < 7000
    assert re.search(r"\nnext: \w+(\(|$| )", content.text), content.text
    return str(content.text)


async def refused(client: Client, tool: str, arguments: Any) -> str:
    """Why a tool does not answer."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error
    [content] = found.content
    return str(content.text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step.mlir").write_text(text(GOOD))
    return tmp_path


def test_the_tools_are_listed() -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [*tools] == TOOLS
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            for name, argument in tool.input_schema["properties"].items():
                assert argument.get("description"), (tool.name, name)
        assert tools["open"].input_schema["required"] == ["program"]

    talk(conversation)


def test_a_session(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        found = await ask(client, "open", program="step.mlir", hardware="tpu-v5e")
        assert found.splitlines() == [
            "p1: step.mlir, 7 ops",
            'mesh: <["data"=2, "model"=4]>; chip: tpu-v5e',
            "3 arguments, 3 of them annotated, 2.1 MiB on a device; 1 result",
            "next: cost()",
        ]
        found = await ask(client, "shardings")
        assert re.search(r"p\['w'\] +512x2048xf32 +\[{}, {\"model\"}\] +512x512 +1\.0 MiB", found)
        assert "y " in found
        found = await ask(client, "shardings", target="m.py:8")
        assert re.search(r'%1 +64x2048xf32 +\[{"data"}, {"model"}\]', found)
        found = await ask(client, "why", value="%1", dim=1)
        assert "p['w'] [{}, {\"model\"}] (the argument is annotated)" in found
        assert "%1 [" in await ask(client, "why", value="m.py:8")
        assert "on dim" in await ask(client, "why", value="m.py:8", axis="model")
        found = await ask(client, "why_not", value="y", axis="model")
        assert '"model" is not on dim 0 of y' in found
        found = await ask(client, "cost")
        assert "on tpu-v5e: step" in found
        assert re.search(r"1 +all_reduce +model +dot_general +m\.py:9", found)
        assert found.endswith("next: why(collective=1)")
        found = await ask(client, "why", collective=1)
        assert "all_reduce" in found
        # What it advises is a call.
        [change] = re.findall(r"^next: edit\(set=(.*)\)$", found, re.MULTILINE)
        found = await ask(client, "edit", set=eval(change))
        assert re.search(r"step +[\d.]+ us +[\d.]+ us +[+-][\d.]+%", found)
        found = await ask(client, "diff")
        assert "collectives that changed" in found
        assert "m.py:9" in found
        found = await ask(client, "edit", undo=True)
        assert "3 annotations" in found
        edits = [{"p['v']": "P()"}, {"p['v']": None}, {"p/**": "P('nothing')"}]
        found = await ask(client, "evaluate", edits=edits)
        rows = [line.split()[0] for line in found.splitlines()[1:5]]
        assert rows[0] == "now"
        assert sorted(rows[1:]) == ["0", "1", "2"]
        assert "unknown-axis" in found
        found = await ask(client, "plan", seconds=1)
        assert "above what no plan can be below" in found
        step = re.search(r"on tpu-v5e: step ([\d.]+ us)", found)
        assert step is not None
        assert found.endswith("next: edit(plan=True)")
        # What was planned is what it becomes, and the way back is one step.
        found = await ask(client, "edit", plan=True)
        assert re.search(rf"step +\S+ us +{step[1]} ", found)
        assert f"step {step[1]}" in await ask(client, "cost")
        assert f" {step[1]} " in (await ask(client, "edit", undo=True)).splitlines()[1]
        await ask(client, "edit", set={"p['v']": "P()"})
        found = await ask(client, "edit", reset=True)
        assert "3 annotations" in found
        assert "as before, peak" in await ask(client, "diff")
        # Another program beside it; each is asked by its name.
        other = text(GOOD).replace('"data"=2', '"data"=4')
        assert "p2: <text>" in await ask(client, "open", program=other)
        found = await ask(client, "diff", base="p1", program="p2")
        assert '<["data"=4, "model"=4]>' in found
        assert "tpu-v5p" in await ask(client, "cost")
        assert "tpu-v5e" in await ask(client, "cost", program="p1")
        assert "h100" in await ask(client, "cost", hardware="h100", program="p1")
        found = await ask(client, "diff", base="step.mlir", program="p1")
        assert "as before" in found

    talk(conversation, folder)


MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("cost", {}, "error[no-program]: no program is open\n  help: call open("),
    ("nothing", {}, "error[unknown-tool]"),
    ("pan", {}, 'did you mean "plan"?'),
    ("open", {}, "error[invalid-arguments]: open.program: it is missing"),
    ("open", {"program": 3}, "error[invalid-arguments]: open.program:"),
    ("open", {"program": "x.mlir", "mash": {}}, 'did you mean "mesh"?'),
    ("open", {"program": "nothing.mlir"}, "error[io]: nothing.mlir: No such file"),
    ("open", {"program": "step.mlir", "hardware": "tpu-v9"}, "error[unknown-hardware]"),
    ("open", {"program": "step.mlir", "mesh": {"x": -1}}, "error["),
    ("open", {"program": "func.func @main(\n"}, "error[syntax]: "),
    ("open", {"program": "step.mlir\0"}, "error["),
]
ASKED: list[tuple[str, dict[str, Any], str]] = [
    ("shardings", {"target": "p['x']"}, "did you mean"),
    ("shardings", {"program": "p7"}, "error[no-program]"),
    ("shardings", {"top": "many"}, "error[invalid-arguments]: shardings.top"),
    ("why", {}, "error[invalid-arguments]"),
    ("why", {"value": "%99"}, "error["),
    ("why", {"value": "%1", "dim": 10**30}, "error["),
    ("why", {"collective": 99}, "error[unknown-location]"),
    ("why_not", {"value": "%1", "axis": "nothing"}, ""),
    ("why_not", {"value": "%1"}, "why_not.axis: it is missing"),
    ("cost", {"hardware": "tpu-v9"}, "error[unknown-hardware]"),
    ("edit", {}, "error[invalid-arguments]: edit takes one of"),
    ("edit", {"set": {"p['v']": "P('nothing')"}}, "error[unknown-axis]"),
    ("edit", {"set": {"p['v']": "P("}}, "error["),
    ("edit", {"set": {"q": "P()"}}, "error[unknown-location]"),
    ("edit", {"set": ["x"]}, "error[invalid-arguments]: edit.set"),
    ("edit", {"undo": True}, "there is nothing to undo"),
    ("edit", {"plan": True}, "there is no plan of this program"),
    ("edit", {"undo": True, "reset": True}, "edit takes one of"),
    ("why", {"value": "m.py:80"}, "error[unknown-location]"),
    ("evaluate", {"edits": []}, "error[invalid-arguments]"),
    ("evaluate", {"edits": [{}] * 2000}, "error[invalid-arguments]"),
    ("plan", {"mesh": {"x": 0}}, "error["),
    ("plan", {"memory": "much"}, "error[invalid-arguments]: memory is"),
    ("plan", {"seconds": -1}, "error[invalid-arguments]"),
    ("plan", {"memory": "1KiB", "seconds": 1}, "error[does-not-fit]"),
    ("diff", {"base": "nothing.mlir"}, "error[io]"),
    ("explain", {"dump": "nothing.txt"}, "error[io]"),
    ("explain", {}, "explain.dump: it is missing"),
]


def test_malformed_calls_are_refused_with_code_and_hint(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        for tool, arguments, shown in MALFORMED:
            assert shown in await refused(client, tool, arguments), (tool, arguments)
        assert "p1" in await ask(client, "open", program="step.mlir")
        before = await ask(client, "shardings")
        for tool, arguments, shown in ASKED:
            found = await client.call_tool(tool, arguments)
            answer = found.content[0].text
            assert found.is_error or tool == "why_not", answer
            assert shown in answer, (tool, arguments, answer)
        # Nothing of it changed the program.
        assert await ask(client, "shardings") == before
        assert "step" in await ask(client, "cost")

    talk(conversation, folder)


# Each is worked out: none is as another one.
MANY = [{f"%arg{i}": "P()", f"%arg{j}": None} for i in range(30) for j in range(30) if i != j]


def test_a_long_call_is_stopped_and_the_program_stays(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        await ask(client, "open", program=str(ROOT / "examples" / "gpt_step.mlir"))
        start = time.monotonic()
        assert "error[time-limit]" in await refused(client, "evaluate", {"edits": MANY})
        assert time.monotonic() - start < 9
        assert "p2" in await ask(client, "open", program="step.mlir")
        assert "step" in await ask(client, "cost")

    talk(conversation, folder, "--seconds", "3")


def test_a_cancelled_call_is_stopped(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        await ask(client, "open", program=str(ROOT / "examples" / "gpt_step.mlir"))
        asked = asyncio.create_task(client.call_tool("evaluate", {"edits": MANY}))
        queued = asyncio.create_task(client.call_tool("plan", {"seconds": 1000}))
        await asyncio.sleep(1)
        asked.cancel()
        queued.cancel()
        start = time.monotonic()
        assert "p2" in await ask(client, "open", program="step.mlir")
        # The plan would take 1000 s; a busy machine may take some for the evaluation that runs.
        assert time.monotonic() - start < 25

    talk(conversation, folder)


START = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


def called(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """The message that calls a tool."""
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def start() -> subprocess.Popen[bytes]:
    """The server, for a client that writes and reads its messages itself."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        SERVER, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT
    )


def test_what_is_no_message_ends_nothing() -> None:
    """Lines that are no JSON, and messages of no protocol, from a client that is none."""
    lines = [
        json.dumps(START),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "{",
        "\0\xff",
        "[" * 10000,
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "nothing"}),
        json.dumps({**called(3, ""), "params": {"name": 3}}),
        json.dumps(called(4, "cost", top=[])),
        json.dumps(called(5, "cost")),
    ]
    answers: dict[Any, Any] = {}
    with start() as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("\n".join(lines).encode("utf-8", "surrogateescape") + b"\n")
        server.stdin.flush()
        while 5 not in answers:
            message = json.loads(server.stdout.readline())
            answers[message.get("id")] = message
        server.stdin.close()
        assert server.wait(timeout=20) == 0
    assert "error" in answers[2]
    assert "error" in answers[3]
    assert answers[4]["result"]["isError"]
    assert "no-program" in answers[5]["result"]["content"][0]["text"]


def test_a_client_that_leaves_ends_the_work() -> None:
    gpt = str(ROOT / "examples" / "gpt_step.mlir")
    messages = [
        START,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        called(2, "open", program=gpt),
        called(3, "evaluate", edits=MANY),
    ]
    with start() as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(each)}\n" for each in messages).encode())
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        time.sleep(1)
        server.stdin.close()
        assert server.wait(timeout=15) == 0


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('no', name='mcp')")
    path = os.pathsep.join([str(tmp_path), PACKAGE])
    done = subprocess.run(
        SERVER, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "error[missing-package]: shardcore mcp needs the package mcp" in done.stderr
    assert "pip install 'shardcore[mcp]'" in done.stderr


def test_an_unknown_chip_is_refused_at_once() -> None:
    done = subprocess.run(
        [*SERVER, "--hardware", "tpu-v9"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "unknown-hardware" in done.stderr


PAGE = ROOT / "docs" / "mcp.md"
BLOCK = re.compile(r"(?<=^```mcp\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^> (\w+)\((.*)\)$", re.MULTILINE)


def test_the_page_shows_what_is_answered() -> None:
    """With ``SHARDCORE_WRITE_PAGE`` in the environment, what is answered is written into it."""
    page = PAGE.read_text("utf-8")
    shown: list[str] = []

    async def conversation(client: Client) -> None:
        [block] = BLOCK.findall(page)
        for tool, arguments in CALL.findall(block):
            given = eval(f"dict({arguments})")
            found = await client.call_tool(tool, given)
            shown.append(f"> {tool}({arguments})\n{found.content[0].text}\n")

    talk(conversation)
    written = BLOCK.sub(lambda _: "\n".join(shown), page)
    if "SHARDCORE_WRITE_PAGE" in os.environ:
        PAGE.write_text(written, "utf-8")
    assert written == page
