"""Google's Model Explorer itself opens the graphs and the layers that are written for it.

It is skipped where ``ai-edge-model-explorer`` is not installed, which ``make test-explorer``
installs: the package brings a web server, a shell and converters of other formats, which nothing
else needs. What it reads is held against its form in ``tests/unit/test_exports.py``, too.
"""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from shardcore import Module
from shardcore.report.model_explorer import write

from tests.page.browser import Browser
from tests.unit.test_exports import LOOP

SERVE = """\
import sys, model_explorer
config = model_explorer.config()
model_explorer.visualize_from_config(config, port=int(sys.argv[1]), no_open_in_browser=True)
"""
SECONDS = 60


@pytest.mark.skipif(
    importlib.util.find_spec("model_explorer") is None, reason="ai-edge-model-explorer is not there"
)
def test_model_explorer_opens_what_is_written(browser: Browser, tmp_path: Path) -> None:
    result = Module.parse(LOOP, filename="loop.mlir").propagate()
    graph, *layers = write(result, result.cost("tpu-v5e"), str(tmp_path / "out.json"))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    asked = {"models": [{"url": graph}], "nodeData": layers, "nodeDataTargets": [""] * len(layers)}
    url = f"http://localhost:{port}/?data={quote(json.dumps(asked))}"
    log = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-c", SERVE, str(port)], stdout=log, stderr=log) as app:
        try:
            text, end = "", time.monotonic() + SECONDS
            while "out.seconds.json" not in text and time.monotonic() < end:
                # The server takes a while to start.
                if "loop.mlir" not in text:
                    browser.call("Page.navigate", url=url)
                time.sleep(2)
                text = str(browser.run("document.body.innerText"))
        finally:
            app.kill()
    nodes = sum(len(each["nodes"]) for each in json.loads(Path(graph).read_text())["graphs"])
    assert f"main\n{nodes} nodes" in text, text
    for layer in layers:
        assert Path(layer).name in text
