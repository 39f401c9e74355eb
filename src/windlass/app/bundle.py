"""`bundle`: pack what a bug report needs, without secrets, names or texts of plans and agents."""

import io
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct

from windlass import __version__
from windlass.app.doctor import diagnosis_lines, doctor
from windlass.app.plans import plan_id_of
from windlass.app.wiring import Project, machine
from windlass.app.wiring.agents import vendor_of
from windlass.app.wiring.bundling import Records, end_of_log, personal_names, read_records
from windlass.app.wiring.checkout_files import refuse_without_folder, write_named
from windlass.app.wiring.redaction import redactor_for
from windlass.core.secrets import Redactor
from windlass.errors import BadInput, WindlassError
from windlass.views.scrubbing import impersonal, scrubbed
from windlass.views.words import plural

FOLDER = "windlass-bundle"
LAST = 200
"""Facts in the short log."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same records make the same bundle."""


class BundleRequest(Struct, frozen=True, kw_only=True):
    """What to pack, and where to write it."""

    plan: str | None = None
    """None: every plan that was run here."""
    output: Path | None = None
    """None: .windlass/windlass-bundle.zip."""
    with_texts: bool = False
    """Keep the texts of plans, agents and checks."""


class Bundle(Struct, frozen=True, kw_only=True):
    """A bundle that was written."""

    path: Path
    files: Mapping[str, int]
    """The size of each file, by its name."""
    notes: tuple[str, ...]
    """What a person should know about it."""


class _Scrubber(Struct, frozen=True):
    """Scrubs every text that enters the bundle."""

    redactor: Redactor
    names: Mapping[str, str]
    texts: bool

    def text(self, text: str) -> str:
        """The text without secrets and names of persons."""
        return impersonal(self.redactor.text(text), self.names)

    def data(self, value: object) -> object:
        """Plain data, without texts of agents, plans and people unless they are kept."""
        return scrubbed(value, self.text, texts=self.texts)


def bundle(directory: Path, environment: Mapping[str, str], request: BundleRequest) -> Bundle:
    """Write a bundle; outside of a repository, it is about the machine alone."""
    if request.output is not None:
        refuse_without_folder(request.output)
    notes: list[str] = []
    project: Project | None = None
    try:
        project = Project(directory, environment)
    except WindlassError as error:
        if request.plan is not None:
            raise
        notes.append(f"{error.message}; packed without a repository")
    redactor = project.redactor if project else redactor_for(directory, environment)
    scrub = _Scrubber(redactor, personal_names(project, environment), request.with_texts)
    files = _files(project, request.plan, directory, environment, scrub, notes)
    path = request.output or (project.home if project else directory) / f"{FOLDER}.zip"
    _refuse_to_replace(path)
    if project is not None and request.output is None:
        project.make_home()
    # Only its owner may read it.
    write_named(project.root if project else None, path, _packed(files), mode=0o600)
    sizes = {f"{FOLDER}/{name}": len(text.encode()) for name, text in files.items()}
    return Bundle(path=path, files=sizes, notes=tuple(notes))


def _files(
    project: Project | None,
    plan: str | None,
    directory: Path,
    environment: Mapping[str, str],
    scrub: _Scrubber,
    notes: list[str],
) -> dict[str, str]:
    """Every file of the bundle by its name; adds to `notes` what a person should know."""
    diagnosis = doctor(directory, environment, offline=True)
    files: dict[str, str] = {}
    if project is not None:
        for plan_id in _plans(project, plan):
            about = read_records(project, plan_id)
            # The user chose the id: it may contain a name.
            folder = f"plans/{scrub.text(plan_id)}"
            logs = _logs(project, plan_id, about, scrub)
            own = {**dict(_of_plan(about, scrub)), **dict(logs)}
            files |= {f"{folder}/{name}": text for name, text in own.items()}
            if about.trouble:
                notes.append(f"the journal of {plan_id!r}: {about.trouble}")
    settings = [{"key": v.key, "value": v.value, "source": v.source} for v in diagnosis.settings]
    # Settings are kept, except secrets and names.
    files["configuration.json"] = _json(scrubbed(settings, scrub.text, texts=True))
    files["doctor.txt"] = scrub.text("\n".join(diagnosis_lines(diagnosis)) + "\n")
    files["versions.json"] = _json(_versions(environment, scrub))
    files["about.txt"] = scrub.text(_about(files, notes, scrub))
    return dict(sorted(files.items()))


def _plans(project: Project, plan: str | None) -> list[str]:
    if plan is None:
        return project.journals.plans() if project.here is None else [project.here.plan]
    # By its id first: that reads no journal, which may be damaged.
    return [plan] if plan in project.journals.plans() else [plan_id_of(project, plan)]


def _of_plan(about: Records, scrub: _Scrubber) -> Iterator[tuple[str, str]]:
    facts = [(seq, scrub.data(fact)) for seq, fact in about.journal]
    yield "journal.jsonl", "".join(f"{_line({'seq': seq, 'event': it})}\n" for seq, it in facts)
    yield "log.txt", "".join(f"{_brief(seq, it)}\n" for seq, it in facts[-LAST:])
    yield "activity.jsonl", "".join(f"{_line(scrub.data(each))}\n" for each in about.activity)
    if about.state is not None:
        yield "state.json", _json(scrub.data(about.state))
    if about.trouble:
        yield "trouble.txt", scrub.text(f"{about.trouble}\n")
    names = [f"{size:>9}  {name}" for name, size in about.logs.items()]
    yield "logs.txt", scrub.text("\n".join([*names, ""]))


def _logs(
    project: Project, plan_id: str, about: Records, scrub: _Scrubber
) -> Iterator[tuple[str, str]]:
    """The output of checks, which may be anything: only if texts are kept."""
    for name in about.logs if scrub.texts else ():
        yield f"logs/{scrub.text(name)}", scrub.text(end_of_log(project, plan_id, about.run, name))


def _brief(seq: int, fact: object) -> str:
    """A fact as one line: its position, time, type and task."""
    fields = cast("dict[str, object]", fact) if isinstance(fact, dict) else {}
    words = (fields.get(name, "") for name in ("at", "type", "task"))
    return " ".join(map(str, (f"{seq:>6}", *words))).rstrip()


def _versions(environment: Mapping[str, str], scrub: _Scrubber) -> dict[str, str]:
    try:
        git = machine.git_version(environment)
    except WindlassError as error:
        git = error.message
    vendor = vendor_of()
    agent = vendor.find_program()
    walls = machine.native_walls()
    reason = machine.why_no_walls(environment)
    versions = {
        "windlass": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "git": git,
        vendor.name: (agent.version or "of unknown version") if agent else "missing",
        "sandbox": walls if reason is None else f"checkout ({walls}: {reason})",
        "encoding": sys.getfilesystemencoding(),
    }
    return {name: scrub.text(text) for name, text in versions.items()}


def _about(files: Mapping[str, str], notes: list[str], scrub: _Scrubber) -> str:
    texts = "are kept, except secrets" if scrub.texts else "are left out; only their length is kept"
    listed = [f"  {name}" for name in sorted(files)]
    return "\n".join([
        f"A bundle of Windlass {__version__} for a bug report: {plural(len(files), 'file')}.",
        f"The texts of plans, agents, checks and people {texts}.",
        "It contains no file of the repository and no value of a variable. Secrets are redacted,",
        "and names of persons and of their folders are replaced.",
        *(f"Note: {note}" for note in notes),
        "",
        *listed,
        "",
    ])  # fmt: skip


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _line(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _packed(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode(errors="replace"))
    return data.getvalue()


def _refuse_to_replace(path: Path) -> None:
    """Only a bundle is replaced by a bundle."""
    if not os.path.lexists(path):
        return
    if path.is_file():  # a pipe would wait for ever
        with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            if f"{FOLDER}/about.txt" in archive.namelist():
                return
    raise BadInput(f"{path} exists and is not a bundle", hint="name another: --output FILE")
