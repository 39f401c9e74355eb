"""`windlass bundle [PLAN]`."""

import io
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import click
import msgspec
from msgspec import Struct

from windlass import __version__
from windlass.cli.doctor import diagnose, told
from windlass.cli.finding import plan_id_of
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project, machine
from windlass.cli.wiring.bundling import Found, found, keep, people, tail
from windlass.cli.wiring.redacting import redactor_for
from windlass.cli.wiring.reporting import refuse_without_folder
from windlass.errors import BadInput, WindlassError
from windlass.secrets import Redactor
from windlass.views.scrubbing import impersonal, scrubbed
from windlass.views.words import plural

FOLDER = "windlass-bundle"
LAST = 200
"""How many facts the short log has."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time that every file in it bears: the same bundle of the same things."""


class _Scrub(Struct, frozen=True):
    """The one door out: whatever goes into the bundle passes it."""

    redactor: Redactor
    names: Mapping[str, str]
    texts: bool

    def text(self, text: str) -> str:
        """Without secrets, and naming nobody."""
        return impersonal(self.redactor.text(text), self.names)

    def data(self, value: object) -> object:
        """Plain data, without the words of agents, plans and people."""
        return scrubbed(value, self.text, texts=self.texts)


@click.command("bundle", short_help="Pack what a bug report needs, scrubbed")
@click.argument("plan", required=False)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it here  [default: .windlass/windlass-bundle.zip]",
)
@click.option("--with-texts", is_flag=True, help="Keep what plans, agents and checks said")
@repo_option
def command(plan: str | None, output: Path | None, with_texts: bool, repo: Path) -> int:  # noqa: FBT001
    """Pack journal, configuration, versions and doctor's findings for a bug report.

    Without PLAN: of every plan that was run here. No file of your repository is in it and no value
    of a variable; the words of plans, agents and checks are left out unless --with-texts keeps
    them; secrets, your name and your folders are replaced. A journal that is damaged is packed as
    far as it can be read. Only looks; what is inside is listed.
    """
    environment = dict(os.environ)
    if output is not None:
        refuse_without_folder(output)
    try:
        project = Project(repo.resolve(), environment)
    except WindlassError as error:
        if plan is not None:
            raise
        click.echo(f"Note: {error.message}; packed without a repository", err=True)
        project = None
    redactor = project.redactor if project else redactor_for(repo.resolve(), environment)
    scrub = _Scrub(redactor, people(project, environment), with_texts)
    files, notes = _files(project, plan, repo.resolve(), environment, scrub)
    path = output or (project.home if project else Path.cwd()) / f"{FOLDER}.zip"
    _refuse_to_replace(path)
    if project is not None and output is None:
        project.make_home()
    keep(project, path, _packed(files))
    for name, text in files.items():
        click.echo(f"{len(text.encode()):>9}  {FOLDER}/{name}")
    for note in notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(f"Wrote {path}. Look into it before you send it.", err=True)
    return 0


def _files(
    project: Project | None,
    plan: str | None,
    directory: Path,
    environment: Mapping[str, str],
    scrub: _Scrub,
) -> tuple[dict[str, str], list[str]]:
    """Every file of the bundle by its name, and what a person should know."""
    diagnosis = diagnose(directory, environment)
    files: dict[str, str] = {}
    notes: list[str] = []
    if project is not None:
        for plan_id in _plans(project, plan):
            about = found(project, plan_id)
            # An id is a name that the user chose, and may be any word of theirs.
            folder = f"plans/{scrub.text(plan_id)}"
            logs = _logs(project, plan_id, about, scrub)
            own = {**dict(_of_plan(about, scrub)), **dict(logs)}
            files |= {f"{folder}/{name}": text for name, text in own.items()}
            if about.trouble:
                notes.append(f"the journal of {plan_id!r}: {about.trouble}")
    settings = [{"key": v.key, "value": v.value, "source": v.source} for v in diagnosis.settings]
    # What somebody typed for a run to obey is kept, but for secrets and names.
    files["configuration.json"] = _json(scrubbed(settings, scrub.text, texts=True))
    files["doctor.txt"] = scrub.text("\n".join(told(diagnosis)) + "\n")
    files["versions.json"] = _json(_versions(environment, scrub))
    files["about.txt"] = scrub.text(_about(files, notes, scrub))
    return dict(sorted(files.items())), notes


def _plans(project: Project, plan: str | None) -> list[str]:
    if plan is None:
        return project.plans()
    # By its id first: nothing needs to be read of a journal that cannot be.
    return [plan] if plan in project.plans() else [plan_id_of(project, plan)]


def _of_plan(about: Found, scrub: _Scrub) -> Iterator[tuple[str, str]]:
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


def _logs(project: Project, plan_id: str, about: Found, scrub: _Scrub) -> Iterator[tuple[str, str]]:
    """What checks printed, which may be anything: only where words are kept."""
    for name in about.logs if scrub.texts else ():
        yield f"logs/{scrub.text(name)}", scrub.text(tail(project, plan_id, about.run, name))


def _brief(seq: int, fact: object) -> str:
    """A fact as one line: where, when, what, and to which task."""
    told_of = cast("dict[str, object]", fact) if isinstance(fact, dict) else {}
    words = (told_of.get(name, "") for name in ("at", "type", "task"))
    return " ".join(map(str, (f"{seq:>6}", *words))).rstrip()


def _versions(environment: Mapping[str, str], scrub: _Scrub) -> dict[str, str]:
    try:
        git = machine.git_version(environment)
    except WindlassError as error:
        git = error.message
    agent = machine.agent_program()
    walls = machine.native_walls()
    reason = machine.why_no_walls(environment)
    told_of = {
        "windlass": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "git": git,
        "claude": (agent.version or "of unknown version") if agent else "missing",
        "sandbox": walls if reason is None else f"checkout ({walls}: {reason})",
        "encoding": sys.getfilesystemencoding(),
    }
    return {name: scrub.text(text) for name, text in told_of.items()}


def _about(files: Mapping[str, str], notes: list[str], scrub: _Scrub) -> str:
    words = "are kept, but for secrets" if scrub.texts else "are left out, but for their length"
    listed = [f"  {name}" for name in sorted(files)]
    return "\n".join([
        f"A bundle of Windlass {__version__} for a bug report: {plural(len(files), 'file')}.",
        f"The words of plans, agents, checks and people {words}.",
        "No file of the repository and no value of a variable is in it; secrets are redacted, and",
        "names of persons and of their folders are replaced.",
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
    raise BadInput(f"{path} is there already, and is no bundle", hint="name another: --output FILE")
