"""A real headless Chromium, told what to do through a pipe: for pages, and for their pictures."""

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
    """The browser's program, where there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page, in as many sizes as are asked for."""

    def __init__(self, to: int, back: int) -> None:
        self._to = to
        self._back = back
        self._left = b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        self.complaints: list[str] = []
        """What the console said, and scripts that failed."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """One command, and its answer."""
        number = next(self._ids)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (said := self._next()).get("id") != number:
            self._note(said)
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return said.get("result", {})

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._left:
            if not select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self._back, 1 << 20)
            if not part:
                raise RuntimeError("the browser is gone")
            self._left += part
        line, _, self._left = self._left.partition(b"\0")
        return json.loads(line)

    def _note(self, said: dict[str, Any]) -> None:
        method = said.get("method", "")
        if method in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}:
            self.complaints.append(json.dumps(said["params"])[:500])

    def look(self, url: str, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Open a page in a window of that size."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        for each in (
            "about:blank",
            url,
        ):  # so that another place on the same page is looked up anew
            self.ask("Page.navigate", url=each)
            eventually(lambda here=each: self._is_at(here), PATIENCE)

    def _is_at(self, url: str) -> bool:
        place, state = self.run("[location.href, document.readyState]")
        return place == url and state == "complete"

    def run(self, script: str) -> Any:
        """What an expression comes to on the page."""
        done = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def picture(self, path: Path, *, until: str = "") -> None:
        """The page as PNG, from its top; all of it, or until the element of that id."""
        tall = self.run("document.documentElement.scrollHeight")
        if until:
            tall = self.run(f"document.getElementById({until!r}).getBoundingClientRect().top")
        wide = self.run("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": wide, "height": tall, "scale": 1}
        shot = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


def _out_of_the_way(fd: int) -> int:
    """The same, under a number that nobody else speaks on."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return high


@contextmanager
def browser(program: str, folder: Path) -> Generator[Browser]:
    """A browser for as long as the block lasts, with a profile of its own."""
    there, to = map(_out_of_the_way, os.pipe())
    back, here = map(_out_of_the_way, os.pipe())
    command = [program, *_OPTIONS, f"--user-data-dir={folder}"]
    # It speaks on the third and fourth descriptor, whatever ours are.
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
        os.close(to)  # which ends it
        os.close(back)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
