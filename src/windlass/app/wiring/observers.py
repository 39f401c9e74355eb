"""Telemetry, and notices to people, about a run.

Law 1: what is off is not imported. Law 2: an impossible request is refused before the run begins;
after that, nothing here can delay or end the run. Law 3: everything that is sent passes the
redactor.
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

Report = Callable[[str], None]
Send = Callable[[Notice], str | None]
_LONG = 16_000
_SECONDS = 1.0
"""Seconds between two looks for failures to report."""
_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class _Sink(Protocol):
    def tell(self, spans: Iterable[Span], measured: Iterable[Measured]) -> None: ...

    def close(self) -> None: ...


class Observers:
    """Follows a run, and sends telemetry and notices."""

    def __init__(
        self,
        project: Project,
        plan_id: str,
        settings: Settings,
        *,
        notify: bool | None,
        report: Report,
    ) -> None:
        """Raise for impossible settings; open nothing yet. `notify` False: send no notices."""
        self._project = project
        self._plan = plan_id
        self._report = report
        self._messages: SimpleQueue[str] = SimpleQueue()
        """From other threads; `keep` and `close` report them."""
        self._settings = settings.telemetry
        self._agent = settings.agent
        self._about = frozenset(settings.notify.about)
        self._request = telemetry_request(settings.telemetry, project.environment)
        wanted = None if notify is False else settings.notify
        self._notices = self._open_notices(wanted) if wanted is not None else None
        self._measuring: Measuring | None = None
        self._parent: Context | None = None
        self._sinks: list[_Sink] = []

    def open(self, before: Callable[[], Iterable[e.Event]]) -> None:
        """Start, after replaying the earlier facts of the run; raises if an address is taken."""
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
        """The traceparent header for an agent's requests; empty without telemetry."""
        place = self._measuring.working(task, role) if self._measuring is not None else None
        return place.traceparent if place is not None else ""

    def follow(self, entry: e.Entry, state: RunState) -> None:
        """Send the telemetry and the notice of a durable entry."""
        try:
            self._notify(entry.event, state)
            self._measure(entry.event, state)
        except Exception as error:  # noqa: BLE001  no error here may end a run
            self._measuring = None
            self._report(f"telemetry and notices stop here because of a bug in Windlass: {error!r}")

    @contextmanager
    def notify_of_errors(self, title: str) -> Generator[None]:
        """Send a notice if the block raises: no fact records that."""
        try:
            yield
        except Exception as error:
            title = f"Interrupted: {title}"
            self._post(Notice(kind="failed", title=title, text=str(error), plan=self._plan, run=""))
            raise

    async def keep(self) -> None:
        """Report failures to send, until cancelled."""
        while self._notices is not None or self._sinks:
            self._report_all()
            await anyio.sleep(_SECONDS)

    def close(self) -> None:
        """Stop; wait a few seconds for what is being sent."""
        ends = [sink.close for sink in self._sinks]
        if self._notices is not None:
            ends.append(self._notices.close)
        self._sinks.clear()
        # Each takes seconds at most; in parallel they take as long as the slowest.
        threads = [Thread(target=end, daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._report_all()

    def _report_all(self) -> None:
        while not self._messages.empty():
            self._report(self._messages.get())

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
        seen = self._measuring.see(event, state)
        sampled = self._parent is None or self._parent.sampled
        spans = [self._clean_span(span) for span in seen.spans] if sampled else []
        measured = [
            replace(each, attributes=self._clean(each.attributes)) for each in seen.measured
        ]
        for sink in self._sinks:
            sink.tell(spans, measured)

    def _clean_span(self, span: Span) -> Span:
        error = None if span.error is None else self._project.redactor.text(span.error)
        return replace(span, attributes=self._clean(span.attributes), error=error)

    def _clean(self, attributes: Attributes) -> Attributes:
        text = self._project.redactor.text
        # Redact before cutting: half a secret would not be recognized.
        return {k: text(v)[:_LONG] if isinstance(v, str) else v for k, v in attributes.items()}

    def _serve(self, host: str, port: int) -> None:
        from windlass.adapters.telemetry.prometheus import Page

        page = Page(INSTRUMENTS, host, port)
        page.serve(*self._settings.hosts)
        self._sinks.append(page)
        self._report(f"metrics are at {page.url}")

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
                say=self._messages.put,
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

    def _open_notices(self, settings: NotifySettings) -> "Notices | None":
        """The channels for notices; None if none is set."""
        if settings.desktop == "off" and settings.webhook is None and not settings.command:
            return None
        from windlass.adapters.notices import Notices

        return Notices(_senders(settings, self._project, self._report), self._messages.put)


def _senders(settings: NotifySettings, project: Project, report: Report) -> dict[str, Send]:
    """The functions that send a notice, by name."""
    from windlass.adapters import notices

    senders: dict[str, Send] = {}
    bare = without_secrets(project.environment)
    if settings.desktop != "off":
        found = notices.desktop(bare, sound=settings.sound)
        if found is not None:
            name, send = found
            senders[name] = send if settings.desktop == "on" else _silently(send)
        elif settings.desktop == "on":
            report("no notices on this desktop: neither osascript nor notify-send is on PATH")
    if settings.webhook is not None:
        # It may be the name of a variable. The address itself is never shown.
        url = settings.webhook
        if "://" not in url:
            url = project.environment.get(url, "").strip()
        where, send = notices.webhook(url, project.environment)
        senders[f"the webhook at {where}"] = send
    if settings.command:
        senders["the program of notify.command"] = notices.command(settings.command, bare)
    return senders


def _silently(send: Send) -> Send:
    def silent(notice: Notice) -> None:
        send(notice)

    return silent
