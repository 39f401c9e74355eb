"""Notices to people who are not watching: on the desktop, to a webhook, by the user's program.

Law 1: no shell, and no script built from text: titles and texts are arguments, or a JSON document.
Law 2: each channel has its own thread; only the end of the run waits for it, for a few seconds.
Law 3: the first notice that fails is reported, once.
"""

import base64
import http.client
import json
import queue
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from windlass.core.plan.names import without_controls
from windlass.errors import ConfigError
from windlass.ports import Notice

CLOSE_SECONDS = 5.0
"""How long the end of a run waits for notices that are being sent."""
_SECONDS = 4.0
"""Timeout of one notice."""
_PROGRAM_SECONDS = 30.0
"""Timeout of a program; one that still runs when the run ends continues on its own."""
_MOST = 100
"""Notices that may wait; further ones are dropped."""
_LONG = 500

Send: TypeAlias = Callable[[Notice], str | None]
"""Delivers a notice; returns why it could not, or None."""

_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv){sound}",
    "end run",
)


class Notices:
    """Sends notices by every channel."""

    def __init__(self, channels: Mapping[str, Send], say: Callable[[str], None]) -> None:
        """Take the channels by name; `say` is called once for each that fails."""
        self._channels = [_Channel(name, send, say) for name, send in channels.items()]

    def post(self, notice: Notice) -> None:
        for channel in self._channels:
            channel.post(notice)

    def close(self) -> None:
        """Wait a few seconds for notices that are being sent; drop the rest."""
        deadline = time.monotonic() + CLOSE_SECONDS
        for channel in self._channels:
            channel.finish()
        for channel in self._channels:
            channel.wait(max(0.0, deadline - time.monotonic()))


class _Channel:
    def __init__(self, name: str, send: Send, say: Callable[[str], None]) -> None:
        self._name, self._send, self._say = name, send, say
        self._reported = False
        self._waiting: queue.Queue[Notice | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def post(self, notice: Notice) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, daemon=True)
            self._thread.start()
        self._put(notice)

    def finish(self) -> None:
        if self._thread is not None:
            self._put(None)

    def wait(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                self._complain("it does not answer")
        self._reported = True  # nothing is printed after the run's last line

    def _put(self, item: Notice | None) -> None:
        # The end marker is always queued.
        if item is None or self._waiting.qsize() < _MOST:
            self._waiting.put(item)
        else:
            self._complain("too many wait")

    def _deliver(self) -> None:
        while (notice := self._waiting.get()) is not None:
            try:
                why = self._send(notice)
            except Exception as error:  # noqa: BLE001  no failure of a notice may end a run
                why = type(error).__name__
            if why is not None:
                self._complain(why)

    def _complain(self, why: str) -> None:
        if not self._reported:
            self._reported = True
            self._say(f"notices do not get through to {self._name}: {why}; the run goes on")


def desktop(environment: Mapping[str, str], *, sound: bool) -> tuple[str, Send] | None:
    """The channel of this desktop, if there is one."""
    path = environment.get("PATH", "")
    if (program := shutil.which("osascript", path=path)) is not None:
        script = [line.format(sound=' sound name "default"' * sound) for line in _SCRIPT]
        lines = [part for line in script for part in ("-e", line)]

        def by_osascript(notice: Notice) -> str | None:
            return _run([program, *lines, _shown(notice.title), _shown(notice.text)], environment)

        return "osascript", by_osascript
    if (program := shutil.which("notify-send", path=path)) is not None:

        def by_notify_send(notice: Notice) -> str | None:
            # The body may hold markup; an agent's text is not markup.
            body = _shown(notice.text).replace("&", "&amp;").replace("<", "&lt;")
            # A title that begins with a dash is not an option.
            own = [program, "--app-name=Windlass", "--"]
            return _run([*own, _shown(notice.title), body], environment)

        return "notify-send", by_notify_send
    return None


def command(argv: Iterable[str], environment: Mapping[str, str]) -> Send:
    """The user's program, with title and text where its arguments name them."""
    words = tuple(argv)

    def send(notice: Notice) -> str | None:
        values = {"{title}": _shown(notice.title), "{text}": _shown(notice.text)}
        # In one pass, so that a title that contains "{text}" stays as it is.
        filled = [re.sub(r"\{title\}|\{text\}", lambda m: values[m[0]], word) for word in words]
        return _run(filled, environment)

    return send


def webhook(url: str, environment: Mapping[str, str]) -> tuple[str, Send]:
    """A web service that takes JSON; raises for an invalid URL, without showing it."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urllib.parse.urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or not url.isprintable():
        raise ConfigError(
            "notify.webhook is no URL, and no variable that holds one",
            hint="give a URL that begins with http:// or https://, or the name of a variable",
        )
    where = f"{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    headers = {"Content-Type": "application/json", "User-Agent": "windlass"}
    if parts.username is not None:
        name, password = (urllib.parse.unquote(x or "") for x in (parts.username, parts.password))
        login = base64.b64encode(f"{name}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {login}"
    target = urllib.parse.urlunsplit((parts.scheme, where, parts.path or "/", parts.query, ""))
    opener = urllib.request.build_opener(_proxy(environment, host), _NoRedirect())

    def send(notice: Notice) -> str | None:
        body = json.dumps(_document(notice)).encode()
        request = urllib.request.Request(target, body, headers, method="POST")  # noqa: S310  http only, see above
        try:
            opener.open(request, timeout=_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answers {error.code}"
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            return str(getattr(reason, "strerror", None) or type(reason).__name__)
        return None

    return where, send


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the user named this address and no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return None, which urllib treats as an error."""


def _proxy(environment: Mapping[str, str], host: str) -> urllib.request.ProxyHandler:
    """The user's proxy variables, which are no longer in this process's environment."""
    lower = {name.lower(): value for name, value in environment.items()}
    never = {"no": lower.get("no_proxy", "")}
    local = host in {"localhost", "127.0.0.1", "::1"}
    if local or urllib.request.proxy_bypass_environment(host, never):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return urllib.request.ProxyHandler({})
    found = {kind: lower.get(f"{kind}_proxy", "") for kind in ("http", "https")}
    return urllib.request.ProxyHandler({kind: url for kind, url in found.items() if url})


def _document(notice: Notice) -> dict[str, str | int]:
    """The JSON document; chat services show `text`."""
    return {
        "schema": 1,
        "kind": notice.kind,
        "title": notice.title,
        "message": notice.text,
        "text": f"{notice.title}\n{notice.text}",
        "plan": notice.plan,
        "run": notice.run,
        "task": notice.task,
    }


def _shown(text: str) -> str:
    """Text without terminal sequences and invisible characters."""
    return without_controls(text).encode(errors="replace").decode()[:_LONG]


def _run(argv: list[str], environment: Mapping[str, str]) -> str | None:
    try:
        done = subprocess.run(
            argv,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PROGRAM_SECONDS,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return "it does not answer"
    except OSError as error:
        return error.strerror or "it cannot be started"
    return f"it ended with {done.returncode}" if done.returncode else None
