"""What leaves the terminal while a run goes on: telemetry, and notices to people.

Law 1: what is off is not imported. Law 2: what was asked for and is not possible is refused before
the run begins; from then on nothing here can delay or end it. Law 3: everything that leaves passes
the redactor.
"""

import secrets
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Protocol

import anyio
from msgspec.structs import replace

from windlass import __version__
from windlass.app.wiring.agents import vendor_of
from windlass.app.wiring.project import Project
from windlass.app.wiring.telemetry_settings import telemetry_request
from windlass.core.engine import apply
from windlass.core.events import model as e
from windlass.core.secrets import without_secrets
from windlass.core.settings import NotifySettings, Settings
from windlass.core.state import RunState
from windlass.errors import ConfigError
from windlass.ports import Attributes, Measured, Notice, Span
from windlass.views.measuring import Measuring
from windlass.views.notices import notice_of
from windlass.views.telemetry_names import INSTRUMENTS, SERVICE
from windlass.views.tracing import Context, context_of

if TYPE_CHECKING:
    from windlass.adapters.notices import Notices

Say = Callable[[str], None]
Send = Callable[[Notice], str | None]
_LONG = 16_000
_SECONDS = 1.0
"""The longest time before a failure to send is reported."""
_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class _Sink(Protocol):
    def tell(self, spans: Iterable[Span], measured: Iterable[Measured]) -> None: ...

    def close(self) -> None: ...


class Outside:
    """Follows a run, and sends telemetry and notices."""

    def __init__(
        self, project: Project, plan_id: str, settings: Settings, *, notify: bool | None, say: Say
    ) -> None:
        """Refuse what is not possible; open nothing yet. `notify` False: send no notices."""
        self._project = project
        self._plan = plan_id
        self._say = say
        self._heard: SimpleQueue[str] = SimpleQueue()
        """Messages of other threads, said by `keep` and `close`."""
        self._settings = settings.telemetry
        self._agent = settings.agent
        self._about = frozenset(settings.notify.about)
        self._request = telemetry_request(settings.telemetry, project.environment)
        wanted = None if notify is False else settings.notify
        self._notices = self._ways(wanted) if wanted is not None else None
        self._measuring: Measuring | None = None
        self._parent: Context | None = None
        self._sinks: list[_Sink] = []

    def open(self, before: Callable[[], Iterable[e.Event]]) -> None:
        """Start, after replaying what the run recorded before; raises where an address is taken."""
        if not self._request.anything:
            return
        environment = self._project.environment
        self._parent = context_of(environment.get("TRACEPARENT", ""))
        contents = self._settings.contents or environment.get(_CONTENTS, "").lower() == "true"
        vendor = vendor_of(self._agent)
        self._measuring = Measuring(
            self._plan,
            self._parent,
            contents=contents,
            provider=vendor.provider or vendor.name,
        )
        state: RunState | None = None
        for event in before():
            state = apply(state, event)
            self._measuring.see(event, state)
        if self._request.address is not None:
            self._serve(*self._request.address)
        if self._request.traces or self._request.metrics:
            self._send()

    def traceparent(self, task: str, role: str) -> str:
        """The header for an agent that works; empty where there is no telemetry."""
        place = self._measuring.working(task, role) if self._measuring is not None else None
        return place.traceparent if place is not None else ""

    def follow(self, entry: e.Entry, state: RunState) -> None:
        """Send what an entry that is durable comes to."""
        try:
            self._notify(entry.event, state)
            self._measure(entry.event, state)
        except Exception as error:  # noqa: BLE001  whatever it is, it is no reason to end a run
            self._measuring = None
            self._say(f"telemetry and notices end here, by a fault of Windlass: {error!r}")

    @contextmanager
    def breaking(self, title: str) -> Generator[None]:
        """Send a notice where the block raises: no fact says that the run could not go on."""
        try:
            yield
        except Exception as error:
            told = f"Interrupted: {title}"
            self._post(Notice(kind="failed", title=told, text=str(error), plan=self._plan, run=""))
            raise

    async def keep(self) -> None:
        """Report what cannot be sent, until cancelled."""
        while self._notices is not None or self._sinks:
            self._say_all()
            await anyio.sleep(_SECONDS)

    def close(self) -> None:
        """Wait a few seconds for what is under way."""
        ends = [sink.close for sink in self._sinks]
        if self._notices is not None:
            ends.append(self._notices.close)
        self._sinks.clear()
        # Each takes only seconds; all at once, they take as long as the slowest.
        threads = [Thread(target=end, daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._say_all()

    def _say_all(self) -> None:
        while not self._heard.empty():
            self._say(self._heard.get())

    def _notify(self, event: e.Event, state: RunState) -> None:
        if self._notices is not None and (notice := notice_of(event, state)) is not None:
            self._post(notice)

    def _post(self, notice: Notice) -> None:
        if self._notices is not None and notice.kind in self._about:
            clean = self._project.redactor.text
            self._notices.post(replace(notice, title=clean(notice.title), text=clean(notice.text)))

    def _measure(self, event: e.Event, state: RunState) -> None:
        if self._measuring is None:
            return
        told = self._measuring.see(event, state)
        sampled = self._parent is None or self._parent.sampled
        spans = [self._clean_span(span) for span in told.spans] if sampled else []
        measured = [
            replace(each, attributes=self._clean(each.attributes)) for each in told.measured
        ]
        for sink in self._sinks:
            sink.tell(spans, measured)

    def _clean_span(self, span: Span) -> Span:
        error = None if span.error is None else self._project.redactor.text(span.error)
        return replace(span, attributes=self._clean(span.attributes), error=error)

    def _clean(self, attributes: Attributes) -> Attributes:
        text = self._project.redactor.text
        # Cut only once it is clean: half a secret could not be told from any word.
        return {k: text(v)[:_LONG] if isinstance(v, str) else v for k, v in attributes.items()}

    def _serve(self, host: str, port: int) -> None:
        from windlass.adapters.telemetry.prometheus import Page

        page = Page(INSTRUMENTS, host, port)
        page.serve(*self._settings.hosts)
        self._sinks.append(page)
        self._say(f"metrics are at {page.url}")

    def _send(self) -> None:
        from windlass.adapters.telemetry.otlp import Otlp

        resource = {
            "service.name": SERVICE,
            "service.version": __version__,
            "service.instance.id": secrets.token_hex(8),
        }
        try:
            sink = Otlp(
                INSTRUMENTS,
                environment=self._project.environment,
                resource=resource,
                redact=self._project.redactor.text,
                say=self._heard.put,
                traces=self._request.traces,
                metrics=self._request.metrics,
            )
        except (ValueError, TypeError, OSError) as error:
            self.close()
            why = self._project.redactor.text(str(error))
            raise ConfigError(
                f"OpenTelemetry cannot use its variables (OTEL_*): {why}",
                hint="correct them, or set OTEL_SDK_DISABLED=true",
            ) from None
        self._sinks.append(sink)

    def _ways(self, settings: NotifySettings) -> "Notices | None":
        """The channels for notices, if there are any."""
        if settings.desktop == "off" and settings.webhook is None and not settings.command:
            return None
        from windlass.adapters.notices import Notices

        return Notices(_senders(settings, self._project, self._say), self._heard.put)


def _senders(settings: NotifySettings, project: Project, say: Say) -> dict[str, Send]:
    """What delivers a notice, by name."""
    from windlass.adapters import notices

    ways: dict[str, Send] = {}
    bare = without_secrets(project.environment)
    if settings.desktop != "off":
        found = notices.desktop(bare, sound=settings.sound)
        if found is not None:
            name, send = found
            ways[name] = send if settings.desktop == "on" else _silently(send)
        elif settings.desktop == "on":
            say("no notices on this desktop: neither osascript nor notify-send is on PATH")
    if settings.webhook is not None:
        # It may be the name of a variable; the address itself is never shown.
        url = settings.webhook
        if "://" not in url:
            url = project.environment.get(url, "").strip()
        where, send = notices.webhook(url, project.environment)
        ways[f"the webhook at {where}"] = send
    if settings.command:
        ways["the program of notify.command"] = notices.command(settings.command, bare)
    return ways


def _silently(send: Send) -> Send:
    def silent(notice: Notice) -> None:
        send(notice)

    return silent
