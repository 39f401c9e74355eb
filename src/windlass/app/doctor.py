"""`doctor`: check the machine, the repository, the plans run in it and every setting.

Law: it changes nothing, and its result contains no secret: people paste it into bug reports.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from windlass.app.sandbox_level import INSTALL_WALLS
from windlass.app.wiring import Observers, Project, machine
from windlass.app.wiring.agents import refuse_without_credentials, vendor_of
from windlass.app.wiring.configuration import Configuration, Value, configure
from windlass.app.wiring.probing import Found, probe_provider
from windlass.app.wiring.redaction import redactor_for
from windlass.app.wiring.refusals import (
    refuse_command_in_file,
    unread_variables,
)
from windlass.app.wiring.signatures import signature_of, unsigned_warning
from windlass.core.settings import Settings
from windlass.errors import WindlassError
from windlass.views.columns import columns, hanging, padded
from windlass.views.outcome import is_finished, run_status
from windlass.views.scrubbing import scrubbed
from windlass.views.steps import resuming
from windlass.views.words import one_line, plural

_NOWHERE = Path("/nonexistent")
"""A project without configuration, to list every key at its default."""

_USUAL = 80
"""Columns of a setting's line if the width is not known; programs read `--json`."""


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    area: Literal["machine", "repository", "plans", "settings"]
    name: str
    level: Literal["ok", "warn", "bad"] = "ok"
    """bad: no run can start until it is fixed."""
    said: str
    cure: str = ""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """All findings and settings, as `--json` prints them."""

    schema: int
    usable: bool
    findings: tuple[Finding, ...]
    settings: tuple[Value, ...]


def doctor(directory: Path, environment: Mapping[str, str], *, offline: bool = False) -> Diagnosis:
    """Check everything; outside of a repository, the machine and the settings.

    With `offline`, the agent's provider is not asked whether it can be reached.
    """
    troubles: list[Finding] = []
    project, configuration = None, configure(_NOWHERE, {}, {})
    try:
        project = Project(directory, environment)
    except WindlassError as error:
        troubles.append(_bad("repository", "root", error))
    try:
        root, where = (project.root, project.directory) if project else (directory, directory)
        configuration = configure(root, environment, {}, directory=where)
    except WindlassError as error:
        troubles.append(_bad("settings", "file", error))
    redactor = project.redactor if project else redactor_for(directory, environment)
    settings = configuration.settings
    provider = () if offline else _provider(environment, settings)
    findings = [*_machine(environment, project, settings), *provider, *troubles]
    if project is not None:
        findings += _repository(project, settings)
        try:
            plans = project.journals.plans()
        except WindlassError as error:
            findings.append(_bad("repository", "journals", error))
        else:
            findings += [*_base(project, settings), *_plans(project, plans)]
    findings += _settings(environment, project, configuration)
    return Diagnosis(
        schema=1,
        usable=all(finding.level != "bad" for finding in findings),
        findings=tuple(_redacted(finding, redactor.text) for finding in findings),
        settings=tuple(_shown(value, redactor.text) for value in configuration.values),
    )


def _redacted(finding: Finding, redact: Callable[[str], str]) -> Finding:
    return replace(finding, said=redact(finding.said), cure=redact(finding.cure))


def _shown(value: Value, redact: Callable[[str], str]) -> Value:
    """A setting without secrets."""
    plain = scrubbed(msgspec.to_builtins(value.value), redact, texts=True)
    return replace(value, value=plain, source=redact(value.source))


def _machine(
    environment: Mapping[str, str], project: Project | None, settings: Settings
) -> Iterator[Finding]:
    yield _probe("machine", "git", lambda: machine.git_version(environment))
    yield Finding(
        area="machine", name="python", said=f"{platform.python_version()}, {sys.executable}"
    )
    yield _agent(settings)
    yield _key(environment, settings)
    yield _sandbox(environment, project, settings)
    yield Finding(area="machine", name="limits", said=machine.how_limits_work())


def _agent(settings: Settings) -> Finding:
    vendor = vendor_of(settings.agent)
    found = vendor.find_program()
    if found is None:
        return Finding(
            area="machine",
            name="agent",
            level="bad",
            said=f"the program of {vendor.name} is not installed",
            cure=vendor.install,
        )
    version = f"{vendor.name} {found.version}".rstrip()
    return Finding(area="machine", name="agent", said=f"{version}, {found.path}")


def _key(environment: Mapping[str, str], settings: Settings) -> Finding:
    """The names of the variables that are set, without their values."""

    def names() -> str:
        return f"{', '.join(refuse_without_credentials(settings.agent, environment))} set"

    return _probe("machine", "key", names)


def _provider(environment: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    """Whether the agent's provider answers; a machine without network can still be set up."""
    probe = probe_provider(settings.agent, environment)
    if probe is not None:
        level, cure = _PROBED[probe.found]
        yield Finding(area="machine", name="provider", level=level, said=probe.said, cure=cure)


_PROBED: Mapping[Found, tuple[Literal["ok", "warn", "bad"], str]] = {
    "answers": ("ok", ""),
    "refuses the key": ("bad", "correct the key"),
    "cannot be reached": (
        "warn",
        "check the network; HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are used; --offline skips this",
    ),
}


def _sandbox(
    environment: Mapping[str, str], project: Project | None, settings: Settings
) -> Finding:
    wanted = settings.sandbox.level
    if wanted in {"checkout", "none"}:
        return Finding(
            area="machine",
            name="sandbox",
            # A run takes `none` from its own command line only.
            level="bad" if wanted == "none" else "warn",
            said=f"level {wanted}, as set: agents are not sandboxed",
            cure="set another level, or use `--sandbox none` each time" if wanted == "none" else "",
        )
    native = machine.native_walls()
    try:
        reason = (
            project.walls.why_no_walls(settings) if project else machine.why_no_walls(environment)
        )
    except WindlassError as error:
        return _bad("machine", "sandbox", error)
    asked = native if wanted == "auto" else wanted
    if asked != native:
        reason = f"this system has {native}"
    if reason is None:
        return _walls(environment, asked, settings)
    return Finding(
        area="machine",
        name="sandbox",
        level="bad",
        said=f"level {asked} does not work here ({reason})"
        + ("" if wanted != "auto" else "; a run asks on a terminal, and refuses elsewhere"),
        cure="; ".join(
            (
                *((INSTALL_WALLS,) if native == "bwrap" else ()),
                *(("or run without walls: `--sandbox checkout`",) if wanted == "auto" else ()),
            )
        ),
    )


def _walls(environment: Mapping[str, str], level: str, settings: Settings) -> Finding:
    """The walls that work here, and their gaps."""
    said = f"level {level}: agents are sandboxed"
    if not machine.is_filtered(environment):
        said += f", but reach the kernel's keys: no filter works for {platform.machine()}"
    if why := machine.why_no_landlock(environment):
        said += f"; without Landlock as a second wall: {why}"
    if not machine.has_nested_boxes(environment):
        said += "; a Coach runs no commands, because no nested sandbox works here"
    if settings.sandbox.network != "open" and (why := machine.why_no_way_out(environment)):
        return Finding(
            area="machine",
            name="sandbox",
            level="bad",
            said=f"{said}, but an agent cannot reach its model: {why}",
            cure='set [sandbox] network = "open", which shares this machine\'s network',
        )
    return Finding(area="machine", name="sandbox", said=said)


def _repository(project: Project, settings: Settings) -> Iterator[Finding]:
    writable = os.access(project.root, os.W_OK)
    yield Finding(
        area="repository",
        name="root",
        level="ok" if writable else "bad",
        said=str(project.root) + ("" if writable else " is not writable"),
        cure="" if writable else "Windlass keeps its journal in .windlass there",
    )
    yield _probe("repository", "identity", project.git.identity)
    yield _signing(project, settings)
    for lock in project.git.locks():
        yield Finding(
            area="repository",
            name="lock",
            level="warn",
            said=f"{lock} is there: another git is running, or one that died left it",
            cure="remove it if no git is running",
        )


def _signing(project: Project, settings: Settings) -> Finding:
    """Whether commits are signed, tried with the user's own program."""
    if not settings.git.sign:
        warning = unsigned_warning(project, settings)
        level = "warn" if warning is not None else "ok"
        said = warning or "commits are not signed"
        return Finding(area="repository", name="signing", level=level, said=said)
    which = "every commit is" if settings.git.signs_all else "the commits of a landing are"

    def signed() -> str:
        return f"{which} signed ({signature_of(project)})"

    return _probe("repository", "signing", signed)


def _base(project: Project, settings: Settings) -> Iterator[Finding]:
    try:
        base = project.git.base(settings.base)
    except WindlassError as error:
        yield _bad("repository", "base", error)
        return
    where = base.branch or "no branch"
    yield Finding(area="repository", name="base", said=f"{where} at {base.commit[:10]}")
    for warning in base.warnings:
        yield Finding(area="repository", name="base", level="warn", said=warning)


def _plans(project: Project, plans: list[str]) -> Iterator[Finding]:
    for plan_id in plans:
        try:
            yield _plan(project, plan_id)
        except WindlassError as error:
            # A broken journal stops only its own plan.
            yield Finding(
                area="plans", name=plan_id, level="warn", said=error.message, cure=error.hint
            )


def _plan(project: Project, plan_id: str) -> Finding:
    state = project.journals.last_run(plan_id)
    pid = project.journals.live_pid(plan_id)
    if state is None:
        return Finding(area="plans", name=plan_id, said="never run")
    done = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
    if pid is not None:
        said = f"run {state.run} is live (PID {pid or 'unknown'}), {done}"
        return Finding(area="plans", name=plan_id, said=said)
    status = "interrupted" if state.ended is None else run_status(state)
    said = f"run {state.run} is {status}, {done}"
    if is_finished(state):
        return Finding(area="plans", name=plan_id, said=said)
    return Finding(
        area="plans",
        name=plan_id,
        level="warn",
        said=said,
        cure=resuming(state, plan_id).command,
    )


def _probe(area: Literal["machine", "repository"], name: str, probe: Callable[[], str]) -> Finding:
    try:
        return Finding(area=area, name=name, said=probe())
    except WindlassError as error:
        return _bad(area, name, error)


def _bad(
    area: Literal["machine", "repository", "settings"], name: str, error: WindlassError
) -> Finding:
    return Finding(area=area, name=name, level="bad", said=error.message, cure=error.hint)


def _settings(
    environment: Mapping[str, str], project: Project | None, configuration: Configuration
) -> Iterator[Finding]:
    """The settings that a run would refuse, found by the same functions."""
    settings = configuration.settings
    refusals: dict[str, Callable[[], object]] = {
        "notify": lambda: refuse_command_in_file(configuration),
    }
    if project is not None:
        refusals["workspace"] = lambda: project.refuse_settings(settings)
        refusals["outside"] = lambda: Observers(
            project, "", settings, notify=None, report=lambda _text: None
        )
    if unread := unread_variables(environment, configuration):
        yield Finding(
            area="settings",
            name="variable",
            level="warn",
            said=f"unknown: {', '.join(unread)}",
            cure="a variable is WINDLASS_ and a key listed here, such as WINDLASS_AGENTS",
        )
    for name, refuse in refusals.items():
        try:
            refuse()
        except WindlassError as error:
            yield _bad("settings", name, error)


def diagnosis_lines(diagnosis: Diagnosis, *, width: int | None = None) -> Iterator[str]:
    """The diagnosis for people, folded to this width where it is known."""
    names = max((columns(finding.name) for finding in diagnosis.findings), default=0)
    keys = max((len(value.key) for value in diagnosis.settings), default=0)
    for area in ("machine", "repository", "plans", "settings"):
        found = [finding for finding in diagnosis.findings if finding.area == area]
        if found or area == "settings":
            yield area.capitalize()
        for finding in found:
            head = f"  {finding.level:<4}  {padded(finding.name, names)}  "
            yield from hanging(head, one_line(finding.said, 300), width)
            if finding.cure:
                yield from hanging(" " * columns(head), one_line(finding.cure, 300), width)
    for value in diagnosis.settings:
        shown = one_line(msgspec.json.encode(value.value).decode(), 60)
        text = f"{shown:<22} {value.source}  ({value.bounds})"
        yield from hanging(f"  {value.key:<{keys}} ", text, width or _USUAL)
    bad = sum(finding.level == "bad" for finding in diagnosis.findings)
    yield ""
    yield f"{plural(bad, 'problem')} to fix first." if bad else "A run can start."
