"""A real headless Chromium, controlled through a pipe, to test pages and take pictures of them."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waiting import eventually

NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # the pages are our own, and root has no other way
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


def installed() -> str | None:
    """The path of the browser; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page, in any size."""

    def __init__(self, to: int, back: int) -> None:
        self._to = to
        self._back = back
        self._left = b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        self.complaints: list[str] = []
        """Messages of the console, and scripts that failed."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command; returns its answer."""
        number = next(self._ids)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result", {})

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._left:
            if not select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._back, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._left += part
        line, _, self._left = self._left.partition(b"\0")
        return json.loads(line)

    def _note(self, message: dict[str, Any]) -> None:
        method = message.get("method", "")
        if method in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}:
            self.complaints.append(json.dumps(message["params"])[:500])

    def look(self, url: str, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Open a page in a window of that size."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        # The blank page first, so that another fragment of the same page is loaded again.
        for each in ("about:blank", url):
            self.ask("Page.navigate", url=each)
            eventually(lambda here=each: self._is_at(here), PATIENCE)

    def _is_at(self, url: str) -> bool:
        place, state = self.run("[location.href, document.readyState]")
        return place == url and state == "complete"

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        done = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def picture(self, path: Path, *, until: str = "") -> None:
        """Write the page as PNG, all of it or down to the element with the id `until`."""
        tall = self.run("document.documentElement.scrollHeight")
        if until:
            tall = self.run(f"document.getElementById({until!r}).getBoundingClientRect().top")
        wide = self.run("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": wide, "height": tall, "scale": 1}
        shot = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


def _moved_up(fd: int) -> int:
    """The same file under a descriptor of 10 or more, so that 3 and 4 are free."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return high


@contextmanager
def browser(program: str, folder: Path) -> Generator[Browser]:
    """A browser with its own profile, until the block ends."""
    there, to = map(_moved_up, os.pipe())
    back, here = map(_moved_up, os.pipe())
    command = [program, *_OPTIONS, f"--user-data-dir={folder}"]
    # The browser reads from descriptor 3 and writes to descriptor 4.
    shell = f'exec "$@" 3<&{there} 4>&{here} {there}<&- {here}>&-'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(there, here),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    os.close(there)
    os.close(here)
    try:
        yield Browser(to, back)
    finally:
        os.close(to)  # this ends the browser
        os.close(back)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
