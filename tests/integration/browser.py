"""Headless Chromium, driven over a pipe.

The DevTools protocol: https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip
TIMEOUT_S = 60.0


def find_chromium() -> str | None:
    """The path of `$HFREG_CHROMIUM`, or of the first known name."""
    chosen = os.environ.get("HFREG_CHROMIUM")
    names = (chosen,) if chosen else ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """A browser with one page, in which scripts are off. A context manager."""

    def __init__(self, program: str, profile: Path) -> None:
        to_child, self._to = _high_pipe()
        self._from, from_child = _high_pipe()

        def connect() -> None:
            os.dup2(to_child, 3)
            os.dup2(from_child, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(3, 4), preexec_fn=connect,  # noqa: PLW1509 (it only moves descriptors)
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._count = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        """What the page said since it was opened."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and wait for its result."""
        self._count += 1
        request: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._to, json.dumps(request).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._count:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        data, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(data)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, url: str, *, width: int = 1280, height: int = 900) -> None:
        """Open a page and wait until it and all that it names has loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression: the tools may run scripts where the page may not."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of the console, failed requests, and answers that are errors."""
        found = []
        for event in self.events:
            what, details = event["method"], event["params"]
            if what in (
                "Log.entryAdded",
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Network.loadingFailed",
            ):
                found.append(f"{what}: {details}")
            if what == "Network.responseReceived" and details["response"]["status"] >= 400:
                found.append(f"{details['response']['status']}: {details['response']['url']}")
        return found

    def screenshot(self, path: Path) -> None:
        """A picture of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)


def _high_pipe() -> tuple[int, int]:
    """A pipe whose descriptors are in nobody's way: the browser wants the numbers 3 and 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
