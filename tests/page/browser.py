"""Chromium without a window, driven over a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS = 30
"""An answer that takes longer is a failure."""


def executable() -> str | None:
    """The browser of this machine: ``SHARDCORE_CHROMIUM``, or what is on the path."""
    named = os.environ.get("SHARDCORE_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return named or next(filter(None, map(shutil.which, names)), None)


class Browser:
    """A browser with one page."""

    def __init__(self, path: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol's descriptors are 3 and 4.
        script = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                script,
                str(to_browser),
                str(from_browser),
                path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                f"--user-data-dir={self._folder.name}",
                "--window-size=1400,1000",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name},
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._left = b""
        self.events: list[dict[str, Any]] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attach = {"targetId": page["targetId"], "flatten": True}
        self._session = self._call("Target.attachToTarget", **attach)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method on the page."""
        return self._call(method, self._session, **parameters)

    def open(self, path: Path) -> float:
        """Open a file and return the seconds until its scripts have run."""
        self.emulate()
        self.events.clear()
        start = time.perf_counter()
        self.call("Page.navigate", url=path.as_uri())
        self._until(lambda event: event.get("method") == "Page.loadEventFired")
        return time.perf_counter() - start

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, text: str | None = None) -> None:
        """Press a key."""
        codes = {
            "Backspace": 8,
            "Tab": 9,
            "Enter": 13,
            "Escape": 27,
            " ": 32,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
        }
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        typed = text or ("\r" if key == "Enter" else key if len(key) == 1 else "")
        down = {"type": "keyDown" if typed else "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **down, **common, **({"text": typed} if typed else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self._settle()

    def type(self, text: str) -> None:
        """Type into what has the focus, in the place of what is there."""
        self.run("document.activeElement.select()")
        if text:
            self.call("Input.insertText", text=text)
        else:
            self.press("Backspace")
        # Longer than the page waits for further keys.
        self.run("new Promise((resolve) => setTimeout(resolve, 150))")
        self._settle()

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that ``selector`` finds."""
        found = f"document.querySelector({json.dumps(selector)})"
        box = f"{found}.getBoundingClientRect()"
        self.run(f"{found}.scrollIntoView({{block: 'center'}})")
        left, width, x, y = self.run(
            f"((b) => [b.x, b.width, b.x + 20, b.y + b.height / 2])({box})"
        )
        x = min(x, left + width / 2)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self._settle()

    def emulate(self, *, scheme: str = "light", media: str = "") -> None:
        """Show the page in a colour scheme, or on a medium."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path) -> None:
        """Write a picture of what is seen."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        return base64.b64decode(data)

    def mistakes(self) -> list[dict[str, Any]]:
        """Exceptions, messages of the log, and requests other than for files and data."""
        methods = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        found = [event for event in self.events if event["method"] in methods]
        for event in self.events:
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(event)
        return found

    def requests(self) -> list[str]:
        """The URLs that were asked for."""
        sent = (event for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def _settle(self) -> None:
        """Wait until the page has handled what was done, and has been drawn."""
        frame = "new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))"
        for _ in range(2):
            self.run(frame)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda event: event.get("id") == number)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _until(self, is_wanted: Any) -> dict[str, Any]:
        for event in self.events:
            if is_wanted(event):
                return event
        while True:
            event = self._next()
            if "method" in event:
                self.events.append(event)
            if is_wanted(event):
                return event

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has ended"
            self._left += piece
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)
